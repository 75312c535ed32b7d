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
//! # Guarantees
//!
//! See [`InformerCore`] for what the store promises, [`Subscription`] for what a subscriber is told, [`Lister`] for what a read can answer.

mod core;
mod delta;
mod delta_fifo;
pub mod envelope;
pub mod framing;
mod indexer;
mod informer;
mod key;
mod kind;
mod lister;
mod object;
mod redact;
mod reflector;
mod status;
mod store;
mod subscription;
mod sync;
mod version;

pub use crate::core::InformerCore;
pub use delta::{Cause, Change};
pub use informer::{InformerOptions, informer};
pub use key::{Key, KeyError};
pub use kind::{Kind, Scope};
pub use lister::{Lister, ReadError};
pub use object::{DecodeError, Meta, Object, OwnerRef, Path, Uid};
pub use status::{Counters, Degraded, InformerState, InformerStatus, Trouble, TroubleCause};
pub use store::IndexSpec;
pub use subscription::{Batch, SubscriberStatus, Subscription};
pub use version::Version;
