//! What every node of the tree writes down about itself, for observers that must never have to ask an actor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clock::{Clock, later};
use crate::control::{Control, Order};
use crate::error::{SpecError, StartError};
use crate::events::{Feed, What};
use crate::exit::Exit;
use crate::gauge::{Gauge, Gauged};
use crate::intensity::Intensity;
use crate::kin::ByToken;
use crate::link::Rung;
use crate::mailbox::Address;
use crate::monitor::Monitors;
use crate::random::Entropy;
use crate::roster::Token;
use crate::snapshot::Virtual;
use crate::spec::{Below, Strategy};
use crate::supervisor::Supervisor;
use crate::thread::Thread;
use crate::watchdog::{Turns, Watched};

/// A named fact that another layer attached: read when somebody looks.
pub(crate) type Fact = Arc<dyn Fn() -> Value + Send + Sync>;

/// Children that another layer shows: called with how many to show at most.
pub(crate) type ReadVirtual = Arc<dyn Fn(usize) -> Virtual + Send + Sync>;

/// What a node is.
pub(crate) enum NodeKind {
    Actor,
    Supervisor(Box<Office>),
}

/// What only a supervisor's node has.
pub(crate) struct Office {
    pub(crate) strategy: Strategy,
    pub(crate) address: Address<Supervisor>,
    /// Who hears when it gives up.
    pub(crate) rung: Option<Arc<Rung>>,
    /// In order of start: tokens only grow.
    children: Mutex<ByToken>,
    /// How much it bears. Written by the supervisor itself.
    pub(crate) bearing: Mutex<Option<Bearing>>,
}

impl NodeKind {
    pub(crate) fn supervisor(below: Below, rung: Option<Arc<Rung>>) -> NodeKind {
        NodeKind::Supervisor(Box::new(Office {
            strategy: below.strategy,
            address: below.address,
            rung,
            children: Mutex::default(),
            bearing: Mutex::default(),
        }))
    }
}

/// The state of a child as its supervisor last saw it; written by the supervisor only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Starting,
    Running,
    Waiting { until: Instant },
    Stopping,
    Stopped,
    Failed,
}

/// What changes seldom and is read together.
pub(crate) struct Record {
    pub(crate) standing: Standing,
    pub(crate) since: Instant,
    pub(crate) restarts: u32,
    /// Failures in a row, as the supervisor last counted.
    pub(crate) streak: u32,
    pub(crate) significant: bool,
    /// The latest incarnation that has ended; 0 for none. Written by the child's own task, as is `last_exit`: the supervisor may be late.
    pub(crate) ended: u32,
    pub(crate) last_exit: Option<Box<LastExit>>,
    /// Absent until there is something: most actors say nothing of themselves.
    pub(crate) told: Option<Box<Told>>,
    /// Whether monitors have been told the last word.
    pub(crate) departed: bool,
    /// Absent if nobody monitors it.
    pub(crate) monitors: Option<Box<Monitors>>,
    /// Written by the watchdog only, and absent unless there is something to remember.
    pub(crate) watched: Option<Box<Watched>>,
}

impl Record {
    pub(crate) fn told(&mut self) -> &mut Told {
        self.told.get_or_insert_default()
    }

    /// Since when the node is inside the turn it is blocked in.
    pub(crate) fn blocked(&self) -> Option<Instant> {
        self.watched.as_ref()?.blocked()
    }
}

/// How an incarnation ended, and when.
#[derive(Clone)]
pub(crate) struct LastExit {
    pub(crate) exit: Exit,
    pub(crate) at: Instant,
}

/// How much a supervisor bears, and what it has borne.
pub(crate) struct Bearing {
    pub(crate) intensity: Intensity,
    pub(crate) failures: Vec<Instant>,
}

/// What an incarnation said of itself; goes with it.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) degraded: Option<String>,
    pub(crate) facts: BTreeMap<&'static str, Fact>,
    pub(crate) virtual_children: Option<ReadVirtual>,
    /// Work that is not done, and when it is to be.
    pub(crate) work: Vec<(u64, Instant)>,
    /// Since when that rests, because the actor is suspended.
    pub(crate) rests_since: Option<Instant>,
}

impl Told {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.work.iter().map(|&(_, until)| until).min()
    }

    /// Lets work rest, or gives it the time back that it rested.
    fn rest(&mut self, rests: bool, now: Instant) {
        if rests {
            self.rests_since.get_or_insert(now);
        } else if let Some(since) = self.rests_since.take() {
            let rested = now.saturating_duration_since(since);
            for (_, until) in &mut self.work {
                *until = later(*until, rested);
            }
        }
    }
}

/// One place in the tree. Its locks are held for assignments only, never while foreign code runs.
pub(crate) struct Node {
    pub(crate) path: Arc<str>,
    /// Where in the path the id begins.
    id: usize,
    /// What its supervisor calls it.
    pub(crate) token: Token,
    pub(crate) kind: NodeKind,
    pub(crate) thread: Thread,
    mailbox: Arc<dyn Gauged>,
    pub(crate) control: Control,
    /// The incarnation that may speak for the node: others that still hold a link are ignored.
    pub(crate) incarnation: AtomicU32,
    /// The incarnation that is killed because it hangs; 0 for none. Written by the watchdog.
    pub(crate) condemned: AtomicU32,
    /// Written by the child's task only.
    pub(crate) turns: Turns,
    /// Whether a task exists that may run the actor. Written by that task's tether only.
    pub(crate) alive: AtomicBool,
    record: Mutex<Record>,
}

impl Node {
    /// A node called `id`, below the one at the path `above`.
    pub(crate) fn new(
        above: Option<&str>,
        id: &str,
        token: Token,
        kind: NodeKind,
        thread: Thread,
        mailbox: Arc<dyn Gauged>,
        now: Instant,
    ) -> Node {
        let path = above.map_or_else(|| id.to_owned(), |above| format!("{above}/{id}"));
        Node {
            id: path.len() - id.len(),
            path: path.into(),
            token,
            kind,
            thread,
            mailbox,
            control: Control::default(),
            incarnation: AtomicU32::new(0),
            condemned: AtomicU32::new(0),
            turns: Turns::default(),
            alive: AtomicBool::new(false),
            record: Mutex::new(Record {
                standing: Standing::Starting,
                since: now,
                restarts: 0,
                streak: 0,
                significant: false,
                ended: 0,
                last_exit: None,
                told: None,
                departed: false,
                monitors: None,
                watched: None,
            }),
        }
    }

    /// The counts of its mailbox.
    pub(crate) fn gauge(&self) -> &Gauge {
        self.mailbox.gauge()
    }

    /// The name among its siblings.
    pub(crate) fn id(&self) -> &str {
        &self.path[self.id..]
    }

    /// Present if it is a supervisor's.
    pub(crate) fn office(&self) -> Option<&Office> {
        match &self.kind {
            NodeKind::Actor => None,
            NodeKind::Supervisor(office) => Some(office),
        }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Messages waiting; none once the mailbox has closed with the task.
    pub(crate) fn inbox(&self) -> usize {
        if self.control.closed() {
            0
        } else {
            self.gauge().depth()
        }
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.control.suspended()
    }

    pub(crate) fn is_supervisor(&self) -> bool {
        self.office().is_some()
    }

    /// Kills the actor because this incarnation of it hangs. The next one is not concerned, though it may have begun meanwhile.
    pub(crate) fn condemn(&self, incarnation: u32) {
        self.condemned.store(incarnation, Ordering::Release);
        self.control.nudge();
    }

    /// Whether the incarnation that runs is to end because it hangs.
    pub(crate) fn is_condemned(&self) -> bool {
        let condemned = self.condemned.load(Ordering::Acquire);
        condemned != 0 && condemned == self.incarnation.load(Ordering::Acquire)
    }

    pub(crate) fn children(&self) -> Vec<Arc<Node>> {
        self.office().map_or_else(Vec::new, |office| {
            let children = lock(&office.children);
            children.iter().map(|kin| Arc::clone(&kin.node)).collect()
        })
    }

    pub(crate) fn adopt(&self, child: &Arc<Node>) {
        if let Some(office) = self.office() {
            lock(&office.children).insert(Arc::clone(child).into());
        }
    }

    pub(crate) fn disown(&self, child: &Node) {
        if let Some(office) = self.office() {
            lock(&office.children).remove(&child.token);
        }
    }

    pub(crate) fn disown_all(&self) -> Vec<Arc<Node>> {
        self.office().map_or_else(Vec::new, |office| {
            let children = std::mem::take(&mut *lock(&office.children));
            children.into_iter().map(|kin| kin.node).collect()
        })
    }

    pub(crate) fn stand(&self, standing: Standing) {
        self.record().standing = standing;
    }

    /// Suspends the actor or lets it go on; whether that changed anything.
    pub(crate) fn suspend(&self, suspended: bool, now: Instant) -> bool {
        if self.control.suspended() == suspended {
            return false;
        }
        if let Some(told) = &mut self.record().told {
            told.rest(suspended, now);
        }
        self.control.order(if suspended {
            Order::Suspend
        } else {
            Order::Resume
        })
    }

    /// Ends the actor, or every actor below the supervisor and then the supervisor; false if there is no task to end.
    pub(crate) fn kill(&self) -> bool {
        let heard = self.control.order(Order::Kill);
        // The supervisor kills its children itself as soon as it looks; this reaches them although its thread may be blocked.
        // None of them outlives it, so none waits for what it would decide.
        for child in self.children() {
            child.control.order(Order::Release);
            child.kill();
        }
        heard
    }

    fn is_at_or_above(&self, path: &str) -> bool {
        path.strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The node at `path`, at or below this one.
    pub(crate) fn find(self: &Arc<Self>, path: &str) -> Option<Arc<Node>> {
        if &*self.path == path {
            return Some(Arc::clone(self));
        }
        // one of thousands, which are not cloned for it
        let above = lock(&self.office()?.children)
            .iter()
            .map(|kin| &kin.node)
            .find(|child| child.is_at_or_above(path))
            .cloned();
        above?.find(path)
    }

    /// Shows this node and all below it, parents first.
    fn visit(self: &Arc<Self>, see: &mut impl FnMut(&Arc<Node>)) {
        see(self);
        for child in self.children() {
            child.visit(see);
        }
    }
}

/// What all nodes of one tree share.
pub(crate) struct Registry {
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// Tasks of this tree that exist, wherever they run and whether or not a node still shows them.
    pub(crate) tasks: AtomicUsize,
    pub(crate) feed: Feed,
    root: Mutex<Weak<Node>>,
    /// Nodes whose task outlived their place in the tree. Pruned on every addition, so it is bounded by the tasks that exist.
    abandoned: Mutex<Vec<Arc<Node>>>,
    /// The last specification that a supervisor refused, and which: the error it ends with has only its text.
    refused: Mutex<Option<(String, SpecError)>>,
}

impl Registry {
    pub(crate) fn new(clock: Clock, entropy: Entropy) -> Registry {
        Registry {
            clock,
            entropy,
            tasks: AtomicUsize::new(0),
            feed: Feed::default(),
            root: Mutex::default(),
            abandoned: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    pub(crate) fn set_root(&self, root: &Arc<Node>) {
        *lock(&self.root) = Arc::downgrade(root);
    }

    pub(crate) fn root(&self) -> Option<Arc<Node>> {
        lock(&self.root).upgrade()
    }

    pub(crate) fn find(&self, path: &str) -> Option<Arc<Node>> {
        self.root()?.find(path)
    }

    /// Tells whoever listens what happened at a node; nothing is built if nobody does.
    pub(crate) fn tell(&self, node: &Node, what: impl FnOnce() -> What) {
        self.feed.tell(&self.clock, &node.path, what);
    }

    /// Takes a node that left the tree, and all below it, as far as tasks still belong to them.
    pub(crate) fn abandon(&self, node: Arc<Node>) {
        self.take_in(node);
    }

    /// A supervisor does not start, because its specification contradicts itself.
    pub(crate) fn refuse(&self, supervisor: &str, error: SpecError) {
        *lock(&self.refused) = Some((supervisor.to_owned(), error));
    }

    /// Why a start failed that ended with `exit`.
    pub(crate) fn start_error(&self, path: &str, exit: Exit) -> StartError {
        let failed = StartError::failed(path, exit);
        let StartError::Failed { path, .. } = &failed else {
            return failed;
        };
        let refused = lock(&self.refused).take_if(|(supervisor, _)| supervisor == path);
        refused.map_or(failed, |(_, error)| error.into())
    }

    /// Takes a node that is given up: its task, and those below it that still exist, do not end.
    pub(crate) fn leave_behind(&self, node: Arc<Node>) {
        for left in self.take_in(node) {
            self.tell(&left, || What::LeftBehind);
            left.depart(Exit::Stuck);
        }
    }

    fn take_in(&self, node: Arc<Node>) -> Vec<Arc<Node>> {
        let mut alive = Vec::new();
        gather(node, &mut alive);
        let mut abandoned = lock(&self.abandoned);
        abandoned.retain(|node| node.is_alive());
        // several may give up the same one: its supervisor, once its thread comes free, and whoever gave up that before
        let known: BTreeSet<*const Node> = abandoned.iter().map(Arc::as_ptr).collect();
        alive.retain(|node| !known.contains(&Arc::as_ptr(node)));
        abandoned.extend(alive.iter().cloned());
        alive
    }

    pub(crate) fn abandoned(&self) -> Vec<Arc<Node>> {
        let mut abandoned = lock(&self.abandoned);
        abandoned.retain(|node| node.is_alive());
        abandoned.clone()
    }

    /// Shows every node: the tree, parents first, and then what was left behind.
    pub(crate) fn visit(&self, mut see: impl FnMut(&Arc<Node>)) {
        if let Some(root) = self.root() {
            root.visit(&mut see);
        }
        self.abandoned().iter().for_each(see);
    }

    /// Paths of everything that still runs.
    pub(crate) fn alive(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.visit(|node| {
            if node.is_alive() {
                paths.push(node.path.to_string());
            }
        });
        paths
    }
}

fn gather(node: Arc<Node>, alive: &mut Vec<Arc<Node>>) {
    for child in node.disown_all() {
        gather(child, alive);
    }
    if node.is_alive() {
        alive.push(node);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // everything behind these locks is valid after any single assignment, so a panic in between spoils nothing
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
