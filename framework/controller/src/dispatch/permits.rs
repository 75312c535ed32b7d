//! The bound on concurrent reconciles of one controller, shared by its shards.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::sync::lock;

/// Permits in circulation: taken by shards, given back by dropping.
///
/// A shard that finds none is remembered, and the next that is free is handed to whoever waits longest: a shard with a long queue
/// cannot take again what it has just given back.
#[derive(Clone)]
pub(crate) struct Permits(Arc<Inner>);

struct Inner {
    limit: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    waiting: VecDeque<(usize, Hand)>,
}

/// Hands a permit to a shard. A shard that is gone, or has no work any more, drops it, and it goes on to the next.
pub(super) type Hand = Arc<dyn Fn(Permit) + Send + Sync>;

/// The right to run one reconcile.
pub(crate) struct Permit(Permits);

impl Permits {
    pub(crate) fn new(limit: usize) -> Self {
        let state = State {
            free: limit,
            waiting: VecDeque::new(),
        };
        Self(Arc::new(Inner {
            limit,
            state: Mutex::new(state),
        }))
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// A permit, or the promise that `hand` is called once with one. A shard waits at most once, in one place, however often it asks.
    pub(super) fn take(&self, shard: usize, hand: &Hand) -> Option<Permit> {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            return Some(Permit(self.clone()));
        }
        match state.waiting.iter_mut().find(|(who, _)| *who == shard) {
            // a rebuilt shard has another address
            Some((_, present)) => *present = hand.clone(),
            None => state.waiting.push_back((shard, hand.clone())),
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            let next = state.waiting.pop_front();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some((_, hand)) = next {
            hand(Self(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
