//! The in-flight registry: which keys run right now. It lives outside the tree, so that no crash of a shard can make it forget.
//!
//! Invariants: (1) a key has at most one [`Running`]; (2) it is in the map exactly as long as it exists; (3) who waits in
//! [`InFlight::enter`] is woken by every removal. From (1) follows guarantee 1, whatever the cells of a rebuilt shard believe.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use boatswain_cache::Key;
use boatswain_supervision::{Virtual, VirtualChild};
use dashmap::{DashMap, mapref::entry::Entry};
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Inner>);

#[derive(Default)]
struct Inner {
    since: DashMap<Key, Instant>,
    released: Notify,
}

/// The right to run one key; dropped with the future that runs it.
pub(crate) struct Running {
    registry: InFlight,
    key: Key,
}

impl InFlight {
    /// Waits until nothing else runs `key`, then holds it.
    ///
    /// # Cancellation safety
    ///
    /// Dropped while waiting it leaves nothing behind.
    pub(crate) async fn enter(&self, key: &Key, now: Instant) -> Running {
        loop {
            let released = self.0.released.notified();
            tokio::pin!(released);
            // registered before the look, so that a release in between is not missed
            released.as_mut().enable();
            if let Entry::Vacant(free) = self.0.since.entry(key.clone()) {
                free.insert(now);
                return Running {
                    registry: self.clone(),
                    key: key.clone(),
                };
            }
            released.await;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.since.len()
    }

    /// What runs, longest first, at most `limit` of it.
    pub(crate) fn show(&self, now: Instant, limit: usize) -> Virtual {
        let mut running: Vec<(Instant, Key)> = self
            .0
            .since
            .iter()
            .map(|entry| (*entry.value(), entry.key().clone()))
            .collect();
        running.sort_unstable_by_key(|(since, _)| *since);
        let total = running.len();
        let child = |(since, key): (Instant, Key)| VirtualChild {
            id: key.to_string(),
            state: "running".into(),
            facts: [(
                "for_ms".into(),
                (now.saturating_duration_since(since).as_millis() as u64).into(),
            )]
            .into(),
        };
        Virtual {
            total,
            shown: running.into_iter().take(limit).map(child).collect(),
        }
    }

    /// Since when `key` has been running.
    pub(crate) fn since(&self, key: &Key) -> Option<Instant> {
        self.0.since.get(key).map(|since| *since)
    }

    /// What runs, and since when.
    pub(crate) fn running(&self) -> Vec<(Key, Instant)> {
        let running = self.0.since.iter();
        running
            .map(|entry| (entry.key().clone(), *entry.value()))
            .collect()
    }

    /// How long what runs has been running: each of them.
    pub(crate) fn ages(&self, now: Instant) -> Vec<Duration> {
        let age = |since: Instant| now.saturating_duration_since(since);
        self.0
            .since
            .iter()
            .map(|entry| age(*entry.value()))
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.registry.0.since.remove(&self.key);
        self.registry.0.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_that_still_runs_makes_the_next_run_of_it_wait() {
        let registry = InFlight::default();
        let key = Key::new(Some("shop"), "web");
        let now = boatswain_supervision::Clock::system().now();
        let first = registry.enter(&key, now).await;
        let second = tokio::time::timeout(Duration::from_secs(60), registry.enter(&key, now));
        assert!(second.await.is_err(), "two runs of one key overlapped");
        let other = Key::new(Some("shop"), "api");
        drop(
            tokio::time::timeout(Duration::from_secs(1), registry.enter(&other, now))
                .await
                .expect("free"),
        );

        let waiting = tokio::spawn({
            let (registry, key) = (registry.clone(), key.clone());
            async move { drop(registry.enter(&key, now).await) }
        });
        tokio::task::yield_now().await;
        drop(first);
        waiting.await.expect("entered after the release");
        assert_eq!(registry.len(), 0);
    }
}
