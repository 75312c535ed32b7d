//! A local mirror of Kubernetes objects: listed once, watched from then on, read without a request.
//!
//! ```text
//! API server ──bytes──▶ Reflector ──Deltas, Replace*──▶ DeltaFifo ◀──Credit── Indexer ──commit──▶ InformerCore ──▶ Lister
//!                          ▲                                                                        │
//!                          └────────────── resumes where queue and store are ◀──────────────────────┴──▶ Subscription
//! ```
//!
//! [`SharedInformers`] run one informer per [`Selection`] that somebody uses, as supervised actors. Readers take a [`Lister`]; whoever reacts to changes takes a
//! [`Subscription`]. Both work on what outlives the actors ([`InformerCore`]), so no crash disturbs them. They can be used from any thread.
//!
//! Objects stay the bytes the server sent, without `managedFields`: identity and version are parsed when they arrive, everything else when somebody
//! asks. So an object that is not what its reader expects concerns that reader and that object, and nobody else.
//!
//! # A whole program
//!
//! ```
//! use std::time::Duration;
//! use boatswain_cache::{InformerOptions, Key, Selection, SharedInformers};
//! use boatswain_supervision::{Clock, Tree, TreeOptions, actix::System};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, Patch, PatchParams};
//!
//! // the actors live on this thread, which therefore runs an actix system
//! System::new().block_on(async {
//!     // here a simulated server; `connect` makes a client of a real one
//!     let server = boatswain_apisim::ApiSim::default();
//!     let client = kube::Client::new(server.service(), "default");
//!
//!     let informers = SharedInformers::new(client.clone(), InformerOptions::default());
//!     let tree = Tree::start(informers.supervisor("informers"), TreeOptions::default()).await.unwrap();
//!
//!     let maps = informers.informer(Selection::of::<ConfigMap>().in_namespace("default"));
//!     maps.synced_within(&Clock::system(), Duration::from_secs(30)).await.unwrap();
//!     let lister = maps.lister::<ConfigMap>();
//!     assert!(lister.list().unwrap().is_empty());
//!
//!     // what was written is read as soon as it was waited for
//!     let patch = Patch::Apply(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"high": "noon"}}));
//!     let api = Api::<ConfigMap>::default_namespaced(client);
//!     let written = api.patch("tides", &PatchParams::apply("harbour"), &patch).await.unwrap();
//!     maps.wait_written(&written).await.unwrap();
//!     let tides = lister.get(&Key::of(&written)).unwrap().unwrap();
//!     assert_eq!(tides.data.as_ref().unwrap()["high"], "noon");
//!
//!     tree.stop(Duration::from_secs(5)).await.unwrap();
//! });
//! ```
//!
//! A program that is built on tokio, with tasks of its own on many threads, keeps its runtime and puts an actix system around it instead of
//! `#[tokio::main]`: `System::with_tokio_rt(|| Builder::new_multi_thread().enable_all().build()…).block_on(program())`. What is spawned by `tokio::spawn` runs
//! on the pool as ever; the actors share the main thread. `Tree::start` on any other thread is refused with `StartError::NoArbiter`.
//! `cargo run -p boatswain-cache --example harbour_cache` runs a program that does most of what follows.
//!
//! # What to use for what
//!
//! **Several namespaces as one**, which come and go: a [`View`], which is read, indexed and subscribed to as one informer is.
//!
//! ```
//! # use boatswain_cache::{Scope, Selection, SharedInformers, ViewError};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # async fn example(informers: &SharedInformers) -> Result<(), ViewError> {
//! let maps = Selection::of::<ConfigMap>();
//! let view = informers.view(&maps, [Scope::namespace("quay"), Scope::namespace("dock")])?;
//! let lister = view.lister::<ConfigMap>();
//! // later: synced first, so that nobody who reads the whole view is refused meanwhile
//! let yard = informers.informer(maps.in_namespace("yard"));
//! yard.wait_synced().await;
//! view.add(yard)?;
//! view.remove(&Scope::namespace("dock"));
//! # drop(lister);
//! # Ok(())
//! # }
//! ```
//!
//! **Some of the objects**: by an index ([`IndexSpec`]), by namespace and labels ([`Query`]), or one moment of all of them ([`Lister::snapshot`]).
//!
//! ```
//! # use boatswain_cache::{IndexSpec, Query, ReadError, Selection, SharedInformers};
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube::core::Expression;
//! # fn example(informers: &SharedInformers) -> Result<(), ReadError> {
//! let pods = informers.informer(Selection::of::<Pod>());
//! pods.add_index(IndexSpec::path("spec.nodeName")); // the path is also the index's name
//! let lister = pods.lister::<Pod>();
//! let neighbours = lister.by_index("spec.nodeName", "node-1")?;
//! let web = Query::all().namespace("quay").labels(Expression::Equal("app".into(), "web".into()));
//! for pod in lister.snapshot(&web)? {
//!     let pod = pod?; // or which object is no Pod, and why
//!     println!("{:?} has {} neighbours", pod.metadata.name, neighbours.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Less of each object**: their metadata only, cut out by the server and read as `PartialObjectMeta`; or whole objects without some paths ([`Transform`]). The other
//! way round, a kind of which every object is read all the time is kept decoded ([`Layout::typed`]). How objects are kept is said by their first user.
//!
//! ```
//! # use boatswain_cache::{KeptOtherwise, Layout, Selection, SharedInformers, StoreOptions, Transform};
//! # use k8s_openapi::api::core::v1::{Node, Pod};
//! # use kube::core::PartialObjectMeta;
//! # fn example(informers: &SharedInformers) -> Result<(), KeptOtherwise> {
//! let names = informers.informer(Selection::of::<Pod>().metadata_only());
//! let lister = names.lister::<PartialObjectMeta<Pod>>();
//!
//! let hot = StoreOptions {
//!     layout: Layout::typed::<Node>(),
//!     transform: Transform::default().without("status.images"),
//!     ..StoreOptions::default()
//! };
//! let nodes = informers.informer_with(Selection::of::<Node>(), hot)?;
//! # drop((lister, nodes));
//! # Ok(())
//! # }
//! ```
//!
//! **Kinds known at run time only**: a [`Kind`] by its four names or by [discovery](Kind::discovered), read as `DynamicObject`, as `serde_json::Value`, or path by path. The CRD may come
//! later, and go: the informer waits for it and [says so](InformerCore::degraded).
//!
//! ```
//! # use boatswain_cache::{Kind, ReadError, SharedInformers};
//! # use kube::core::DynamicObject;
//! # fn example(informers: &SharedInformers) -> Result<(), ReadError> {
//! let cranes = informers.informer(Kind::new("harbour.example.com", "v1", "Crane", "cranes"));
//! for crane in cranes.lister::<DynamicObject>().list_objects()? {
//!     println!("{} lifts {:?}", crane.key(), crane.path("spec.tons"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Secrets** are kept apart by themselves: neither remembered in decoded form nor packed with a dictionary, and wiped from memory. Other kinds that hold secrets are treated so where
//! [`StoreOptions::sensitive`] says it. No `Debug` and no error quotes what an object contains.
//!
//! **Hearing of changes**: a [`Subscription`] holds each key once, however often it changes, and tells again what was not acknowledged. [`Predicate`] says which
//! changes matter, [`Reference`] whom they concern.
//!
//! ```
//! # use boatswain_cache::{Kind, Predicate, Reference, Selection, SharedInformers};
//! # use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
//! # async fn example(informers: &SharedInformers) {
//! let moved = Predicate::path_changed("spec.nodeName").or(Predicate::deletion_requested());
//! let owner = Reference::to_controller(Kind::of::<ReplicaSet>());
//! let heard = informers.informer(Selection::of::<Pod>()).subscribe("scheduler", || {});
//! loop {
//!     let batch = heard.next(64).await;
//!     for (change, _) in batch.changes().iter().filter(|(change, _)| moved.passes(change)) {
//!         println!("{:?} is to be looked at", owner.keys_of(change));
//!     }
//!     batch.ack();
//! }
//! # }
//! ```
//!
//! **Reading what was just written**: [`InformerCore::wait_written`], [`InformerCore::wait_gone`] after a deletion, [`InformerCore::within`] around them. Where even that is not enough, [`Live`]
//! asks the server itself.
//!
//! ```
//! # use std::time::Duration;
//! # use boatswain_cache::{Key, Live, LiveError, SharedInformer, WaitError};
//! # use boatswain_supervision::Clock;
//! # use k8s_openapi::api::core::v1::Pod;
//! # async fn example(client: kube::Client, pods: &SharedInformer, written: &Pod) -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::system();
//! pods.within(&clock, Duration::from_secs(5), pods.wait_written(written)).await?;
//! let now = Live::<Pod>::of(client, clock).get_live(&Key::of(written)).await?;
//! # drop(now);
//! # Ok(())
//! # }
//! ```
//!
//! **How it is**: [`SharedInformers::status`], one [`InformerStatus`] each, serde data for a page or a metric; [`InformerCore::freshness`] for "how old may this be?".
//!
//! **One informer alone**, in a tree of one's own and without sharing: an [`InformerCore`] and the supervisor that [`informer`] makes for it.
//!
//! # Guarantees
//!
//! See [`InformerCore`] for what the store promises, [`Subscription`] for what a subscriber is told, [`Lister`] for what a read can answer.

mod causes;
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
mod spare;
mod status;
mod store;
mod subscription;
mod sync;
mod table;
mod transform;
mod version;
mod view;

pub use crate::core::{Freshness, InformerCore, Sight, WaitError};
pub use connect::{ConnectOptions, Gate, Transport, connect, copy_request, transport};
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
