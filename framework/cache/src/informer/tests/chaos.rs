//! An informer of a simulated API server under everything that can go wrong at once.

use boatswain_apisim::{ApiSim, Hold, Matcher, Options, Rejection, Snapshot};
use boatswain_supervision::Entropy;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

/// A server, its faults, and the informer that has to live with them.
struct Storm {
    sim: ApiSim,
    rig: Rig,
    dice: Entropy,
    stalled: Option<Hold>,
    withheld: Option<Hold>,
    backup: Option<Snapshot>,
}

fn stormy() -> Options {
    Options {
        watch_window: 50,
        ..Options::default()
    }
}

impl Storm {
    async fn begin(seed: u64, tree: TreeOptions) -> Self {
        let sim = sim(&tree.clock, stormy());
        let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::Namespace("default".into()));
        let options = InformerOptions {
            page_size: 7,
            ..InformerOptions::default()
        };
        let rig = Rig::around(
            core,
            kube::Client::new(sim.service(), "default"),
            tree,
            options,
        )
        .await;
        Self {
            sim,
            rig,
            dice: Entropy::seeded(seed),
            stalled: None,
            withheld: None,
            backup: None,
        }
    }

    /// What the server has, and what the mirror has: versions and contents by name.
    fn both(&self, restores: bool) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let text = |object: &Value| {
            let meta = &object["metadata"];
            // a server that uses versions a second time, and has passed ours when it is asked, is not found out
            let content = if restores {
                &Value::Null
            } else {
                &object["data"]["n"]
            };
            (
                meta["name"].as_str().unwrap().to_owned(),
                format!("{} {} {content}", meta["uid"], meta["resourceVersion"]),
            )
        };
        let server = self
            .sim
            .list("v1", "ConfigMap", "default")
            .unwrap()
            .iter()
            .map(text)
            .collect();
        (
            server,
            self.rig
                .core
                .reader()
                .list(None)
                .iter()
                .map(|object| text(&object.decode::<Value>().unwrap()))
                .collect(),
        )
    }

    fn write(&self) {
        let name = format!("map-{}", self.dice.range(0..30));
        let number = self.dice.range(0..1_000_000).to_string();
        let exists = self
            .sim
            .get("v1", "ConfigMap", "default", &name)
            .unwrap()
            .is_some();
        if !exists {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"n": number}});
            self.sim.create(map).unwrap();
        } else if self.dice.range(0..3) == 0 {
            self.sim
                .delete("v1", "ConfigMap", "default", &name)
                .unwrap();
        } else {
            self.sim
                .patch(
                    "v1",
                    "ConfigMap",
                    "default",
                    &name,
                    &json!({"data": {"n": number}}),
                )
                .unwrap();
        }
    }

    fn misfortune(&mut self, restores: bool) {
        let maps = || Matcher::any().resource("configmaps");
        let (fifo, indexer, reflector) = self.rig.actors.lock().unwrap().clone().unwrap();
        let faults = self.sim.faults();
        match self.dice.range(0..18) {
            0 => faults.drop_watches(),
            1 => self.sim.compact(),
            2 => drop(fifo.tell(Crash)),
            3 => drop(indexer.tell(Crash)),
            4 => drop(reflector.tell(Crash)),
            5 => faults.unreachable(true),
            6 => faults.unreachable(false),
            7 => faults.reject(
                maps().verb("list"),
                Rejection::new([410, 429, 500, 403][self.dice.range(0..4) as usize]).retry_after(3),
            ),
            8 => faults.reject(
                maps().verb("watch"),
                Rejection::new([410, 429, 500, 404][self.dice.range(0..4) as usize]),
            ),
            9 => self.stalled = Some(faults.stall_watches(maps())),
            10 => self.stalled = None,
            11 => faults.lose_answers(maps().verb("list"), 1),
            12 => {
                self.rig.core.relist();
            }
            13 => self.withheld = Some(faults.withhold_initial_end(maps())),
            14 => self.withheld = None,
            15 => faults.cut_initial_events(maps(), self.dice.range(0..20) as usize, 1),
            16 => faults.delay(maps().verb("watch"), Duration::from_secs(20), 1),
            _ if !restores => {}
            _ => match self.backup.take() {
                None => self.backup = Some(self.sim.snapshot()),
                Some(backup) => {
                    self.sim.restore(&backup);
                    // once the server has used the versions again nobody can tell, so whoever restores it asks for a list
                    self.rig.core.relist();
                }
            },
        }
    }

    async fn rage(&mut self, restores: bool) {
        for _ in 0..60 {
            for _ in 0..self.dice.range(0..12) {
                self.write();
            }
            if self.dice.range(0..2) == 0 {
                self.misfortune(restores);
            }
            if self.dice.range(0..3) == 0 {
                self.rig.hear();
            }
            let pause =
                Duration::from_millis([0, 1, 50, 2_000, 30_000][self.dice.range(0..5) as usize]);
            self.rig.clock.sleep(pause).await;
        }
    }

    async fn calm(&mut self, restores: bool) {
        (self.stalled, self.withheld) = (None, None);
        self.sim.faults().clear();
        let sim = &*self;
        self.rig
            .until("caught up", |rig| {
                let (server, mirror) = sim.both(restores);
                rig.core.fresh() && server == mirror
            })
            .await;
        assert!(self.rig.core.degraded().is_none());
    }
}

fn storms(seeds: std::ops::Range<u64>, restores: bool) {
    for seed in seeds {
        println!("seed {seed}");
        testing::run(seed, |options| async move {
            let mut storm = Storm::begin(seed, options).await;
            storm.rage(restores).await;
            storm.calm(restores).await;
            storm.rig.hear();
            let told: BTreeMap<_, _> = storm
                .rig
                .told
                .iter()
                .map(|(key, version)| (key.name().to_owned(), version.clone()))
                .collect();
            assert_eq!(told, storm.rig.state());
            assert_eq!(storm.rig.subscription.depth(), 0);
            storm.rig.stop().await;
        });
    }
}

#[test]
fn whatever_happens_the_mirror_and_its_subscriber_end_as_the_server() {
    storms(0..30, false);
}

#[test]
fn a_server_that_goes_back_in_time_is_followed_too() {
    storms(100..115, true);
}

#[test]
fn typed_objects_of_a_wire_compatible_server_are_read() {
    run(|options| async {
        let sim = sim(&options.clock, stormy());
        let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::All);
        let rig = Rig::around(
            core.clone(),
            kube::Client::new(sim.service(), "default"),
            options,
            InformerOptions::default(),
        )
        .await;
        let lister = Lister::<ConfigMap>::new(core);
        rig.fresh().await;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"n": "1"}});
        let created = sim.create(map).unwrap();
        let version = created["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .into();
        rig.core.wait_for(&key("a"), &version).await.unwrap();
        assert_eq!(
            lister
                .get(&key("a"))
                .unwrap()
                .unwrap()
                .data
                .as_ref()
                .unwrap()["n"],
            "1"
        );
        sim.faults()
            .corrupt("", "configmaps", "default", "a", json!({"data": "corrupt"}));
        sim.patch(
            "v1",
            "ConfigMap",
            "default",
            "a",
            &json!({"data": {"n": "2"}}),
        )
        .unwrap();
        rig.until("undecodable", |_| {
            matches!(lister.get(&key("a")), Err(ReadError::Undecodable(_)))
        })
        .await;
        assert_eq!(rig.core.status(rig.clock.now()).undecodable[0].0, key("a"));
        rig.stop().await;
    });
}
