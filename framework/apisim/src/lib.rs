//! A simulated Kubernetes API server that speaks the real wire protocol.
//!
//! Controllers and kubectl cannot tell it from a real one by what it answers: discovery, lists with pages, watches
//! with bookmarks and 410, optimistic concurrency, patches and server-side apply, subresources, custom resources with
//! schemas, printed tables. Tests and demonstrations can do to it what they cannot do to a real one: run it in
//! process on virtual time ([`ApiSim::service`]), script faults ([`Faults`]), read what was asked ([`ApiSim::audit`]).
//!
//! ```
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use boatswain_apisim::ApiSim;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client};
//!
//! let sim = ApiSim::default();
//! let client = Client::new(sim.service(), "default");
//! let maps: Api<ConfigMap> = Api::default_namespaced(client);
//! assert!(maps.list(&Default::default()).await?.items.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Caveats
//! Deliberately simpler than a real server: admission webhooks, CEL rules, protobuf and conversion webhooks are
//! absent; pods are deleted without a grace period; built-in kinds are checked only where controllers and kubectl
//! commonly go wrong. Rights are what [`Users`] grants and what Roles
//! and their bindings say; nobody is kept from giving more than they have.

mod api;
mod attributes;
mod audit;
mod auth;
mod base64;
mod bell;
mod direct;
mod failure;
mod fault;
mod fields;
mod gc;
mod history;
mod http;
mod model;
mod patch;
mod print;
mod rbac;
mod schema;
mod selector;
mod sim;
mod store;
mod time;
mod world;

pub use attributes::{Attributes, Matcher};
pub use audit::Audit;
pub use auth::{Anonymous, Users};
pub use failure::{Cause, Failure};
pub use fault::{Faults, Hold, Rejection};
pub use http::{
    server::Server,
    service::{SimBody, SimService},
};
pub use sim::{ApiSim, Options, Snapshot};
pub use time::Time;
pub use world::{Rollout, World, WorldOptions};
