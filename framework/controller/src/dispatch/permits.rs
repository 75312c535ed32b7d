//! The bound on concurrent reconciles of one controller, shared by its shards.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::sync::lock;

/// How long a permit is kept for the shard it was promised to.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);

/// Permits in circulation: taken by workers, given back by dropping.
///
/// A shard that finds none stands in line, and the next that is free is promised to whoever stands longest and rung for: a shard with a long queue
/// cannot take again what it has just given back. No shard has to give back its even share of them, so that busy ones need not pass theirs round. Promises are no permits: what is not fetched within [`PATIENCE`], because the shard's thread is
/// blocked for instance, is anybody's.
#[derive(Clone)]
pub(crate) struct Permits(Arc<Inner>);

struct Inner {
    limit: usize,
    state: Mutex<State>,
    /// Shards in line, and promises: looked at between runs, without the lock.
    pressing: AtomicUsize,
    shards: Vec<Shard>,
}

struct Shard {
    bell: Arc<Notify>,
    /// Permits that its workers have.
    has: AtomicUsize,
}

struct State {
    free: usize,
    line: VecDeque<usize>,
    promised: Vec<Promise>,
}

struct Promise {
    shard: usize,
    /// When somebody else was first refused because of it.
    refused: Option<Instant>,
}

/// The right to run one reconcile after the other.
pub(crate) struct Permit {
    permits: Permits,
    shard: usize,
}

impl Permits {
    /// As many as `limit`, for shards that are woken by these.
    pub(crate) fn new(limit: usize, bells: Vec<Arc<Notify>>) -> Self {
        let shard = |bell| Shard {
            bell,
            has: AtomicUsize::new(0),
        };
        let state = State {
            free: limit,
            line: VecDeque::new(),
            promised: Vec::new(),
        };
        Self(Arc::new(Inner {
            limit,
            state: Mutex::new(state),
            pressing: AtomicUsize::new(0),
            shards: bells.into_iter().map(shard).collect(),
        }))
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// Whether others wait, so that a shard which has more than its share should give one back between two runs.
    pub(super) fn are_wanted(&self, from: usize) -> bool {
        let Inner { shards, limit, .. } = &*self.0;
        let has = |shard: &Shard| shard.has.load(Relaxed);
        self.are_pressing() && shards.get(from).map_or(0, has) > limit / shards.len().max(1)
    }

    fn are_pressing(&self) -> bool {
        self.0.pressing.load(Relaxed) > 0
    }

    fn permit(&self, shard: usize) -> Permit {
        if let Some(shard) = self.0.shards.get(shard) {
            shard.has.fetch_add(1, Relaxed);
        }
        let permits = self.clone();
        Permit { permits, shard }
    }

    /// A permit, or a place in line: the shard is rung for. It stands there at most once, however often it asks, and asks again after [`PATIENCE`].
    pub(super) fn take(&self, shard: usize, now: Instant) -> Option<Permit> {
        let mut state = self.state();
        if let Some(mine) = state.promised.iter().position(|p| p.shard == shard) {
            state.promised.swap_remove(mine);
            self.press(&state);
            return Some(self.permit(shard));
        }
        let before = state.promised.len();
        state.promised.retain_mut(|promise| {
            let refused = *promise.refused.get_or_insert(now);
            now.saturating_duration_since(refused) < PATIENCE
        });
        state.free += before - state.promised.len();
        if state.free > 0 {
            state.free -= 1;
            state.line.retain(|waiting| *waiting != shard);
            self.press(&state);
            return Some(self.permit(shard));
        }
        if !state.line.contains(&shard) {
            state.line.push_back(shard);
        }
        self.press(&state);
        None
    }

    /// The shard has nothing to run: whatever it was promised goes on to the next.
    pub(super) fn decline(&self, shard: usize) {
        if !self.are_pressing() {
            return;
        }
        let mut state = self.state();
        state.line.retain(|waiting| *waiting != shard);
        let before = state.promised.len();
        state.promised.retain(|promise| promise.shard != shard);
        for _ in state.promised.len()..before {
            self.give(&mut state);
        }
        self.press(&state);
    }

    fn give(&self, state: &mut State) {
        match state.line.pop_front() {
            Some(shard) => {
                state.promised.push(Promise {
                    shard,
                    refused: None,
                });
                if let Some(shard) = self.0.shards.get(shard) {
                    shard.bell.notify_one();
                }
            }
            None => state.free += 1,
        }
    }

    fn press(&self, state: &State) {
        let pressing = state.line.len() + state.promised.len();
        self.0.pressing.store(pressing, Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Self { permits, shard } = self;
        let mut state = permits.state();
        if let Some(shard) = permits.0.shards.get(*shard) {
            shard.has.fetch_sub(1, Relaxed);
        }
        permits.give(&mut state);
        permits.press(&state);
    }
}

#[cfg(test)]
mod tests;
