//! What outlives every incarnation of the elector's actor: the elector, its fence, and what others may know of it.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use boatswain_supervision::Clock;
use tokio::sync::Notify;

use super::{
    Fence, LeaseTerms,
    state::{Answer, Change, Elector, Step},
};
use crate::sync::lock;

/// Which Lease it is about, and on which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// The Lease's name.
    pub name: String,
    /// The namespace it is in.
    pub namespace: String,
    /// Who we are. Must differ from that of every other replica that ever was.
    pub identity: String,
    /// How long it lasts and how often it is renewed.
    pub terms: LeaseTerms,
}

/// What is known of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The Lease's name.
    pub name: String,
    /// The controller that it is for; for all of them where absent.
    pub controller: Option<String>,
    /// Who we are.
    pub identity: String,
    /// Who held it when it was last seen; nobody, or not seen yet, where absent.
    pub holder: Option<String>,
    /// Whether we lead.
    pub leads: bool,
    /// Whether nobody is known to lead: the lease is free, or over and not taken yet. So it also is while it cannot be read for longer than it lasts.
    pub vacant: bool,
    /// How often we have come to lead since the process began: the number of the term while we lead.
    pub term: u64,
    /// How often the lease has changed hands, as it says itself.
    pub transitions: i32,
    /// How long the last successful renewal took.
    pub renewal: Option<Duration>,
    /// Renewals that had to read the lease first.
    pub slow_renewals: u64,
    /// Why the last request failed, if it did.
    pub error: Option<String>,
}

/// Whether this process works or stands by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Standby,
    /// With the number of the term, which differs from that of every earlier one in this process.
    Leader(u64),
}

/// How many leases this process holds, or claims, of those that are to be shared among replicas.
#[derive(Clone, Default)]
pub(crate) struct Load(Arc<AtomicU32>);

/// One of the load, as long as it lives.
struct Share(Load);

impl Share {
    fn of(load: &Load) -> Self {
        load.0.fetch_add(1, Relaxed);
        Self(load.clone())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// One lease, for as long as the process lives.
#[derive(Clone)]
pub(crate) struct Leadership(Arc<Inner>);

struct Inner {
    options: LeaseOptions,
    state: Mutex<State>,
    fence: Fence,
    load: Load,
    follower: OnceLock<Box<dyn Fn(Role) + Send + Sync>>,
    /// The elector's actor sleeps, and is to look again.
    wake: Notify,
    /// A term has begun.
    gained: Notify,
}

struct State {
    elector: Elector,
    status: LeaseStatus,
    /// Whether followers have been told of this term.
    announced: bool,
    /// Its share of the load, while it is held or claimed.
    share: Option<Share>,
}

impl Leadership {
    /// One of those that make the `load` of this process.
    pub(crate) fn new(options: LeaseOptions, load: Load) -> Self {
        let status = LeaseStatus {
            name: options.name.clone(),
            identity: options.identity.clone(),
            ..LeaseStatus::default()
        };
        let elector = Elector::new(options.terms, options.identity.clone());
        Self(Arc::new(Inner {
            options,
            state: Mutex::new(State {
                elector,
                status,
                announced: false,
                share: None,
            }),
            fence: Fence::default(),
            load,
            follower: OnceLock::new(),
            wake: Notify::new(),
            gained: Notify::new(),
        }))
    }

    pub(crate) fn options(&self) -> &LeaseOptions {
        &self.0.options
    }

    pub(crate) fn fence(&self) -> Fence {
        self.0.fence.clone()
    }

    /// Calls `follower` with the present role, and with every other one as it comes; only one can follow. The loss of a term is told at once, its
    /// beginning when the caches are up to date. It is called with the elector's lock held, so that
    /// roles reach it in their order: it must not ask for anything here.
    pub(crate) fn follow(&self, follower: impl Fn(Role) + Send + Sync + 'static) {
        let _state = lock(&self.0.state);
        follower(Role::Standby);
        // who came second follows nothing
        let _ = self.0.follower.set(Box::new(follower));
    }

    /// Lets one more follow: `with` is called with the present role, and with the elector's lock held, so that no other role comes in between.
    pub(crate) fn join(&self, with: impl FnOnce(Role)) {
        let state = lock(&self.0.state);
        with(match state.announced {
            true => Role::Leader(state.status.term),
            false => Role::Standby,
        });
    }

    pub(crate) fn status(&self) -> LeaseStatus {
        lock(&self.0.state).status.clone()
    }

    /// # Errors
    ///
    /// When we lead by our own account, but the lease was not renewed for its duration and ten seconds more: the elector is stuck (client-go's rule).
    pub(crate) fn check(&self, now: Duration) -> Result<(), String> {
        let LeaseOptions {
            name,
            namespace,
            terms,
            ..
        } = &self.0.options;
        let renewed = lock(&self.0.state).elector.renewed();
        match renewed.and_then(|renewed| now.checked_sub(renewed)) {
            Some(ago) if ago > terms.duration + Duration::from_secs(10) => {
                let (ago, duration) = (ago.as_secs(), terms.duration.as_secs());
                Err(format!(
                    "the lease {namespace}/{name} was renewed {ago} s ago and lasts {duration} s, and yet nobody has given it up: its actor is stuck"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Gives the lease back if we hold it; nothing may be written from here on.
    pub(crate) fn resign(&self) {
        let change = |state: &mut State| {
            state.elector.resign();
            Vec::new()
        };
        self.change(change);
        self.0.wake.notify_one();
    }

    /// The actor is a new one: what its predecessor had asked for is lost, and if that gave the lease back it is campaigned for again.
    pub(super) fn interrupted(&self) {
        lock(&self.0.state).elector.interrupted();
    }

    /// Waits until we lead and nobody has been told: the term.
    pub(super) async fn unannounced(&self) -> u64 {
        loop {
            {
                let state = lock(&self.0.state);
                if state.elector.leads() && !state.announced {
                    return state.status.term;
                }
            }
            self.0.gained.notified().await;
        }
    }

    /// Work may begin, unless the term is over by now.
    pub(super) fn announce(&self, term: u64) {
        let mut state = lock(&self.0.state);
        if state.elector.leads() && state.status.term == term && !state.announced {
            state.announced = true;
            self.tell(Role::Leader(term));
        }
    }

    fn count(&self, state: &mut State) {
        state.share.get_or_insert_with(|| Share::of(&self.0.load));
    }

    fn tell(&self, role: Role) {
        if let Some(follower) = self.0.follower.get() {
            follower(role);
        }
    }

    pub(super) async fn woken(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn step(&self, clock: &Clock) -> (Step, Vec<Change>) {
        let wall = jiff::Timestamp::try_from(clock.wall()).unwrap_or_default();
        let mut step = Step::Rest;
        let changes = self.change(|state| {
            let others = self.0.load.0.load(Relaxed) - u32::from(state.share.is_some());
            let now = clock.boot();
            let (next, change) = state.elector.step(now, wall, others);
            step = next;
            state.status.vacant = state.elector.vacant(now);
            change.into_iter().collect()
        });
        if matches!(step, Step::Write(..)) {
            self.count(&mut lock(&self.0.state));
        }
        (step, changes)
    }

    pub(super) fn read(&self, answer: Answer, clock: &Clock, chance: f64) -> Vec<Change> {
        self.change(|state| {
            state.note(&answer);
            state.elector.read(answer, clock.boot(), chance)
        })
    }

    pub(super) fn wrote(
        &self,
        answer: Answer,
        sent: Duration,
        clock: &Clock,
        chance: f64,
    ) -> Vec<Change> {
        self.change(|state| {
            state.note(&answer);
            let now = clock.boot();
            if matches!(answer, Answer::Lease(_)) {
                state.status.renewal = Some(now.saturating_sub(sent));
            }
            state.elector.wrote(answer, sent, now, chance)
        })
    }

    /// Changes the elector, then what follows from it: the fence first, so that nobody who learns of a role finds the fence of another.
    fn change(&self, change: impl FnOnce(&mut State) -> Vec<Change>) -> Vec<Change> {
        let mut state = lock(&self.0.state);
        let led = state.elector.leads();
        let changes = change(&mut state);
        match state.elector.fence() {
            Some(until) => self.0.fence.open(until),
            None => self.0.fence.close(),
        }
        let leads = state.elector.leads();
        state.status.term += u64::from(leads && !led);
        let State {
            elector, status, ..
        } = &mut *state;
        status.leads = leads;
        status.vacant &= !leads;
        status.holder = elector.holder().map(str::to_owned);
        status.transitions = elector.transitions();
        status.slow_renewals = elector.slow;
        match leads {
            true => self.count(&mut state),
            false => state.share = None,
        }
        // who has come to lead says so when the caches are up to date
        if led && !leads {
            state.announced = false;
            self.tell(Role::Standby);
        }
        if leads && !led {
            self.0.gained.notify_one();
        }
        changes
    }
}

impl State {
    fn note(&mut self, answer: &Answer) {
        self.status.error = match answer {
            Answer::Failed(why) => Some(why.clone()),
            Answer::Lease(_) | Answer::Absent | Answer::Conflict => None,
        };
    }
}
