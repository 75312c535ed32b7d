//! How an informer is, for people, metrics and readiness.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::key::Key;
use crate::store::MemoStatus;
use crate::subscription::SubscriberStatus;

mod tally;

pub use tally::{Latency, Tally};

/// What an informer is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InformerState {
    /// Not begun, or between two incarnations.
    #[default]
    Starting,
    /// Reading a list.
    Listing,
    /// Following the server.
    Watching,
    /// Leaving the server alone after a failure.
    Waiting,
    /// Asking the server whether it is still there.
    Probing,
    /// The kind is gone from the server, as when its CRD was deleted: what is stored stays, and the kind is looked for until it returns.
    Parked,
}

/// What kind of trouble an informer has, and with which verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    pub(crate) verb: &'static str,
    pub(crate) cause: TroubleCause,
}

/// What is behind a failing request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TroubleCause {
    /// The credentials are not accepted (401).
    Unauthorized,
    /// The verb is not allowed on the resource (403).
    Forbidden,
    /// The server does not know the resource (404): a CRD that is not installed yet, or no longer.
    Missing,
    /// The server asks to be left alone (429).
    Throttled,
    /// The server answers with another error.
    Failing,
    /// There is no answer.
    Unreachable,
}

impl Trouble {
    pub(crate) fn of(verb: &'static str, code: Option<u16>) -> Self {
        let cause = match code {
            Some(401) => TroubleCause::Unauthorized,
            Some(403) => TroubleCause::Forbidden,
            Some(404) => TroubleCause::Missing,
            Some(429) => TroubleCause::Throttled,
            Some(_) => TroubleCause::Failing,
            None => TroubleCause::Unreachable,
        };
        Self { verb, cause }
    }
}

/// Why an informer does not work as it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// The verb that fails: `list` or `watch`.
    pub verb: &'static str,
    /// The resource it fails on, such as `deployments.apps`.
    pub resource: String,
    /// The namespace, or `None` for all.
    pub namespace: Option<String>,
    /// What is behind it.
    pub cause: TroubleCause,
    /// The server's words, or the network's.
    pub message: String,
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            resource,
            message,
            ..
        } = self;
        write!(f, "cannot {verb} {resource}")?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}")?,
            None => write!(f, " in all namespaces")?,
        }
        let advice = match self.cause {
            TroubleCause::Unauthorized => {
                "the credentials were not accepted; check that they are current"
            }
            TroubleCause::Forbidden => "not allowed; grant the verbs list and watch on it",
            TroubleCause::Missing => {
                "the server does not know it (yet); waiting for its CRD or API to be installed"
            }
            TroubleCause::Throttled => "the server is busy and asks to wait",
            TroubleCause::Failing => "the server failed; trying again",
            TroubleCause::Unreachable => "the server cannot be reached; trying again",
        };
        write!(f, ": {advice} ({message})")
    }
}

/// Things counted since the informer was created. Every series ends with its informer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Pages asked for.
    pub lists: u64,
    /// Lists begun, by reason; the first is `initial`.
    pub relists: BTreeMap<&'static str, u64>,
    /// Lists begun as streams; they are among those by reason.
    pub streamed: u64,
    /// Times the server proved not to stream lists.
    pub unstreamed: u64,
    /// Watches begun.
    pub watches: u64,
    /// Watches ended, by cause.
    pub watch_ends: BTreeMap<&'static str, u64>,
    /// Events received, by type.
    pub events: BTreeMap<&'static str, u64>,
    /// Items received in lists.
    pub listed: u64,
    /// News refused because newer ones were known.
    pub stale: u64,
    /// News that changed nothing.
    pub unchanged: u64,
    /// Changes published.
    pub changes: u64,
    /// Objects an index failed for.
    pub unindexed: u64,
    /// Objects a transform failed for.
    pub untransformed: u64,
    /// Objects in lists that could not be identified; deletions found by such a list are held back.
    pub unidentified: u64,
    /// Objects that a reader could not decode, once per object and state.
    pub undecoded: u64,
    /// How long whole lists took, in microseconds.
    pub list_micros: Tally,
    /// Items in whole lists.
    pub list_items: Tally,
    /// How long watches were open, in microseconds.
    pub watch_micros: Tally,
    /// Events told by watches, bookmarks left out.
    pub watch_events: Tally,
    /// Watches that ended within a second and told nothing.
    pub short_watches: u64,
    /// How long it took to commit batches and to tell subscribers of them.
    pub commits: Latency,
    /// Times a silent watch made the server be asked for its version.
    pub probes: u64,
    /// Times a quorum list was older than the store: the server was restored from a backup.
    pub histories: u64,
    /// Batches replayed after a crash of the indexer.
    pub replays: u64,
}

/// How an informer is at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InformerStatus {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The version of the API its objects are read in, such as `v1`.
    pub version: String,
    /// The namespace, or `*`.
    pub scope: String,
    /// What is selected of it, empty for all; see [`Selection::qualifier`](crate::Selection::qualifier).
    pub selector: String,
    /// What it is doing.
    pub state: InformerState,
    /// Whether the store has had the whole state once.
    pub synced: bool,
    /// Whether the store is being kept up to date and has caught up.
    pub fresh: bool,
    /// Everything up to this version is in the store.
    pub low_water: Option<String>,
    /// Objects stored.
    pub objects: usize,
    /// Bytes they are kept in, without keys, indexes and what was decoded.
    pub bytes: usize,
    /// Bytes of their JSON.
    pub json_bytes: usize,
    /// Bytes of the dictionary they are packed with.
    pub dictionary_bytes: usize,
    /// Recently decoded objects.
    pub memo: MemoStatus,
    /// Keys pending between reflector and indexer, and the most there ever were.
    pub pending: (usize, usize),
    /// Time since the server last told of an object; serialized in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub last_event_age: Option<Duration>,
    /// Time since the server last gave a sign of life, bookmarks and answered probes included; serialized in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub last_contact_age: Option<Duration>,
    /// Why it does not work as it should.
    pub degraded: Option<Degraded>,
    /// Why lists are read in pages, if the server cannot stream them.
    pub paged: Option<Arc<str>>,
    /// Objects that cannot be read at all, with why.
    #[serde(serialize_with = "by_key")]
    pub unreadable: Vec<(Key, Arc<str>)>,
    /// Objects that some reader could not decode, with why.
    #[serde(serialize_with = "by_key")]
    pub undecodable: Vec<(Key, Arc<str>)>,
    /// Subscribers with their backlogs.
    pub subscribers: Vec<SubscriberStatus>,
    /// Things counted.
    pub counters: Counters,
}

fn by_key<S: serde::Serializer>(
    entries: &[(Key, Arc<str>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        entries
            .iter()
            .map(|(key, reason)| (key.as_str(), &**reason)),
    )
}

pub(crate) fn as_seconds<S: serde::Serializer>(
    age: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    age.map(|age| age.as_secs_f64()).serialize(serializer)
}
