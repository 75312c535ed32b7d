//! The tree as observers see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::Exit;
use crate::intensity::Intensity;
use crate::panics::guard;
use crate::spec::Strategy;
use crate::stats::{Bearing, Fact, Node, NodeKind, Record, Registry, Standing, lock, millis};

mod text;

/// A tree at one moment, read from what its nodes wrote down: an actor that is stuck shows up like any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeSnapshot {
    /// The root supervisor and all below it; absent once the tree has been dropped.
    pub root: Option<NodeSnapshot>,
    /// Actors that could not be ended and have no place in the tree any more.
    pub left_behind: Vec<NodeSnapshot>,
    /// Tasks of this tree that exist.
    pub tasks: usize,
}

/// One actor or supervisor at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSnapshot {
    /// The ids from the root down to this node, joined by `/`.
    pub path: String,
    /// The name among its siblings.
    pub id: String,
    /// What it is.
    pub kind: NodeSort,
    /// What it does, as its supervisor last heard.
    pub state: NodeState,
    /// The name of its thread.
    pub thread: String,
    /// Which life of it this is, counted from 1; 0 before the first.
    pub incarnation: u32,
    /// How often its supervisor started it again. A supervisor that is itself started again has new children, which count from nothing.
    pub restarts: u64,
    /// How often it had failed in a row when it was last restarted.
    pub streak: u32,
    /// Whether its supervisor may end when it does.
    pub significant: bool,
    /// How its last incarnation ended.
    pub last_exit: Option<Exit>,
    /// How long ago that was, in milliseconds.
    #[serde(default)]
    pub last_exit_ms: Option<u64>,
    /// How long this incarnation has lived, in milliseconds; 0 if there is none.
    pub uptime_ms: u64,
    /// Messages waiting.
    pub inbox: usize,
    /// The largest number of messages that ever waited.
    pub inbox_high_water: usize,
    /// Messages handled by all incarnations.
    pub handled: u64,
    /// Named facts the actor reported; null where reading one panicked.
    pub facts: BTreeMap<String, Value>,
    /// Why it does not work as it should, if it said so.
    pub degraded: Option<String>,
    /// Its children in the order they start.
    pub children: Vec<NodeSnapshot>,
    /// Children that another layer knows; see [`Link::virtual_children`](crate::Link::virtual_children).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_children: Option<Virtual>,
}

/// Children of a node that are no actors of this tree, such as the keys of a shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Virtual {
    /// How many there are.
    pub total: usize,
    /// Those that are shown.
    pub shown: Vec<VirtualChild>,
}

/// One virtual child.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VirtualChild {
    /// The name among its siblings.
    pub id: String,
    /// What it does, in the words of its layer.
    pub state: String,
    /// Whatever else is known of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Value>,
}

/// How many children a supervisor has; OTP's `count_children`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them, whatever they do.
    pub specs: usize,
    /// Those with an incarnation that lives.
    pub active: usize,
    /// Those that are supervisors, living or not.
    pub supervisors: usize,
    /// Those that are actors, living or not.
    pub workers: usize,
}

/// Actor or supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NodeSort {
    /// Has no children.
    Actor,
    /// Looks after children.
    Supervisor {
        /// Whom a restart concerns.
        strategy: Strategy,
        /// How much it bears; absent if it never gives up, or has not started.
        window: Option<Window>,
    },
}

/// The restart window of a supervisor: when more than `max` failures fall into it, the supervisor gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The number of failures that is still bearable.
    pub max: u32,
    /// The length of the window, in milliseconds.
    pub period_ms: u64,
    /// The failures in it now.
    pub restarts_in_window: u32,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeState {
    /// Begins an incarnation, or waits for its turn to.
    Starting,
    /// Works.
    Running,
    /// Waits before it is started again.
    Backoff {
        /// Milliseconds until then.
        until_ms: u64,
    },
    /// Handles nothing until it is resumed.
    Suspended,
    /// Blocks its thread; see [`Observer::blocked`](crate::Observer::blocked).
    Blocked,
    /// Was asked to stop.
    Stopping,
    /// Has stopped and is not missed.
    Stopped,
    /// Has failed and is not coming back.
    Failed,
}

impl TreeSnapshot {
    /// The node at `path`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&NodeSnapshot> {
        self.root.as_ref()?.find(path)
    }
}

impl NodeSnapshot {
    /// The node at `path`, at or below this one.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&NodeSnapshot> {
        if self.path == path {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(path))
    }
}

/// How many virtual children of a node are shown if nobody says.
pub(crate) const VIRTUAL_CHILDREN: usize = 64;

pub(crate) fn tree(registry: &Registry, limit: usize) -> TreeSnapshot {
    let now = registry.clock.now();
    TreeSnapshot {
        root: registry.root().map(|root| node(&root, now, limit)),
        left_behind: registry
            .abandoned()
            .iter()
            .map(|abandoned| node(abandoned, now, limit))
            .collect(),
        tasks: registry.tasks.load(Ordering::Acquire),
    }
}

pub(crate) fn children(registry: &Registry, path: &str) -> Option<Vec<NodeSnapshot>> {
    let supervisor = registry.find(path).filter(|node| node.is_supervisor())?;
    Some(node(&supervisor, registry.clock.now(), VIRTUAL_CHILDREN).children)
}

pub(crate) fn count_children(registry: &Registry, path: &str) -> Option<Counts> {
    let supervisor = registry.find(path).filter(|node| node.is_supervisor())?;
    let mut counts = Counts::default();
    for child in supervisor.children() {
        counts.specs += 1;
        if child.is_supervisor() {
            counts.supervisors += 1;
        } else {
            counts.workers += 1;
        }
        if child.is_alive() && lives(child.record().standing) {
            counts.active += 1;
        }
    }
    Some(counts)
}

fn lives(standing: Standing) -> bool {
    matches!(
        standing,
        Standing::Starting | Standing::Running | Standing::Stopping
    )
}

fn node(node: &Arc<Node>, now: Instant, limit: usize) -> NodeSnapshot {
    // facts are foreign code and must not run under the lock
    let (mut snapshot, facts, virtual_children) = {
        let record = node.record();
        let told = record.told.as_deref();
        let facts: Vec<(&str, Fact)> = told
            .iter()
            .flat_map(|told| &told.facts)
            .map(|(&name, fact)| (name, Arc::clone(fact)))
            .collect();
        let virtual_children = told.and_then(|told| told.virtual_children.clone());
        (outline(node, &record, now), facts, virtual_children)
    };
    snapshot.facts = facts
        .into_iter()
        .map(|(name, read)| {
            let value = guard(&node.path, || read()).unwrap_or(Value::Null);
            (name.to_owned(), value)
        })
        .collect();
    snapshot.virtual_children = virtual_children.and_then(|read| {
        let mut children = guard(&node.path, || read(limit)).ok()?;
        children.shown.truncate(limit);
        Some(children)
    });
    snapshot.children = node
        .children()
        .iter()
        .map(|child| self::node(child, now, limit))
        .collect();
    snapshot
}

/// A node without what others have to be asked for.
fn outline(node: &Node, record: &Record, now: Instant) -> NodeSnapshot {
    NodeSnapshot {
        path: node.path.to_string(),
        id: node.id().to_owned(),
        kind: match &node.kind {
            NodeKind::Actor => NodeSort::Actor,
            NodeKind::Supervisor(office) => NodeSort::Supervisor {
                strategy: office.strategy,
                window: lock(&office.bearing)
                    .as_ref()
                    .map(|bearing| window(bearing, now)),
            },
        },
        state: match record.standing {
            _ if record.blocked().is_some() && node.is_alive() => NodeState::Blocked,
            Standing::Starting => NodeState::Starting,
            Standing::Running if node.is_suspended() => NodeState::Suspended,
            Standing::Running => NodeState::Running,
            Standing::Waiting { until } => NodeState::Backoff {
                until_ms: millis(until.saturating_duration_since(now)),
            },
            Standing::Stopping => NodeState::Stopping,
            Standing::Stopped => NodeState::Stopped,
            Standing::Failed => NodeState::Failed,
        },
        thread: node.thread.name().to_owned(),
        incarnation: node.incarnation.load(Ordering::Acquire),
        restarts: record.restarts.into(),
        streak: record.streak,
        significant: record.significant,
        last_exit: record.last_exit.as_ref().map(|last| last.exit.clone()),
        last_exit_ms: record
            .last_exit
            .as_ref()
            .map(|last| millis(now.saturating_duration_since(last.at))),
        uptime_ms: if lives(record.standing) {
            millis(now.saturating_duration_since(record.since))
        } else {
            0
        },
        inbox: node.inbox(),
        inbox_high_water: node.gauge().high_water(),
        handled: node.gauge().handled(),
        degraded: record.told.as_ref().and_then(|told| told.degraded.clone()),
        facts: BTreeMap::new(),
        children: Vec::new(),
        virtual_children: None,
    }
}

fn window(bearing: &Bearing, now: Instant) -> Window {
    let Intensity { max, period } = bearing.intensity;
    let recent = bearing
        .failures
        .iter()
        .filter(|&&at| now.saturating_duration_since(at) < period);
    Window {
        max,
        period_ms: millis(period),
        restarts_in_window: u32::try_from(recent.count()).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests;
