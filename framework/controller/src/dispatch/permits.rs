//! The bound on concurrent reconciles of one controller, shared by its shards.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Permits in circulation: taken by shards, given back by dropping.
///
/// A shard that finds none is remembered and woken, first come first served, when one is free.
#[derive(Clone)]
pub(crate) struct Permits(Arc<Inner>);

struct Inner {
    limit: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    waiting: VecDeque<(usize, Wake)>,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

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

    /// A permit, or the promise that `wake` is called once when one is free. A shard waits at most once, however often it asks.
    pub(crate) fn take(&self, shard: usize, wake: &Wake) -> Option<Permit> {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            return Some(Permit(self.clone()));
        }
        // the latest waker wins: a restarted shard has another address
        state.waiting.retain(|(waiting, _)| *waiting != shard);
        state.waiting.push_back((shard, wake.clone()));
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            state.free += 1;
            state.waiting.pop_front()
        };
        if let Some((_, wake)) = next {
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn no_more_permits_than_the_limit_and_who_waited_first_is_woken_first() {
        let permits = Permits::new(1);
        let woken = Arc::new(Mutex::new(vec![]));
        let wake = |shard: usize| -> Wake {
            let woken = woken.clone();
            Arc::new(move || woken.lock().expect("lock").push(shard))
        };
        let held = permits.take(0, &wake(0)).expect("the first is free");
        assert!(permits.take(1, &wake(1)).is_none());
        assert!(permits.take(2, &wake(2)).is_none());
        drop(held);
        assert_eq!(*woken.lock().expect("lock"), [1]);
        drop(permits.take(1, &wake(1)).expect("given back"));
        assert_eq!(*woken.lock().expect("lock"), [1, 2]);
    }

    #[test]
    fn a_shard_that_asks_twice_waits_once() {
        let permits = Permits::new(1);
        let calls = Arc::new(AtomicUsize::new(0));
        let wake: Wake = {
            let calls = calls.clone();
            Arc::new(move || {
                calls.fetch_add(1, Relaxed);
            })
        };
        let held = permits.take(0, &wake);
        assert!(permits.take(1, &wake).is_none() && permits.take(1, &wake).is_none());
        drop(held);
        drop(permits.take(0, &wake));
        assert_eq!(calls.load(Relaxed), 1);
    }
}
