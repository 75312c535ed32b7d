//! The tree as observers see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::Exit;
use crate::panics::guard;
use crate::spec::Strategy;
use crate::stats::{Fact, Node, NodeKind, Registry, Standing, millis};

mod text;

/// A tree at one moment, read from what its nodes wrote down: an actor that is stuck shows up like any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeSnapshot {
    /// The root supervisor and all below it; absent once the tree has been dropped.
    pub root: Option<NodeSnapshot>,
    /// Actors that could not be ended and have no place in the tree any more.
    pub abandoned: Vec<NodeSnapshot>,
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
    /// How often its supervisor started it again.
    pub restarts: u64,
    /// How its last incarnation ended.
    pub last_exit: Option<Exit>,
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
    },
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

pub(crate) fn tree(registry: &Registry) -> TreeSnapshot {
    let now = registry.clock.now();
    TreeSnapshot {
        root: registry.root().map(|root| node(&root, now)),
        abandoned: registry
            .abandoned()
            .iter()
            .map(|abandoned| node(abandoned, now))
            .collect(),
        tasks: registry.tasks.load(Ordering::Acquire),
    }
}

fn node(node: &Arc<Node>, now: Instant) -> NodeSnapshot {
    // copied out first: facts are foreign code and must not run under the lock
    let (standing, since, restarts, last_exit, degraded, facts) = {
        let record = node.record();
        let facts: Vec<(&str, Fact)> = record
            .facts
            .iter()
            .map(|(&name, fact)| (name, Arc::clone(fact)))
            .collect();
        (
            record.standing,
            record.since,
            record.restarts,
            record.last_exit.clone(),
            record.degraded.clone(),
            facts,
        )
    };
    let lives = matches!(
        standing,
        Standing::Starting | Standing::Running | Standing::Stopping
    );
    NodeSnapshot {
        path: node.path.to_string(),
        id: node.id.clone(),
        kind: match node.kind {
            NodeKind::Actor => NodeSort::Actor,
            NodeKind::Supervisor { strategy, .. } => NodeSort::Supervisor { strategy },
        },
        state: match standing {
            Standing::Starting => NodeState::Starting,
            Standing::Running => NodeState::Running,
            Standing::Waiting { until } => NodeState::Backoff {
                until_ms: millis(until.saturating_duration_since(now)),
            },
            Standing::Stopping => NodeState::Stopping,
            Standing::Stopped => NodeState::Stopped,
            Standing::Failed => NodeState::Failed,
        },
        thread: node.thread.clone(),
        incarnation: node.incarnation.load(Ordering::Acquire),
        restarts,
        last_exit,
        uptime_ms: if lives {
            millis(now.saturating_duration_since(since))
        } else {
            0
        },
        inbox: node.gauge.depth(),
        inbox_high_water: node.gauge.high_water(),
        handled: node.gauge.total(),
        facts: facts
            .into_iter()
            .map(|(name, read)| {
                (
                    name.to_owned(),
                    guard(&node.path, || read()).unwrap_or(Value::Null),
                )
            })
            .collect(),
        degraded,
        children: node
            .children()
            .iter()
            .map(|child| self::node(child, now))
            .collect(),
    }
}
