//! Facts about dispatch, played on one thread in virtual time: the same seed gives the same run.

mod comings;
mod connection;
mod crashes;
mod decisions;
mod events;
mod explain;
mod finalizers;
mod fleet;
mod guarantees;
mod isolation;
mod leadership;
mod lessons;
mod own_leases;
mod parking;
mod pauses;
mod predicates;
mod retries;
mod selections;
mod spans;
mod stops;
mod storm;
mod triggers;
mod updates;
mod urgency;
mod writes;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use boatswain::{
    Clock, Context, Controller, Key, Manager, Options, Outcome, Reconciler, Running, Wiring,
    key_of, testing::assert_clean,
};
use boatswain_apisim::ApiSim;
use boatswain_supervision::{TreeOptions, testing};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// A simulated server without sockets, a client and the clock everything runs on.
struct Stage {
    sim: ApiSim,
    client: Client,
    clock: Clock,
    options: TreeOptions,
}

impl Stage {
    /// Plays `body` from `seed`, which is printed when it fails.
    fn play<F: Future>(seed: u64, body: impl FnOnce(Self) -> F) -> F::Output {
        println!("seed {seed}");
        testing::run(seed, |options| {
            let clock = options.clock.clone();
            let wall = clock.clone();
            let now = move || jiff::Timestamp::try_from(wall.wall()).expect("in range");
            let sim = ApiSim::new(boatswain_apisim::Options {
                time: boatswain_apisim::Time::default().with_now(now),
                seed,
                ..boatswain_apisim::Options::default()
            });
            body(Self {
                sim: sim.clone(),
                client: Client::new(sim.service(), "default"),
                clock,
                options,
            })
        })
    }

    async fn start(&self, controller: boatswain::Runnable) -> Running {
        self.start_with(Options::default(), controller).await
    }

    async fn start_with(&self, options: Options, controller: boatswain::Runnable) -> Running {
        self.manage(Manager::new(options).with(controller)).await
    }

    async fn manage(&self, manager: Manager) -> Running {
        let (clock, entropy) = (self.clock.clone(), self.options.entropy.clone());
        manager
            .start(self.client.clone(), clock, entropy)
            .await
            .expect("started")
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, name: &str) {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        self.maps()
            .create(&PostParams::default(), &map)
            .await
            .expect("created");
    }

    async fn delete(&self, name: &str) {
        self.maps()
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }

    async fn touch(&self, name: &str, value: &str) {
        self.patch(name, json!({ "data": { "value": value } }))
            .await;
    }

    async fn patch(&self, name: &str, patch: serde_json::Value) {
        self.maps()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched");
    }
}

/// Stops in order; nothing of the manager is left.
async fn end(running: Running) {
    let observer = running.observer().clone();
    running.stop().await.expect("nothing still runs");
    assert_clean(&observer);
}

/// The value on the page of metrics of `series`: a name, or a name and all of its labels. Of several of a name it is the first.
fn metric<T: FromStr>(running: &Running, series: &str) -> T {
    let page = running.observer().metrics();
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(series);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let line = page.lines().find(is_it);
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in {page}"))
}

/// One run of a key, as the reconciler saw it.
#[derive(Clone, Debug)]
struct Seen {
    begun: Instant,
    ended: Option<Instant>,
    value: Option<String>,
    attempt: u32,
}

/// A reconciler that does what the test's script says and writes down every run.
#[derive(Clone)]
struct Scripted {
    clock: Clock,
    script: fn(&Key) -> Script,
    seen: Arc<Mutex<BTreeMap<Key, Vec<Seen>>>>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Work(Duration),
    Panic,
    Hang,
}

impl Scripted {
    fn new(clock: &Clock, script: fn(&Key) -> Script) -> Self {
        Self {
            clock: clock.clone(),
            script,
            seen: Arc::default(),
        }
    }

    fn controller(&self) -> Controller<ConfigMap> {
        Controller::<ConfigMap>::named("scripted").resync(None)
    }

    /// What a controller makes its reconciler by: this one, which the test goes on looking at.
    fn maker(&self) -> impl FnOnce(&mut Wiring<'_>) -> Self + Send + use<> {
        let scripted = self.clone();
        move |_| scripted
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<Seen>>> {
        self.seen.lock().expect("lock")
    }

    fn runs(&self, name: &str) -> Vec<Seen> {
        self.seen()
            .get(&Key::new(Some("default"), name))
            .cloned()
            .unwrap_or_default()
    }

    /// No two runs of a key overlapped. A run that panicked or was cancelled has no end: it must not be followed within its own instant.
    fn assert_one_at_a_time(&self) {
        for (key, runs) in self.seen().iter() {
            for pair in runs.windows(2) {
                let end = pair[0].ended.unwrap_or(pair[0].begun);
                assert!(end <= pair[1].begun, "two runs of {key} overlap: {pair:?}");
            }
        }
    }
}

impl Reconciler<ConfigMap> for Scripted {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        let key = key_of(map.as_ref());
        let value = map
            .data
            .as_ref()
            .and_then(|data| data.get("value").cloned());
        let seen = Seen {
            begun: self.clock.now(),
            ended: None,
            value,
            attempt: cx.attempt(),
        };
        self.seen().entry(key.clone()).or_default().push(seen);
        match (self.script)(&key) {
            Script::Work(time) => self.clock.sleep(time).await,
            Script::Panic => panic!("scripted"),
            Script::Hang => std::future::pending().await,
        }
        if let Some(run) = self.seen().get_mut(&key).and_then(|runs| runs.last_mut()) {
            run.ended = Some(self.clock.now());
        }
        Ok(Outcome::Done)
    }
}
