//! Kubernetes controllers built from supervised actors.
//!
//! A controller is one function from an object to an [`Outcome`]. Around it runs a supervision tree: informers that mirror the
//! API server, shards that own one cell per key, workers that run one key at a time. What fails is restarted with backoff, shown,
//! and stops nothing else.
//!
//! ```no_run
//! use std::{convert::Infallible, process::ExitCode, sync::Arc};
//!
//! use boatswain::prelude::*;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! async fn reconcile(map: Arc<ConfigMap>, _: Arc<()>) -> Result<Outcome, Infallible> {
//!     println!("{} has {} keys", map.name_any(), map.data.as_ref().map_or(0, |d| d.len()));
//!     Ok(Outcome::Done)
//! }
//!
//! fn main() -> ExitCode {
//!     let counter = Controller::<ConfigMap>::named("counter").reconcile_with(Arc::new(()), reconcile);
//!     Manager::from_args().with(counter).run()
//! }
//! ```
//!
//! # Guarantees
//!
//! Each is stated with its test in `docs/semantics.md`: one reconcile of a key at a time; after the last change of an object a run
//! starts later than the change became visible; changes coalesce; deletions are events; a failing callback stops nothing else; reads
//! never touch the network; `run` returns with nothing running, or says what it could not stop.

mod assemble;
mod builder;
mod client;
pub mod conditions;
mod connection;
mod context;
mod controllers;
mod crew;
mod dashboard;
mod dispatch;
mod error;
mod explain;
mod finalizer;
mod identity;
mod informers;
mod leader;
mod logging;
mod manager;
mod names;
mod options;
pub mod own;
mod reconcile;
mod recorder;
mod rights;
mod runner;
mod running;
mod selected;
mod signals;
mod sync;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "otel")]
mod trace;
mod trigger;

pub use assemble::{Runnable, Wiring};
pub use boatswain_cache::{
    ConnectOptions, InformerStatus, Key, Kind, Layout, Lister, Live, LiveError, Object, Predicate,
    ReadError, Reference, Scope, Selection, SelectionError, SharedInformer, SharedInformers,
    StoreOptions, Transform, View, ViewError,
};
#[cfg(feature = "terminal")]
pub use boatswain_dashboard::terminal;
pub use boatswain_supervision::{Clock, Entropy, Exit, StillRunning, TreeSnapshot};
pub use boatswain_workqueue::{Lane, When, limit};
pub use builder::{Controller, Readable, Reconcilable, Watchable, Watches};
pub use client::{ClientError, ClientLimits};
pub use context::{Context, Namespaced, Writable, key_of};
pub use controllers::Controllers;
pub use dispatch::{ControllerHandle, Pace, ParkedKey, Pause, RetryPolicy, Shut};
pub use error::{RemoveError, RunError, StartError};
pub use explain::{Doing, Explanation, FailingKey, LastRun, Needs, ReconcileId, Waits};
pub use finalizer::Cleanup;
pub use identity::Identified;
pub use leader::{Fenced, LeaseNameError, LeaseOptions, LeaseStatus, LeaseTerms, TermsError};
pub use logging::init as init_logging;
pub use manager::Manager;
pub use names::namespace;
pub use options::{
    Address, DashboardListen, DashboardOptions, Labels, LeaderOptions, LogFormat, ManagerArgs,
    Options, OptionsError, Span,
};
pub use own::OwnerError;
pub use reconcile::{Causes, Fault, FnReconciler, Outcome, ReconcileError, Reconciler};
pub use recorder::Note;
pub use rights::{Answered, CheckError, Checked, Right, Rights, Rule, Verb};
pub use running::{Handle, Observer, Running};
pub use selected::SelectError;
pub use trigger::{Full, Sender, Source, channel};

/// Every name a first controller needs.
pub mod prelude {
    pub use kube::{Resource, ResourceExt};

    pub use crate::{
        Cleanup, ClientError, Context, Controller, Fault, Key, Lister, Manager, Note, Outcome,
        ReconcileError, Reconciler, Wiring, key_of,
    };
}
