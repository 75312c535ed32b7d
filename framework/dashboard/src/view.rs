//! What is shown, as plain data: the JSON of the API. Times are milliseconds since 1970-01-01T00:00:00Z, or spans in milliseconds.

use std::collections::BTreeMap;

use boatswain_supervision::{Event, TreeSnapshot};
use serde::{Deserialize, Serialize};

/// Everything at one moment: what the stream tells once a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// When.
    pub at_ms: u64,
    /// The first thing to read.
    pub health: Health,
    /// The process.
    pub process: Process,
    /// Whether actions are possible with a token.
    pub actions: bool,
    /// The supervision tree.
    pub tree: TreeSnapshot,
    /// What happened in it lately, the newest last.
    pub events: Vec<Event>,
    /// The controllers.
    pub controllers: Vec<ControllerView>,
    /// The informers.
    pub informers: Vec<InformerView>,
    /// The leases, where replicas are elected: one for all controllers, or one for each.
    pub leases: Vec<LeaseView>,
}

/// The process that is looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// What it is called: the name of its program.
    pub name: String,
    /// On which machine or in which pod.
    pub host: String,
    /// Since when the dashboard has been looking.
    pub since_ms: u64,
    /// What is logged at present, as in `RUST_LOG`; absent where the program has set up its logs itself.
    pub logged: Option<String>,
}

/// Whether all is well, and if not, what is stuck, why, and since when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The worst of the troubles.
    pub level: Level,
    /// One sentence.
    pub line: String,
    /// All of them, the worst first, then the oldest.
    pub troubles: Vec<Trouble>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// All is well.
    #[default]
    Ok,
    /// Somebody wants it so, or it is on its way.
    Notice,
    /// Something does not work; it is being tried again.
    Warning,
    /// Something does not work and will not by itself.
    Critical,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// How bad.
    pub level: Level,
    /// What it is about: tells troubles apart over time.
    pub id: String,
    /// What is not as it should be.
    pub what: String,
    /// Why, as far as that is known.
    pub why: String,
    /// Since when.
    pub since_ms: u64,
    /// The path in the tree where to look, if there is one.
    pub path: Option<String>,
}

/// A value for each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// What somebody waits for.
    pub user: u64,
    /// What changed.
    pub normal: u64,
    /// First lists and resyncs.
    pub low: u64,
}

impl Lanes {
    /// All together.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.user + self.normal + self.low
    }

    /// The largest of them.
    #[must_use]
    pub fn max(self) -> u64 {
        self.user.max(self.normal).max(self.low)
    }
}

/// One controller at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerView {
    /// What it is called.
    pub name: String,
    /// The kind it reconciles, such as `PodAutoscaler`.
    pub kind: String,
    /// Its resource, such as `podautoscalers.autoscaling.example.com`.
    pub resource: String,
    /// Where it is in the tree.
    pub path: String,
    /// How many runs are allowed at once.
    pub concurrency: usize,
    /// Keys that are ready, by lane.
    pub queued: Lanes,
    /// How long the oldest key of each lane has been ready.
    pub oldest_ms: Lanes,
    /// Keys that run.
    pub running: usize,
    /// How long the longest run has been going on.
    pub longest_run_ms: u64,
    /// Keys that wait for a time: a backoff, or one they asked for.
    pub waiting: usize,
    /// Keys that wait until the cache shows what they wrote.
    pub held: usize,
    /// Keys that are parked.
    pub parked: usize,
    /// Keys that have been failing for half a minute at least and are not parked.
    #[serde(default)]
    pub failing: Option<FailingView>,
    /// Why no run begins, if none does.
    pub shut: Option<ShutView>,
    /// Whether it is paused, in this process: a standby can be, too.
    #[serde(default)]
    pub paused: bool,
    /// Whether its reconciler panics on many keys.
    pub degraded: bool,
    /// Runs since the process began, by result.
    pub results: BTreeMap<String, u64>,
    /// The results among those that count as errors.
    pub errors: Vec<String>,
    /// Durations of runs since the process began.
    pub took: Durations,
    /// The newest point.
    pub point: Point,
}

impl ControllerView {
    /// Runs that ended, and those of them in error, since the process began.
    #[must_use]
    pub fn ended(&self) -> (u64, u64) {
        let all = self.results.values().sum();
        let errors = self.errors.iter();
        let errors = errors.filter_map(|result| self.results.get(result)).sum();
        (all, errors)
    }
}

/// Keys that fail again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingView {
    /// How many there are.
    pub count: usize,
    /// The one that has been failing longest.
    pub key: String,
    /// What its last run said.
    pub error: String,
    /// Since when it has been failing.
    pub since_ms: u64,
}

/// Why no run of a controller begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutView {
    /// One of `closing`, `standby`, `paused`, `not_synced`.
    pub state: String,
    /// In words.
    pub why: String,
    /// Since when, where that is known.
    pub since_ms: Option<u64>,
}

/// A histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Durations {
    /// Upper bounds in milliseconds, ascending.
    pub bounds_ms: Vec<f64>,
    /// How many were at or below each.
    pub below: Vec<u64>,
    /// How many there are.
    pub count: u64,
}

/// One controller from the point before to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its end.
    pub at_ms: u64,
    /// Keys that were ready, by lane.
    pub queued: Lanes,
    /// How long the oldest had been.
    pub oldest_ms: Lanes,
    /// Keys that ran.
    pub running: u64,
    /// Keys that waited.
    pub waiting: u64,
    /// Keys that were parked.
    pub parked: u64,
    /// Runs that ended, per second.
    pub rate: f64,
    /// Of those, in error.
    pub errors: f64,
    /// Half of the runs of the last ten seconds took at most so long; absent if there were none.
    pub p50_ms: Option<f64>,
    /// So long took at most 90 % of them.
    pub p90_ms: Option<f64>,
    /// And 99 %.
    pub p99_ms: Option<f64>,
}

/// Controllers with the last minutes of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Controllers {
    /// The controllers.
    pub controllers: Vec<ControllerView>,
    /// By name: the last five minutes, the newest point last; one a second while somebody looks, one in ten while nobody does.
    pub history: BTreeMap<String, Vec<Point>>,
}

/// One informer at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InformerView {
    /// What it is called: resource and namespace.
    pub name: String,
    /// Where it is in the tree.
    pub path: String,
    /// The resource.
    pub resource: String,
    /// The version of the API.
    pub version: String,
    /// The namespace, or `*`.
    pub scope: String,
    /// What is selected; empty for all.
    pub selector: String,
    /// What it does: `starting`, `listing`, `watching`, `waiting`, `probing` or `parked`.
    pub state: String,
    /// Whether its store has held the whole state once.
    pub synced: bool,
    /// Whether its store is up to date.
    pub fresh: bool,
    /// Everything up to this version is in the store.
    pub low_water: Option<String>,
    /// Objects stored.
    pub objects: usize,
    /// Bytes they are kept in.
    pub bytes: usize,
    /// Bytes of their JSON.
    pub json_bytes: usize,
    /// How long ago the server last told of an object.
    pub last_event_ms: Option<u64>,
    /// How long ago it last gave a sign of life.
    pub last_contact_ms: Option<u64>,
    /// Lists that were begun, by reason.
    pub relists: BTreeMap<String, u64>,
    /// Watches that ended, by cause.
    pub watch_ends: BTreeMap<String, u64>,
    /// Why it does not work as it should.
    pub degraded: Option<String>,
    /// Objects that cannot be read: the first of them, with why.
    pub unreadable: BTreeMap<String, String>,
    /// How many of those there are.
    pub unreadable_count: usize,
}

/// A lease that replicas are elected by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseView {
    /// Its name.
    pub name: String,
    /// The controller that it is for; for all where absent.
    pub controller: Option<String>,
    /// Who we are.
    pub identity: String,
    /// Who holds it.
    pub holder: Option<String>,
    /// Whether we lead.
    pub leads: bool,
    /// Whether nobody is known to lead.
    #[serde(default)]
    pub vacant: bool,
    /// How often it changed hands.
    pub transitions: i64,
    /// How long the last renewal took.
    pub renewal_ms: Option<u64>,
    /// Why the last request failed.
    pub error: Option<String>,
}

/// Keys that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    /// Those that were found, at most as many as were asked for.
    pub keys: Vec<KeyRow>,
    /// Whether there are, or may be, more.
    pub more: bool,
}

/// A key, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyRow {
    /// Of which controller.
    pub controller: String,
    /// `namespace/name`, or a name alone.
    pub key: String,
    /// What it is doing: `idle`, `queued`, `running`, `waiting`, `held`, `parked`, `undecodable` or `unknown`.
    pub state: String,
    /// Since when, where that is known; for one that waits after failures, since the first of these.
    pub since_ms: Option<u64>,
    /// When it runs next, where that has a time.
    pub next_ms: Option<u64>,
    /// How often it failed in a row.
    pub failures: u32,
    /// How its last run ended.
    pub result: Option<String>,
    /// How long that took.
    pub took_ms: Option<f64>,
    /// Why it does not run, or what its last run decided or said; absent while it runs.
    pub why: Option<String>,
}

/// All that is known of one key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyView {
    /// The key, short.
    #[serde(flatten)]
    pub row: KeyRow,
    /// When it was asked for.
    pub at_ms: u64,
    /// The whole answer in words, several lines, with the last five runs.
    pub text: String,
    /// Why no key of the controller begins to run, if none does.
    pub shut: Option<String>,
    /// What it is to run for.
    pub pending: String,
    /// A change that crashed its trigger and was set aside.
    pub quarantined: Option<String>,
    /// Its last runs that are remembered, the newest first.
    pub runs: Vec<RunView>,
}

/// A run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Its name in logs.
    pub id: Option<String>,
    /// When it began.
    pub began_ms: u64,
    /// How long it took.
    pub took_ms: f64,
    /// Why it ran.
    pub causes: String,
    /// The change of another object that woke it.
    pub trigger: Option<String>,
    /// How often the key had failed in a row before.
    pub attempt: u32,
    /// The version of the object it saw.
    pub seen: Option<String>,
    /// How it ended.
    pub result: String,
    /// What it said of that.
    pub text: Option<String>,
    /// What it said that it decided.
    pub decided: Option<String>,
    /// The first of its writes.
    pub writes: Vec<String>,
    /// How many there were.
    pub written: u32,
}

/// The keys that are parked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    /// The first of them.
    pub parked: Vec<ParkedRow>,
    /// How many there are.
    pub total: usize,
}

/// A parked key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedRow {
    /// Of which controller.
    pub controller: String,
    /// `namespace/name`, or a name alone.
    pub key: String,
    /// Why.
    pub reason: String,
    /// How often it failed in a row.
    pub failures: u32,
    /// Since when.
    pub since_ms: u64,
    /// When it is tried again although nothing has changed.
    pub next_ms: u64,
}

/// What became of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// In words.
    pub done: String,
}

/// Why a request was not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// In words, with what to do.
    pub error: String,
}
