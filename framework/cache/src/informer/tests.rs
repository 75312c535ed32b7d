use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Handler, Message};
use boatswain_apisim::{ApiSim, Options, Time};
use boatswain_supervision::{Address, Clock, Context, SupervisorSpec, Tree, TreeOptions, testing};
use serde_json::{Value, json};

use super::{InformerOptions, assemble};
use crate::core::InformerCore;
use crate::delta_fifo::actor::DeltaFifo;
use crate::indexer::actor::Indexer;
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::lister::{Lister, ReadError};
use crate::reflector::actor::Reflector;
use crate::status::{InformerState, TroubleCause};
use crate::subscription::Subscription;

mod chaos;
mod faults;
mod load;
mod server;
mod streams;
mod wire;

use server::{Fault, Server};

/// Kills the actor that gets it.
#[derive(Message)]
#[rtype(result = "()")]
struct Crash;

macro_rules! crashes {
    ($($actor:ty),*) => {$(
        impl Handler<Crash> for $actor {
            type Result = ();

            fn handle(&mut self, _: Crash, _: &mut Context<Self>) {
                panic!("as asked");
            }
        }
    )*};
}
crashes!(DeltaFifo, Indexer, Reflector);

type Actors = (Address<DeltaFifo>, Address<Indexer>, Address<Reflector>);

/// An informer with its server, and a subscriber that keeps a copy of what it is told.
struct Rig {
    server: Server,
    core: Arc<InformerCore>,
    lister: Lister<Value>,
    subscription: Subscription,
    told: BTreeMap<Key, String>,
    log: Vec<String>,
    clock: Clock,
    tree: Tree,
    actors: Arc<Mutex<Option<Actors>>>,
}

fn kind() -> Kind {
    Kind {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
        namespaced: true,
    }
}

/// Lists in pages.
fn paged() -> InformerOptions {
    InformerOptions {
        stream_lists: None,
        ..InformerOptions::default()
    }
}

impl Rig {
    async fn start(server: &Server, options: TreeOptions) -> Self {
        Self::with(server, options, paged()).await
    }

    async fn with(server: &Server, tree: TreeOptions, options: InformerOptions) -> Self {
        let core = InformerCore::new(kind(), Scope::All);
        Self {
            server: server.clone(),
            ..Self::around(core, server.client(), tree, options).await
        }
    }

    /// The indexer does nothing until it is told otherwise.
    async fn stalled(server: &Server, tree: TreeOptions) -> Self {
        let core = InformerCore::new(kind(), Scope::All);
        core.stall(true);
        Self {
            server: server.clone(),
            ..Self::around(core, server.client(), tree, paged()).await
        }
    }

    async fn around(
        core: Arc<InformerCore>,
        client: kube::Client,
        tree: TreeOptions,
        options: InformerOptions,
    ) -> Self {
        let clock = tree.clock.clone();
        let actors = Arc::new(Mutex::new(None));
        let wired = actors.clone();
        let spec: SupervisorSpec = assemble(
            core.clone(),
            client,
            options,
            move |fifo, indexer, reflector| {
                *wired.lock().unwrap() = Some((fifo, indexer, reflector));
            },
        );
        let subscription = core.subscribe("test", || {});
        let tree = Tree::start(spec.without_intensity(), tree).await.unwrap();
        let lister = Lister::new(core.clone());
        let server = Server::default();
        Self {
            server,
            core,
            lister,
            subscription,
            told: BTreeMap::new(),
            log: Vec::new(),
            clock,
            tree,
            actors,
        }
    }

    /// Lets virtual time pass.
    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Passes time until `done`, in steps that grow from 10 ms to 10 s, for an hour at most.
    async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let end = self.clock.now() + Duration::from_secs(3600);
        let mut step = Duration::from_millis(10);
        while self.clock.now() < end {
            if done(self) {
                return;
            }
            self.clock.sleep(step).await;
            step = (step + step / 50).min(Duration::from_secs(10));
        }
        panic!(
            "an hour has passed, but not {what}: {:#?}",
            self.core.status(self.clock.now())
        );
    }

    async fn fresh(&self) {
        self.until("fresh", |rig| rig.core.fresh()).await;
    }

    /// Waits until the store is what the server has.
    async fn caught_up(&self) {
        self.until("caught up", |rig| rig.state() == rig.server.state())
            .await;
    }

    fn state(&self) -> BTreeMap<String, String> {
        let objects = self.core.reader().list(None);
        objects
            .iter()
            .map(|object| {
                (
                    object.key().name().to_owned(),
                    object.meta().resource_version.to_string(),
                )
            })
            .collect()
    }

    /// Handles what the subscriber was told; returns it as text.
    fn hear(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        while let Some(batch) = self.subscription.take(100) {
            for (change, _) in batch.changes() {
                let before = change
                    .old()
                    .filter(|_| change.new().is_some() || self.told.contains_key(change.key()));
                assert_eq!(
                    self.told.contains_key(change.key()),
                    before.is_some(),
                    "{change:?} does not follow from {:?}",
                    self.told
                );
                match change.new() {
                    Some(new) => drop(
                        self.told
                            .insert(new.key().clone(), new.meta().resource_version.to_string()),
                    ),
                    None => assert!(
                        self.told.remove(change.key()).is_some(),
                        "{change:?} told twice"
                    ),
                }
                heard.push(format!("{change:?}"));
            }
            batch.ack();
        }
        self.log.extend(heard.iter().cloned());
        heard
    }

    /// Restarts of the actor that was restarted most often.
    fn restarts(&self) -> u64 {
        self.tree
            .snapshot()
            .root
            .unwrap()
            .children
            .iter()
            .map(|child| child.restarts)
            .max()
            .unwrap_or_default()
    }

    /// Stops in order; nothing of the tree is left.
    async fn stop(self) {
        let observer = self.tree.observer();
        self.tree.stop(Duration::from_secs(5)).await.unwrap();
        testing::assert_clean(&observer);
    }
}

fn run<F: Future<Output = ()>>(body: impl FnOnce(TreeOptions) -> F) {
    testing::run(7, body);
}

/// A server on virtual time.
fn sim(clock: &Clock, options: Options) -> ApiSim {
    let wall = clock.clone();
    let now = move || jiff::Timestamp::try_from(wall.wall()).unwrap();
    ApiSim::new(Options {
        time: Time::default().with_now(now),
        ..options
    })
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

#[test]
fn an_informer_lists_in_pages_and_follows_the_watch() {
    run(|options| async {
        let server = Server::default();
        for number in 0..7 {
            server.put(&format!("web-{number}"), json!({"replicas": number}));
        }
        let mut rig = Rig::with(
            &server,
            options,
            InformerOptions {
                page_size: 3,
                ..paged()
            },
        )
        .await;
        rig.fresh().await;
        assert_eq!(server.requests("list").len(), 3);
        assert_eq!(rig.lister.list().unwrap().len(), 7);
        assert_eq!(rig.hear().len(), 7);

        server.put("web-3", json!({"replicas": 30}));
        server.delete("web-4");
        server.put("new", json!({"replicas": 1}));
        rig.caught_up().await;
        assert_eq!(
            rig.lister.get(&key("web-3")).unwrap().unwrap()["spec"]["replicas"],
            30
        );
        assert_eq!(rig.lister.get(&key("web-4")).unwrap(), None);
        assert_eq!(
            rig.hear(),
            [
                "updated default/web-3@8 from 4",
                "deleted default/web-4@9",
                "created default/new@10"
            ]
        );
        let json = String::from_utf8(rig.core.get(&key("new")).unwrap().json().to_vec()).unwrap();
        assert!(!json.contains("managedFields"));
        assert_eq!(server.requests("watch").len(), 1);
        rig.stop().await;
    });
}

#[test]
fn a_crash_of_any_actor_keeps_the_store_and_loses_and_doubles_nothing() {
    for victim in 0..3 {
        run(|options| async move {
            let server = Server::default();
            for number in 0..40 {
                server.put(&format!("web-{number}"), json!({}));
            }
            let mut rig = Rig::start(&server, options).await;
            rig.fresh().await;
            assert_eq!(rig.hear().len(), 40);
            for round in 0..5_u64 {
                server.put(&format!("web-{round}"), json!({"round": round}));
                let (fifo, indexer, reflector) = rig.actors.lock().unwrap().clone().unwrap();
                match victim {
                    0 => fifo.tell(Crash),
                    1 => indexer.tell(Crash),
                    _ => reflector.tell(Crash),
                };
                server.delete(&format!("web-{}", 10 + round));
                server.put(&format!("new-{round}"), json!({}));
                rig.until("restarted", |rig| rig.restarts() > round).await;
                assert!(rig.core.synced());
                assert!(rig.lister.get(&key("web-39")).unwrap().is_some());
                server.delete(&format!("web-{}", 20 + round));
                rig.fresh().await;
                rig.caught_up().await;
            }
            let heard = rig.hear();
            assert_eq!(
                heard
                    .iter()
                    .filter(|text| text.starts_with("deleted"))
                    .count(),
                10,
                "{heard:#?}"
            );
            assert_eq!(
                rig.core
                    .status(rig.clock.now())
                    .counters
                    .relists
                    .values()
                    .sum::<u64>(),
                1
            );
            rig.stop().await;
        });
    }
}
