//! Which keys run right now: read off the queues of the shards, which outlive the tree.

use std::time::{Duration, Instant};

use boatswain_cache::Key;
use boatswain_supervision::{Virtual, VirtualChild};
use boatswain_workqueue::Phase;

use super::ShardView;

#[derive(Clone, Default)]
pub(crate) struct InFlight(Vec<ShardView>);

impl InFlight {
    pub(crate) fn new(shards: Vec<ShardView>) -> Self {
        Self(shards)
    }

    /// What runs, and since when.
    pub(crate) fn running(&self) -> Vec<(Key, Instant)> {
        let mut running = Vec::new();
        for shard in &self.0 {
            shard.look(|queue| {
                let runs = queue.cells();
                // they come first
                let runs = runs.take_while(|(_, cell)| matches!(cell.phase, Phase::Running { .. }));
                running.extend(runs.map(|(key, cell)| (key.clone(), cell.since)));
            });
        }
        running
    }

    /// What runs, longest first, at most `limit` of it.
    pub(crate) fn show(&self, now: Instant, limit: usize) -> Virtual {
        let mut running = self.running();
        running.sort_unstable_by_key(|(_, since)| *since);
        let total = running.len();
        let child = |(key, since): (Key, Instant)| VirtualChild {
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

    /// How long what runs has been running: each of them.
    pub(crate) fn ages(&self, now: Instant) -> Vec<Duration> {
        let running = self.running().into_iter();
        running
            .map(|(_, since)| now.saturating_duration_since(since))
            .collect()
    }
}
