//! What every contestant does: runs keys as fast as it can, or as changes come, and says how it went.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use boatswain_supervision::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::options::{Ask, Shape, Task, Who};
use crate::{ours, peer};

/// How the line begins that says where a contestant serves its dashboard.
pub(crate) const DASHBOARD: &str = "dashboard: ";

/// What a measurement found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Runs a second.
    pub(crate) rate: f64,
    /// CPU of the process, in microseconds a run.
    pub(crate) cpu: f64,
    /// Microseconds from a change to its run: half of them, 99 and 99.9 in a hundred are faster.
    pub(crate) latency: [f64; 3],
}

/// What runs of a contestant note down.
pub(crate) struct Log {
    clock: Clock,
    origin: Instant,
    pub(crate) shape: Shape,
    /// How each run asks for the next of its key, if it does.
    pub(crate) ask: Option<Ask>,
    runs: AtomicU64,
    /// When the first change of each key was due that no run has seen; nanoseconds, 0 for none.
    due: Vec<AtomicU64>,
    latencies: Mutex<Vec<u64>>,
}

impl Log {
    fn new(task: &Task) -> Self {
        let clock = Clock::system();
        Self {
            origin: clock.now(),
            clock,
            shape: task.shape,
            ask: task.changes.is_none().then_some(task.ask),
            runs: AtomicU64::new(0),
            due: (0..task.keys).map(|_| AtomicU64::new(0)).collect(),
            latencies: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        (self.clock.now() - self.origin).as_nanos() as u64
    }

    /// A run of `object` begins.
    pub(crate) async fn run(&self, object: &ConfigMap) {
        if self.ask.is_none() {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let number: usize = name[1..].parse().expect("a number");
            let due = self.due[number].swap(0, Relaxed);
            if due > 0 {
                let latency = self.now().saturating_sub(due);
                self.latencies.lock().expect("whole").push(latency);
            }
        }
        if self.shape == Shape::Yield {
            tokio::task::yield_now().await;
        }
        self.runs.fetch_add(1, Relaxed);
    }

    fn runs(&self) -> u64 {
        self.runs.load(Relaxed)
    }
}

/// A contestant at work.
pub(crate) trait Contestant {
    /// Asks for a run of the key of this number.
    fn ask(&self, number: usize);
}

/// The objects that are reconciled.
pub(crate) fn objects(task: &Task) -> impl Iterator<Item = ConfigMap> {
    (0..task.keys).map(|number| ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(number)),
            namespace: Some("default".into()),
            uid: Some(format!("uid-{number}")),
            resource_version: Some("1".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

pub(crate) fn name(number: usize) -> String {
    format!("c{number}")
}

/// Measures, prints what was found and ends the process.
pub(crate) fn run(task: &Task) {
    if let Some(cores) = task.cores {
        let mut set = CpuSet::new();
        (0..cores).for_each(|core| set.set(core));
        sched_setaffinity(None, &set).expect("pinned");
    }
    let log: &'static Log = Box::leak(Box::new(Log::new(task)));
    let contestant: Box<dyn Contestant> = match task.who {
        Who::Boatswain => Box::new(ours::start(task, log)),
        Who::KubeRs => Box::new(peer::start(task, log)),
    };
    let found = measured(task, log, &*contestant);
    println!("{}", serde_json::to_string(&found).expect("plain data"));
    std::io::stdout().flush().expect("told");
    // neither is asked to stop what goes on for ever
    std::process::exit(0);
}

fn measured(task: &Task, log: &Log, contestant: &dyn Contestant) -> Found {
    let span = Duration::from_secs_f64(task.seconds);
    match task.changes {
        None => {
            (0..task.keys).for_each(|number| contestant.ask(number));
            sleep(span / 4);
        }
        Some(rate) => {
            send(log, contestant, rate, span / 4);
            log.latencies.lock().expect("whole").clear();
        }
    }
    let (begun, cpu_begun, runs_begun) = (log.now(), cpu(), log.runs());
    match task.changes {
        None => sleep(span),
        Some(rate) => send(log, contestant, rate, span),
    }
    let runs = (log.runs() - runs_begun) as f64;
    let (took, used) = ((log.now() - begun) as f64 / 1e9, cpu() - cpu_begun);
    let mut latencies = log.latencies.lock().expect("whole").clone();
    latencies.sort_unstable();
    let at = |part: f64| {
        let place = (latencies.len() as f64 * part) as usize;
        latencies
            .get(place)
            .map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
    };
    Found {
        rate: runs / took,
        cpu: used * 1e6 / runs,
        latency: match task.changes {
            Some(_) => [0.5, 0.99, 0.999].map(at),
            None => [0.0; 3],
        },
    }
}

/// Changes keys in turn, so many a second. Each counts from the moment it was due, late or not.
fn send(log: &Log, contestant: &dyn Contestant, rate: u32, span: Duration) {
    let begun = log.now();
    let gap = 1_000_000_000 / u64::from(rate);
    let count = span.as_nanos() as u64 / gap;
    for change in 0..count {
        let due = begun + change * gap;
        let now = log.now();
        if now < due {
            sleep(Duration::from_nanos(due - now));
        }
        let number = change as usize % log.due.len();
        // of changes that one run sees the first counts
        let _ = log.due[number].compare_exchange(0, due.max(1), Relaxed, Relaxed);
        contestant.ask(number);
    }
}

#[expect(clippy::disallowed_methods, reason = "others work meanwhile")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
