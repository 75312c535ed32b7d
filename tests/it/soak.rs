//! Everything that can go wrong, for as long as one likes: objects come and go and change, the API server dies, connections break, actors are killed.
//! Memory must stay flat, and in the end everything is as was asked for last.
//!
//! Two minutes, or as many seconds as `BOATSWAIN_SOAK` says; `cargo test -p boatswain-tests --test soak -- --nocapture` shows the figures.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use boatswain::Clock;
use boatswain_supervision::Entropy;
use boatswain_tests::{
    Crew, Load, Proxy, Space, World, autoscaler, deployment, eventually, redirected,
};
use kube::api::{DeleteParams, ListParams, PostParams};

const SECOND: Duration = Duration::from_secs(1);
/// Pairs whose wishes change all the time.
const PAIRS: usize = 30;
/// What the resident memory of the whole process may have grown by at the end, beside a tenth: heaps are not given back to the page.
const SLACK: u64 = 16 << 20;
/// Who is killed, in this order. Workers stand for user code and may die as often as they like; of the others no supervisor is driven to give up.
const VICTIMS: [&str; 12] = [
    "worker-",
    "shard-",
    "worker-",
    "trigger-",
    "worker-",
    "reflector",
    "worker-",
    "limiter",
    "worker-",
    "indexer",
    "worker-",
    "fifo",
];

/// What has happened.
#[derive(Debug, Default)]
struct Figures {
    came_and_went: AtomicUsize,
    servers_killed: AtomicUsize,
    connections_broken: AtomicUsize,
    actors_killed: AtomicUsize,
}

struct Soak {
    world: World,
    space: Space,
    crew: Crew,
    proxy: Proxy,
    clock: Clock,
    entropy: Entropy,
    figures: Figures,
    ending: AtomicBool,
}

impl Soak {
    async fn begin(seed: u64) -> Self {
        // the simulated server lives in this process: what it remembers must not grow either
        let world = World::sim_with(boatswain_apisim::Options {
            audit_limit: 100,
            watch_window: 200,
            ..boatswain_apisim::Options::default()
        })
        .await;
        let space = Space::create(&world.client().await, "soak").await;
        let proxy = Proxy::before(world.address()).await.expect("a proxy");
        let dir = tempfile::tempdir().expect("a folder");
        let kubeconfig = dir.path().join("kubeconfig");
        redirected(
            world.kubeconfig(),
            world.address(),
            proxy.address(),
            &kubeconfig,
        );
        let controllers = vec![podautoscaler::controller()];
        let crew = Crew::start(&kubeconfig, Some(&space), controllers).await;
        crew.ready().await;
        Self {
            world,
            space,
            crew,
            proxy,
            clock: Clock::system(),
            entropy: Entropy::seeded(seed),
            figures: Figures::default(),
            ending: AtomicBool::new(false),
        }
    }

    fn goes_on(&self) -> bool {
        !self.ending.load(SeqCst)
    }

    /// Between half of `about` and one and a half.
    async fn pause(&self, about: Duration) {
        self.clock.sleep(self.entropy.jitter(about, 0.5)).await;
    }

    /// Objects under names that never were before, some gone before anybody could look at them.
    async fn objects_come_and_go(&self) {
        let (deployments, wishes) = (self.space.deployments(), self.space.autoscalers());
        let (post, delete) = (PostParams::default(), DeleteParams::default());
        for number in 0.. {
            if !self.goes_on() {
                return;
            }
            let name = format!("guest-{number}");
            let (target, wish) = (deployment(&name, 0), autoscaler(&name, &name, 1));
            // whoever made them may not have been told so: the server is killed now and then
            let there = |made: kube::Result<()>| match made {
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
                other => other.map_err(|error| error.to_string()),
            };
            eventually("a Deployment comes", async || {
                there(deployments.create(&post, &target).await.map(drop))
            })
            .await;
            eventually("a PodAutoscaler comes", async || {
                there(wishes.create(&post, &wish).await.map(drop))
            })
            .await;
            if self.entropy.unit() < 0.5 {
                self.space.has_replicas(&name, 1).await;
            }
            eventually("a PodAutoscaler goes", async || {
                there(wishes.delete(&name, &delete).await.map(drop))
            })
            .await;
            eventually("a Deployment goes", async || {
                there(deployments.delete(&name, &delete).await.map(drop))
            })
            .await;
            self.figures.came_and_went.fetch_add(1, SeqCst);
            self.pause(SECOND / 10).await;
        }
    }

    async fn servers_die(&self) {
        loop {
            self.pause(10 * SECOND).await;
            if !self.goes_on() {
                return;
            }
            self.world.kill().await;
            self.pause(SECOND).await;
            self.world.revive().await;
            self.figures.servers_killed.fetch_add(1, SeqCst);
        }
    }

    async fn connections_break(&self) {
        loop {
            self.pause(4 * SECOND).await;
            if !self.goes_on() {
                return;
            }
            self.proxy.reset();
            self.figures.connections_broken.fetch_add(1, SeqCst);
        }
    }

    async fn actors_die(&self) {
        for victim in VICTIMS.iter().cycle() {
            self.pause(3 * SECOND).await;
            if !self.goes_on() {
                return;
            }
            let observer = self.crew.observer();
            let snapshot = observer.snapshot();
            let mut paths = Vec::new();
            let mut nodes: Vec<_> = snapshot.root.iter().collect();
            while let Some(node) = nodes.pop() {
                nodes.extend(&node.children);
                if node.id.starts_with(victim) {
                    paths.push(node.path.clone());
                }
            }
            let chosen = (self.entropy.unit() * paths.len() as f64) as usize;
            let path = paths.get(chosen).expect("there is one");
            self.figures
                .actors_killed
                .fetch_add(usize::from(observer.kill(path)), SeqCst);
        }
    }

    /// Resident memory in bytes, each second until `time` has passed; then everything else ends, too.
    async fn memory(&self, time: Duration) -> Vec<u64> {
        let end = self.clock.now() + time;
        let mut samples = Vec::new();
        while self.clock.now() < end {
            self.clock.sleep(SECOND).await;
            samples.push(resident());
        }
        self.ending.store(true, SeqCst);
        samples
    }

    /// Waits until nothing is on its way, and compares what is cached with what there is.
    async fn is_exact(&self) {
        self.crew.ready().await;
        eventually("nothing is left to do", async || {
            let depth = self.crew.metric("controller_queue_depth", &[]);
            let active = self.crew.metric("controller_runtime_active_workers", &[]);
            let parked = self.crew.observer().parked("podautoscaler").len();
            if depth + active == 0.0 && parked == 0 {
                Ok(())
            } else {
                Err((depth, active, parked))
            }
        })
        .await;
        let wishes = self.space.autoscalers().list(&ListParams::default()).await;
        let wishes = wishes.expect("a list").items.len();
        assert_eq!(wishes, PAIRS, "guests stayed");
        eventually("caches hold what there is", async || {
            let held = self.crew.metric("cache_objects", &["podautoscalers"]);
            if held == PAIRS as f64 {
                Ok(())
            } else {
                Err(held)
            }
        })
        .await;
    }
}

/// Of this process, as Linux tells it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.expect("a number of kB") << 10
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_g9_whatever_dies_memory_stays_flat_and_the_end_is_exact() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let time = Duration::from_secs(number("BOATSWAIN_SOAK").unwrap_or(120));
    let seed = number("BOATSWAIN_SEED").unwrap_or_else(|| Entropy::from_os().next());
    println!("{time:?}; the same choices again: BOATSWAIN_SEED={seed}");
    let soak = Soak::begin(seed).await;
    let load = Load::begin(&soak.space, PAIRS, SECOND / 20).await;
    let (samples, ..) = tokio::join!(
        soak.memory(time),
        soak.objects_come_and_go(),
        soak.servers_die(),
        soak.connections_break(),
        soak.actors_die(),
    );
    let changes = load.end().await;
    soak.is_exact().await;
    let runs = soak.crew.metric("controller_runtime_reconcile_total", &[]);
    let quarter = samples.len() / 4;
    let (early, late) = (
        median(&samples[quarter..2 * quarter]),
        median(&samples[3 * quarter..]),
    );
    println!(
        "{changes} changes, {runs} runs, {:?}; resident {} MiB in the second quarter, {} MiB in the last; all is as was asked for",
        soak.figures,
        early >> 20,
        late >> 20,
    );
    let Figures {
        came_and_went,
        servers_killed,
        connections_broken,
        actors_killed,
    } = &soak.figures;
    for happened in [
        came_and_went,
        servers_killed,
        connections_broken,
        actors_killed,
    ] {
        assert!(happened.load(SeqCst) > 0, "{:?}", soak.figures);
    }
    assert!(
        late <= early + early / 10 + SLACK,
        "memory grew from {early} to {late}: {samples:?}"
    );
    soak.crew.stop().await;
}
