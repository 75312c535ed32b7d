//! A local mirror of one kind of Kubernetes objects: reflector, delta FIFO, indexer, lister.
//!
//! ```text
//! API server ──bytes──▶ Reflector ──Deltas, Replace*──▶ DeltaFifo ◀──Credit── Indexer ──commit──▶ InformerCore ──▶ Lister
//!                          ▲                                                                        │
//!                          └────────────── resumes where queue and store are ◀──────────────────────┴──▶ Subscription
//! ```
//!
//! An [`InformerCore`] holds the objects and those who hear of their changes; [`informer`] makes the actors that keep it up to date, as a supervisor
//! to be started somewhere in a tree. Readers use a [`Lister`]; whoever reacts takes a [`Subscription`]. Both work on the core alone, so no
//! crash of an actor disturbs them.
//!
//! Objects stay the bytes the server sent, without `managedFields`: identity and version are parsed when they arrive, everything else when somebody
//! asks. So an object that is not what its reader expects concerns that reader and that object, and nobody else.
//!
//! ```
//! use std::time::Duration;
//! use boatswain_cache::{InformerCore, InformerOptions, Key, Kind, Lister, Scope, informer};
//! use boatswain_supervision::{Tree, testing};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! testing::run(1, |options| async {
//!     let server = boatswain_apisim::ApiSim::default();
//!     let client = kube::Client::new(server.service(), "default");
//!     let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::Namespace("default".into()));
//!     let tree = Tree::start(informer(core.clone(), client, InformerOptions::default()), options).await.unwrap();
//!     core.wait_synced().await;
//!
//!     let written = server.create(serde_json::json!({
//!         "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tides", "namespace": "default"}, "data": {"high": "noon"},
//!     })).unwrap();
//!     let key = Key::new(Some("default"), "tides");
//!     core.wait_for(&key, &written["metadata"]["resourceVersion"].as_str().unwrap().into()).await.unwrap();
//!     let tides = Lister::<ConfigMap>::new(core).get(&key).unwrap().unwrap();
//!     assert_eq!(tides.data.as_ref().unwrap()["high"], "noon");
//!     tree.stop(Duration::from_secs(5)).await.unwrap();
//! });
//! ```
//!
//! # Guarantees
//!
//! See [`InformerCore`] for what the store promises, [`Subscription`] for what a subscriber is told, [`Lister`] for what a read can answer.

mod connect;
mod core;
mod delta;
mod delta_fifo;
pub mod envelope;
mod factory;
pub mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod indexer;
mod informer;
mod key;
mod kind;
mod lister;
mod live;
mod object;
mod opener;
mod predicate;
mod redact;
mod reference;
mod reflector;
mod selection;
mod status;
mod store;
mod subscription;
mod sync;
mod transform;
mod trim;
mod version;
mod view;

pub use crate::core::{Freshness, InformerCore, WaitError};
pub use connect::{ConnectOptions, Transport, connect, transport};
pub use delta::{Cause, Change};
pub use factory::{KeptOtherwise, SharedInformer, SharedInformers};
pub use informer::{InformerOptions, informer};
pub use key::{Key, KeyError};
pub use kind::{Kind, Scope};
pub use lister::{Lister, Query, ReadError, Snapshot};
pub use live::{Live, LiveCause, LiveError};
pub use object::{DecodeError, Meta, Object, OwnerRef, Path, Uid};
pub use predicate::Predicate;
pub use reference::Reference;
pub use reflector::stream_lists::StreamLists;
pub use selection::{Form, Selection, SelectionError};
pub use status::{Counters, Degraded, InformerState, InformerStatus, Latency, Tally, TroubleCause};
pub use store::{Decoder, IndexSpec, Layout, MemoStatus, StoreOptions};
pub use subscription::{Batch, SubscribeOptions, SubscriberStatus, Subscription};
pub use transform::Transform;
pub use version::Version;
pub use view::{View, ViewError};
