//! Lists that come as the first events of a watch, from servers that can and servers that cannot.

use boatswain_apisim::{Audit, Hold, Matcher, Rejection};
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

/// A server of config maps and its mirror.
struct Pair {
    sim: ApiSim,
    rig: Rig,
}

fn maps() -> Matcher {
    Matcher::any().resource("configmaps")
}

async fn mirror(sim: &ApiSim, tree: TreeOptions, options: InformerOptions) -> Rig {
    let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::Namespace("default".into()));
    let client = kube::Client::new(sim.service(), "default");
    Rig::around(core, client, tree, options).await
}

impl Pair {
    async fn start(count: usize, tree: TreeOptions, options: Options) -> Self {
        let sim = sim(&tree.clock, options);
        for number in 0..count {
            put(&sim, &format!("map-{number}"));
        }
        let rig = mirror(&sim, tree, InformerOptions::default()).await;
        Self { sim, rig }
    }

    fn requests(&self, verb: &str) -> Vec<String> {
        requests(&self.sim, verb)
    }

    fn is_mirrored(&self, rig: &Rig) -> bool {
        let objects = self.sim.list("v1", "ConfigMap", "default").unwrap();
        let text = |object: &Value| {
            let meta = &object["metadata"];
            let text = |member: &str| meta[member].as_str().unwrap().to_owned();
            (text("name"), text("resourceVersion"))
        };
        rig.state() == objects.iter().map(text).collect()
    }

    async fn caught_up(&self) {
        self.rig
            .until("caught up", |rig| rig.core.fresh() && self.is_mirrored(rig))
            .await;
    }

    /// The watch ends and what happens in `gap` is forgotten before the next begins.
    async fn gap(&self, gap: impl FnOnce(&ApiSim)) {
        self.rig.pass(20).await;
        let hold = self.sim.faults().hang(maps().verb("watch"));
        self.sim.faults().drop_watches();
        gap(&self.sim);
        self.sim.compact();
        hold.release();
    }

    fn counters(&self) -> crate::Counters {
        self.rig.core.status(self.rig.clock.now()).counters
    }

    fn relists(&self, reason: &str) -> u64 {
        self.counters()
            .relists
            .get(reason)
            .copied()
            .unwrap_or_default()
    }

    fn paged(&self) -> Option<String> {
        let status = self.rig.core.status(self.rig.clock.now());
        status.paged.map(|reason| reason.to_string())
    }
}

fn put(sim: &ApiSim, name: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    sim.create(map).unwrap();
}

fn change(sim: &ApiSim, name: &str, value: &str) {
    let patch = json!({"data": {"value": value}});
    sim.patch("v1", "ConfigMap", "default", name, &patch)
        .unwrap();
}

fn delete(sim: &ApiSim, name: &str) {
    sim.delete("v1", "ConfigMap", "default", name).unwrap();
}

/// Queries of the requests for config maps.
fn requests(sim: &ApiSim, verb: &str) -> Vec<String> {
    let asked =
        |audit: &Audit| audit.request.verb == verb && audit.request.resource == "configmaps";
    let audit = sim.audit().into_iter().filter(asked);
    audit.map(|audit| audit.query).collect()
}

fn is_stream(query: &str) -> bool {
    query.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
}

#[test]
fn one_request_lists_and_follows() {
    run(|options| async {
        let mut pair = Pair::start(300, options, Options::default()).await;
        pair.caught_up().await;
        assert_eq!(pair.rig.hear().len(), 300);
        change(&pair.sim, "map-7", "new");
        delete(&pair.sim, "map-8");
        pair.caught_up().await;
        let heard = pair.rig.hear();
        assert_eq!(heard.len(), 2);
        assert!(heard[1].starts_with("deleted default/map-8"), "{heard:?}");
        assert!(pair.requests("list").is_empty());
        let watches = pair.requests("watch");
        assert!(watches.len() == 1 && is_stream(&watches[0]), "{watches:?}");
        assert!(
            !watches[0].contains("resourceVersion="),
            "consistent, for nothing is known"
        );
        let counters = pair.counters();
        assert_eq!(
            (counters.streamed, counters.listed, counters.lists),
            (1, 300, 0)
        );
        assert_eq!(counters.relists["initial"], 1);
        pair.rig.stop().await;
    });
}

#[test]
fn after_a_gap_the_stream_tells_what_vanished_and_nothing_of_what_stayed() {
    run(|options| async {
        let mut pair = Pair::start(300, options, Options::default()).await;
        pair.caught_up().await;
        pair.rig.hear();
        let known = pair.rig.core.low_water().unwrap();
        pair.gap(|sim| {
            delete(sim, "map-1");
            delete(sim, "map-2");
            put(sim, "map-2");
            change(sim, "map-3", "new");
        })
        .await;
        pair.caught_up().await;
        let mut heard = pair.rig.hear();
        heard.sort();
        let begins: Vec<_> = heard
            .iter()
            .map(|text| text.split('@').next().unwrap())
            .collect();
        assert_eq!(
            begins,
            [
                "created default/map-2",
                "updated default/map-3",
                "vanished default/map-1",
                "vanished default/map-2"
            ]
        );
        let watches = pair.requests("watch");
        let stream = watches.iter().rev().find(|query| is_stream(query)).unwrap();
        assert!(
            stream.contains(&format!("resourceVersion={known}&")),
            "{stream}"
        );
        assert_eq!(pair.counters().unchanged, 297);
        pair.rig.stop().await;
    });
}

#[test]
fn what_happens_while_a_list_is_streamed_is_part_of_it() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        for name in ["stays", "changes", "goes", "returns"] {
            put(&sim, name);
        }
        let hold = sim.faults().withhold_initial_end(maps());
        let rig = mirror(&sim, options, InformerOptions::default()).await;
        let mut pair = Pair { sim, rig };
        pair.rig.pass(10).await;
        assert!(!pair.rig.core.synced());
        change(&pair.sim, "changes", "new");
        delete(&pair.sim, "goes");
        delete(&pair.sim, "returns");
        put(&pair.sim, "returns");
        put(&pair.sim, "comes");
        pair.rig.pass(10).await;
        assert!(!pair.rig.core.synced());
        hold.release();
        pair.caught_up().await;
        pair.rig.hear();
        let told: Vec<_> = pair
            .rig
            .told
            .keys()
            .map(|key| key.name().to_owned())
            .collect();
        assert_eq!(told, ["changes", "comes", "returns", "stays"]);
        assert_eq!(
            (pair.requests("list").len(), pair.requests("watch").len()),
            (0, 1)
        );
        pair.rig.stop().await;
    });
}

/// kubernetes/kubernetes#140890, kubernetes/kubernetes#129408
#[test]
fn an_end_bookmark_that_never_comes_costs_half_a_minute_once_and_is_said_so() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        put(&sim, "a");
        let _hold: Hold = sim.faults().withhold_initial_end(maps());
        let informers = InformerOptions::default();
        let rig = mirror(&sim, options.clone(), informers.clone()).await;
        let mut pair = Pair { sim, rig };
        pair.rig.pass(29).await;
        assert!(!pair.rig.core.synced());
        pair.rig.pass(2).await;
        assert!(pair.rig.core.synced() && pair.rig.core.fresh());
        assert_eq!(
            pair.paged().as_deref(),
            Some("the end of the initial events never comes")
        );
        assert_eq!(pair.rig.hear().len(), 1);
        assert_eq!(pair.counters().unstreamed, 1);

        let another = mirror(&pair.sim, options, informers).await;
        another.pass(1).await;
        assert!(another.core.synced(), "it does not try again");
        let streams = |pair: &Pair| {
            let watches = pair.requests("watch");
            watches.iter().filter(|query| is_stream(query)).count()
        };
        assert_eq!(streams(&pair), 1);
        pair.gap(|sim| put(sim, "b")).await;
        pair.caught_up().await;
        assert_eq!(streams(&pair), 1);
        pair.rig.pass(3600).await;
        pair.gap(|sim| put(sim, "c")).await;
        pair.caught_up().await;
        assert!(
            streams(&pair) > 1,
            "after an hour the server may have learnt it"
        );
        another.stop().await;
        pair.rig.stop().await;
    });
}

#[test]
fn a_trickle_of_changes_does_not_pass_for_the_end_of_a_list() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        put(&sim, "a");
        let _hold: Hold = sim.faults().withhold_initial_end(maps());
        let rig = mirror(&sim, options, InformerOptions::default()).await;
        let pair = Pair { sim, rig };
        for second in 0..320 {
            if second == 290 {
                assert!(!pair.rig.core.synced());
            }
            change(&pair.sim, "a", &second.to_string());
            pair.rig.pass(1).await;
        }
        assert!(pair.rig.core.synced(), "{:?}", pair.paged());
        pair.rig.stop().await;
    });
}

#[test]
fn a_server_before_1_27_refuses_the_stream_once_and_is_asked_for_pages() {
    run(|options| async {
        let old = Options {
            watch_list: false,
            ..Options::default()
        };
        let mut pair = Pair::start(3, options, old).await;
        pair.rig.pass(1).await;
        assert!(pair.rig.core.fresh(), "at once");
        assert_eq!(
            pair.paged().as_deref(),
            Some("the server refuses it with 422")
        );
        assert_eq!(pair.rig.core.degraded(), None);
        assert_eq!(pair.rig.hear().len(), 3);
        pair.gap(|sim| delete(sim, "map-0")).await;
        pair.caught_up().await;
        assert_eq!(pair.rig.hear().len(), 1);
        let watches = pair.requests("watch");
        assert_eq!(watches.iter().filter(|query| is_stream(query)).count(), 1);
        assert_eq!(pair.requests("list").len(), 2);
        pair.rig.stop().await;
    });
}

#[test]
fn a_stream_that_is_cut_off_before_its_end_deletes_nothing() {
    run(|options| async {
        let mut pair = Pair::start(20, options, Options::default()).await;
        pair.caught_up().await;
        pair.rig.hear();
        pair.sim.faults().cut_initial_events(maps(), 5, 1);
        pair.gap(|sim| delete(sim, "map-3")).await;
        pair.rig
            .until("cut off", |_| pair.relists("expired") == 1)
            .await;
        pair.rig.clock.sleep(Duration::from_millis(10)).await;
        assert_eq!(pair.rig.state().len(), 20);
        pair.caught_up().await;
        let heard = pair.rig.hear();
        assert!(
            heard.len() == 1 && heard[0].starts_with("vanished default/map-3"),
            "{heard:?}"
        );
        assert_eq!(pair.relists("expired"), 2);
        assert!(pair.requests("list").is_empty());
        pair.rig.stop().await;
    });
}

#[test]
fn a_stream_that_is_cut_off_twice_is_replaced_by_pages() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        for number in 0..20 {
            put(&sim, &format!("map-{number}"));
        }
        sim.faults().cut_initial_events(maps(), 5, 100);
        let rig = mirror(&sim, options, InformerOptions::default()).await;
        let pair = Pair { sim, rig };
        pair.rig.pass(3).await;
        assert!(pair.rig.core.synced());
        assert!(
            pair.paged()
                .unwrap()
                .contains("ends before the initial events do")
        );
        assert_eq!(
            (pair.requests("list").len(), pair.rig.state().len()),
            (1, 20)
        );
        pair.rig.stop().await;
    });
}

#[test]
fn a_stream_waits_for_a_slow_indexer_and_is_not_held_responsible_for_it() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        for number in 0..3000 {
            put(&sim, &format!("map-{number}"));
        }
        let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::Namespace("default".into()));
        core.stall(true);
        let client = kube::Client::new(sim.service(), "default");
        let rig = Rig::around(core.clone(), client, options, InformerOptions::default()).await;
        let pair = Pair { sim, rig };
        pair.rig.pass(280).await;
        let (pending, most) = pair.rig.core.pending();
        assert!(pending <= 1024 && most <= 1024, "{pending} {most}");
        core.stall(false);
        let (_, indexer, _) = pair.rig.actors.lock().unwrap().clone().unwrap();
        indexer.tell(crate::indexer::actor::HandFull);
        pair.caught_up().await;
        assert_eq!((pair.paged(), pair.requests("list").len()), (None, 0));
        pair.rig.stop().await;
    });
}

#[test]
fn a_server_set_back_in_time_is_found_out_by_its_silence_or_by_the_list_it_cannot_stream() {
    for expires in [false, true] {
        run(|options| async move {
            let mut pair = Pair::start(5, options, Options::default()).await;
            pair.caught_up().await;
            let backup = pair.sim.snapshot();
            for number in 10..20 {
                put(&pair.sim, &format!("map-{number}"));
            }
            pair.caught_up().await;
            pair.rig.hear();
            if expires {
                pair.sim
                    .faults()
                    .reject(maps().verb("watch"), Rejection::new(410));
            }
            pair.sim.restore(&backup);
            pair.caught_up().await;
            let heard = pair.rig.hear();
            let vanished = heard.iter().filter(|text| text.starts_with("vanished"));
            assert_eq!(vanished.count(), 10, "{heard:?}");
            let counters = pair.counters();
            assert_eq!(
                (counters.histories, counters.probes),
                (1, u64::from(!expires))
            );
            assert_eq!(pair.requests("list").len(), if expires { 1 } else { 2 });
            pair.rig.stop().await;
        });
    }
}

#[test]
fn streams_can_be_turned_off() {
    run(|options| async {
        let sim = sim(&options.clock, Options::default());
        put(&sim, "a");
        let rig = mirror(&sim, options, paged()).await;
        let pair = Pair { sim, rig };
        pair.caught_up().await;
        assert!(!is_stream(&pair.requests("watch")[0]));
        assert_eq!(pair.requests("list").len(), 1);
        pair.rig.stop().await;
    });
}
