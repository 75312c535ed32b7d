use std::future::Future;
use std::time::Duration;

use boatswain_apisim::{ApiSim, Matcher};
use boatswain_supervision::{
    ChildSpec, Clock, Intensity, Strategy, SupervisorSpec, Tree, TreeOptions, testing,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::core::{DynamicObject, Expression, PartialObjectMeta};
use serde_json::json;

use super::SharedInformers;
use super::state::{Order, Roster};
use crate::core::InformerCore;
use crate::informer::InformerOptions;
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::lister::ReadError;
use crate::selection::Selection;
use crate::status::TroubleCause;
use crate::store::{Layout, StoreOptions};
use crate::subscription::Subscription;
use crate::transform::Transform;

mod selections;
mod uses;

/// Informers below a root, as a program has them, and their server.
struct Rig {
    server: ApiSim,
    informers: SharedInformers,
    tree: Tree,
    clock: Clock,
}

impl Rig {
    async fn start(options: TreeOptions) -> Self {
        let server = ApiSim::default();
        let client = kube::Client::new(server.service(), "default");
        let informers = SharedInformers::new(
            client,
            InformerOptions {
                page_size: 2,
                ..InformerOptions::default()
            },
        );
        Self::with(server, informers, options).await
    }

    async fn with(server: ApiSim, informers: SharedInformers, options: TreeOptions) -> Self {
        let clock = options.clock.clone();
        let below = informers.clone();
        let root = SupervisorSpec::new("root", Strategy::OneForOne);
        let root = root.intensity(Intensity::new(3, Duration::from_secs(1200)));
        let root = root.children(move |children| {
            children.add(ChildSpec::supervisor(below.supervisor("informers")));
        });
        let tree = Tree::start(root, options).await.unwrap();
        Self {
            server,
            informers,
            tree,
            clock,
        }
    }

    fn map(&self, name: &str, labels: serde_json::Value) -> serde_json::Value {
        self.map_in("default", name, labels)
    }

    fn map_in(&self, namespace: &str, name: &str, labels: serde_json::Value) -> serde_json::Value {
        let made = self.server.create(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name, "labels": labels}, "data": {"key": "value"},
        }));
        made.unwrap()
    }

    fn relabel(&self, name: &str, labels: &serde_json::Value) {
        let patch = json!({"metadata": {"labels": labels}});
        let patched = self
            .server
            .patch("v1", "ConfigMap", "default", name, &patch);
        patched.unwrap();
    }

    /// Requests of a verb so far.
    fn asked(&self, verb: &str) -> Vec<String> {
        let all = self.server.audit().into_iter();
        all.filter(|entry| entry.request.verb == verb)
            .map(|entry| entry.query)
            .collect()
    }

    /// Lists begun, streamed ones included.
    fn lists(&self) -> usize {
        let streamed = self.asked("watch").into_iter();
        let streamed = streamed.filter(|query| query.contains("sendInitialEvents=true"));
        self.asked("list").len() + streamed.count()
    }

    /// The informers that run.
    fn running(&self) -> Vec<String> {
        let children = self.tree.observer().children("root/informers");
        let children = children.unwrap_or_default().into_iter();
        let mut running: Vec<_> = children.map(|child| child.id).collect();
        running.retain(|id| id != "steward");
        running
    }

    async fn until(&self, what: &str, done: impl Fn() -> bool) {
        let end = self.clock.now() + Duration::from_secs(300);
        while self.clock.now() < end {
            if done() {
                return;
            }
            self.clock.sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "five minutes have passed, but not {what}: {:?}, {:#?}",
            self.running(),
            self.informers
        );
    }

    async fn stop(self) {
        let observer = self.tree.observer();
        self.tree.stop(Duration::from_secs(5)).await.unwrap();
        testing::assert_clean(&observer);
    }
}

fn run<F: Future<Output = ()>>(body: impl FnOnce(TreeOptions) -> F) {
    testing::run(7, body);
}

fn maps() -> Selection {
    Selection::of::<ConfigMap>()
}

fn labelled(label: &str) -> Selection {
    let condition = Expression::Equal("app".into(), label.into());
    maps().labels(condition).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

fn hear(subscription: &Subscription) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(batch) = subscription.take(100) {
        let changes = batch.changes().iter();
        heard.extend(changes.map(|(change, _)| {
            let text = format!("{change:?}");
            text.split('@').next().unwrap_or_default().to_owned()
        }));
        batch.ack();
    }
    heard
}

#[test]
fn however_many_use_a_selection_it_is_listed_and_watched_once() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let users: Vec<_> = (0..50).map(|_| rig.informers.informer(maps())).collect();
        for user in &users {
            user.wait_synced().await;
        }
        rig.until("fresh", || users[0].fresh()).await;
        assert_eq!((rig.lists(), rig.asked("watch").len()), (1, 1));
        assert_eq!(rig.running(), ["configmaps.v1,*"]);
        assert_eq!(rig.informers.cores().len(), 1);
        rig.stop().await;
    });
}

#[test]
fn an_informer_runs_while_somebody_uses_it_and_no_longer() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let handle = rig.informers.informer(maps());
        handle.wait_synced().await;
        let lister = handle.clone().lister::<ConfigMap>();
        let subscription = handle.view().subscribe("s", || {});
        let bare = handle.core().clone();
        let other = rig.informers.informer(labelled("web"));
        other.wait_synced().await;
        drop(handle);
        rig.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.running().len(), 2, "it is read and heard");
        drop(lister);
        rig.map("two", json!({}));
        rig.until("two heard", || subscription.depth() == 2).await;
        drop(subscription);
        rig.until("stopped", || rig.running().len() == 1).await;
        assert!(!bare.fresh(), "who kept the bare core sees that it stopped");
        assert!(other.fresh(), "others do not notice");
        assert_eq!(rig.informers.cores().len(), 1);

        let again = rig.informers.informer(maps());
        assert!(!again.synced(), "nothing was kept");
        again.wait_synced().await;
        assert_eq!(again.lister::<ConfigMap>().list().unwrap().len(), 2);
        rig.stop().await;
    });
}

#[test]
fn what_is_given_up_and_wanted_again_at_once_runs() {
    run(|options| async {
        let rig = Rig::start(options).await;
        for round in 0..200 {
            let handle = rig.informers.informer(maps());
            // anywhere between the order and its end
            for _ in 0..round % 12 {
                tokio::task::yield_now().await;
            }
            drop(handle);
            for _ in 0..round % 5 {
                tokio::task::yield_now().await;
            }
        }
        let handle = rig.informers.informer(maps());
        rig.until("fresh", || handle.fresh()).await;
        assert_eq!(rig.running(), ["configmaps.v1,*"]);
        rig.stop().await;
    });
}

#[test]
fn informers_survive_the_restart_of_their_supervisor_without_a_list() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let (one, two) = (
            rig.informers.informer(maps()),
            rig.informers.informer(labelled("web")),
        );
        rig.until("fresh", || one.fresh() && two.fresh()).await;
        let subscription = one.view().subscribe("s", || {});
        assert_eq!(hear(&subscription), ["created default/one"]);
        let lists = rig.lists();
        for round in 1..4 {
            assert!(rig.tree.observer().kill("root/informers"));
            drop(rig.informers.informer(maps().metadata_only()));
            rig.map(&format!("new-{round}"), json!({"app": "web"}));
            rig.until("caught up", || {
                one.fresh() && two.fresh() && two.get(&key(&format!("new-{round}"))).is_some()
            })
            .await;
            assert_eq!(
                hear(&subscription),
                [format!("created default/new-{round}")]
            );
            rig.until("two of them", || rig.running().len() == 2).await;
        }
        assert_eq!(rig.lists(), lists, "they resume");
        rig.stop().await;
    });
}

#[test]
fn informers_are_started_and_stopped_whatever_happens_to_the_steward() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let first = rig.informers.informer(maps());
        rig.until("fresh", || first.fresh()).await;
        assert!(rig.tree.observer().kill("root/informers/steward"));
        let second = rig.informers.informer(labelled("web"));
        drop(first);
        rig.until("the other one", || {
            second.fresh() && rig.running() == [second.selection().id()]
        })
        .await;
        // in the middle of an order
        let third = rig.informers.informer(labelled("db"));
        drop(second);
        tokio::task::yield_now().await;
        let _ = rig.tree.observer().kill("root/informers/steward");
        rig.until("the last one", || {
            third.fresh() && rig.running() == [third.selection().id()]
        })
        .await;
        rig.stop().await;
    });
}

#[test]
fn ten_thousand_informers_that_come_and_go_leave_nothing_behind() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let steady = rig.informers.informer(maps());
        rig.until("fresh", || steady.fresh()).await;
        let tasks = rig.tree.snapshot().tasks;
        let mut gone = Vec::new();
        for round in 0..10_000_u32 {
            let label = format!("app-{}", round % 100);
            let handle = rig.informers.informer(labelled(&label));
            if round % 100 == 0 {
                handle.wait_synced().await;
                gone.push(std::sync::Arc::downgrade(handle.core()));
            } else if round % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
        rig.until("quiet", || rig.running().len() == 1).await;
        rig.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(super::lock(&rig.informers.0.roster).len(), 1);
        assert_eq!(rig.tree.snapshot().tasks, tasks);
        assert!(
            gone.iter().all(|core| core.upgrade().is_none()),
            "every store is freed"
        );
        assert!(steady.fresh());
        rig.stop().await;
    });
}

#[test]
fn a_namespace_is_added_and_removed_live_and_the_others_are_not_listed_again() {
    run(|options| async {
        let rig = Rig::start(options).await;
        for namespace in ["a", "b", "c"] {
            let made =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            rig.server.create(made).unwrap();
            rig.map_in(namespace, "one", json!({}));
        }
        let scope = |name: &str| Scope::Namespace(name.into());
        let view = rig
            .informers
            .view(maps(), [scope("a"), scope("b")])
            .unwrap();
        let subscription = view.subscribe("s", || {});
        view.wait_synced().await;
        assert_eq!(hear(&subscription), ["created a/one", "created b/one"]);
        assert!(subscription.synced());
        let lists = rig.lists();

        view.add(rig.informers.informer(maps().within(scope("c"))))
            .unwrap();
        assert!(!subscription.synced(), "there is more to know");
        view.wait_synced().await;
        assert_eq!(hear(&subscription), ["created c/one"]);
        subscription.wait_synced().await;
        assert_eq!(rig.lists(), lists + 1);

        view.remove(&scope("a"));
        assert_eq!(hear(&subscription), ["vanished a/one"]);
        rig.until("stopped", || {
            rig.running() == ["configmaps.v1,b", "configmaps.v1,c"]
        })
        .await;
        rig.map_in("a", "two", json!({}));
        rig.map_in("b", "two", json!({}));
        rig.until("heard", || subscription.depth() > 0).await;
        assert_eq!(hear(&subscription), ["created b/two"]);
        let read = view.lister::<ConfigMap>().get(&Key::new(Some("a"), "two"));
        assert!(matches!(read, Err(ReadError::OutOfScope { .. })));
        assert_eq!(rig.lists(), lists + 1);
        rig.stop().await;
    });
}

#[test]
fn a_forbidden_kind_says_so_and_holds_up_no_other() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let pods = Matcher::any().resource("pods");
        rig.server.users().deny("admin", pods);
        let (pods, maps) = (
            rig.informers.informer(Selection::of::<Pod>()),
            rig.informers.informer(maps()),
        );
        rig.until("fresh", || maps.fresh()).await;
        rig.until("degraded", || pods.degraded().is_some()).await;
        let degraded = pods.degraded().unwrap();
        assert_eq!(degraded.cause, TroubleCause::Forbidden);
        assert!(!pods.synced());
        rig.server.users().reset("admin");
        rig.until("healed", || pods.fresh()).await;
        rig.stop().await;
    });
}

#[test]
fn a_subscriber_that_sleeps_holds_up_neither_the_watch_nor_others() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let informer = rig.informers.informer(maps());
        let (asleep, awake) = (
            informer.view().subscribe("asleep", || {}),
            informer.view().subscribe("awake", || {}),
        );
        rig.until("fresh", || informer.fresh()).await;
        assert_eq!((hear(&asleep).len(), hear(&awake).len()), (1, 1));
        let _in_hand = {
            rig.map("two", json!({}));
            rig.until("two", || asleep.depth() == 1).await;
            asleep.take(9).unwrap()
        };
        for round in 0..500 {
            rig.relabel("one", &json!({"round": round.to_string()}));
            if round % 10 == 0 {
                rig.clock.sleep(Duration::from_millis(10)).await;
                hear(&awake);
            }
        }
        rig.until("caught up", || {
            informer.get(&key("one")).is_some_and(|one| {
                one.labels()
                    .get("round")
                    .is_some_and(|round| round == "499")
            })
        })
        .await;
        let status = asleep.status(rig.clock.now());
        assert_eq!((status.depth, status.in_hand), (2, 1), "{status:?}");
        assert!(
            status.oldest_age.unwrap() >= Duration::from_millis(500),
            "{status:?}"
        );
        assert!(
            status.bytes > 0 && status.bytes < 4096,
            "one past state: {status:?}"
        );
        rig.stop().await;
    });
}

#[test]
fn a_resync_asks_nothing_of_the_server_and_tells_every_key_once_a_period() {
    run(|options| async {
        let rig = Rig::start(options).await;
        for number in 0..50 {
            rig.map(&format!("map-{number}"), json!({}));
        }
        let informer = rig.informers.informer(maps());
        let hourly = crate::SubscribeOptions {
            resync: Some(Duration::from_secs(3600)),
            ..crate::SubscribeOptions::default()
        };
        let subscription = informer.view().subscribe_with("s", hourly, || {});
        rig.until("fresh", || informer.fresh()).await;
        assert_eq!(hear(&subscription).len(), 50);
        let lists = rig.lists();
        let (begun, mut heard) = (rig.clock.now(), Vec::new());
        while let Some(due) = subscription.resync_due(rig.clock.now()) {
            let now = hear(&subscription);
            assert!(now.len() < 12, "not all at once: {now:?}");
            heard.extend(now);
            if due > begun + Duration::from_secs(3600) {
                break;
            }
            rig.clock.sleep_until(due).await;
        }
        heard.sort_unstable();
        heard.dedup();
        assert_eq!(heard.len(), 50);
        assert!(heard.iter().all(|text| text.starts_with("updated")));
        assert_eq!(rig.lists(), lists);
        rig.stop().await;
    });
}

#[test]
fn the_roster_runs_what_is_wanted_one_order_at_a_time() {
    let mut roster = Roster::default();
    let (first, _) = roster.lease("a", || 1);
    assert_eq!(roster.lease("a", || 2), (first, 1), "it is shared");
    assert_eq!(roster.orders(), [Order::Start("a".into(), 1)]);
    assert_eq!(roster.release("a", first), None);
    assert_eq!(roster.release("a", first), Some(1));
    assert_eq!(roster.orders(), [], "it is being started");
    let (second, what) = roster.lease("a", || 3);
    assert_eq!(what, 3);
    assert_eq!(
        roster.release("a", first),
        None,
        "the old number counts no more"
    );
    roster.started("a", true);
    assert_eq!(roster.orders(), [Order::Stop("a".into(), 1)]);
    assert_eq!(roster.orders(), []);
    roster.stopped("a");
    assert_eq!(roster.orders(), [Order::Start("a".into(), 3)]);
    roster.started("a", false);
    assert_eq!(roster.orders(), [Order::Start("a".into(), 3)], "again");
    roster.resume();
    assert_eq!(roster.orders(), []);
    assert_eq!(roster.release("a", second), Some(3));
    assert_eq!(roster.orders(), [Order::Stop("a".into(), 3)]);
    roster.resume();
    assert_eq!(roster.orders(), [Order::Stop("a".into(), 3)]);
    roster.stopped("a");
    assert_eq!(roster.len(), 0);
    let (number, _) = roster.lease("b", || 4);
    assert_eq!(roster.begin(), [4]);
    assert_eq!(roster.orders(), []);
    roster.release("b", number);
    assert_eq!(roster.begin(), [0; 0]);
    assert_eq!(roster.len(), 0);
}

#[test]
fn the_informers_keep_nobody_alive() {
    let informers = |client| SharedInformers::new(client, InformerOptions::default());
    let core = run_in_place(|client| {
        let informers = informers(client);
        let handle = informers.informer(maps());
        let weak: std::sync::Weak<InformerCore> = std::sync::Arc::downgrade(handle.core());
        drop(informers);
        assert!(weak.upgrade().is_some());
        weak
    });
    assert!(core.upgrade().is_none(), "no circle keeps a store");
}

fn run_in_place<T>(body: impl FnOnce(kube::Client) -> T) -> T {
    testing::run(1, |_| async {
        body(kube::Client::new(ApiSim::default().service(), "default"))
    })
}
