//! A token bucket for each source and object, so that none of them drowns out the others; pure.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

/// New Events about one object that one source may tell at once, as in client-go.
pub(super) const BURST: u32 = 25;
/// How long it takes to be allowed another one.
pub(super) const EVERY: Duration = Duration::from_secs(5 * 60);
/// Buckets that are remembered; of more the one is forgotten that is nearest to being full again.
const REMEMBERED: usize = 4096;

/// Only buckets that lack tokens are kept.
#[derive(Default)]
pub(super) struct Spam {
    /// When a bucket will be full again; the number tells those of one moment apart.
    full_at: HashMap<String, (Instant, u64)>,
    by_time: BTreeMap<(Instant, u64), String>,
    next: u64,
}

impl Spam {
    /// Takes a token of `subject`, if there is one.
    pub(super) fn take(&mut self, subject: &str, now: Instant) -> bool {
        self.forget_full(now);
        let before = self.full_at.get(subject).copied();
        let full_at = before.map_or(now, |(at, _)| at);
        if full_at.saturating_duration_since(now) > EVERY * (BURST - 1) {
            return false;
        }
        if let Some(before) = before {
            self.by_time.remove(&before);
        } else if self.full_at.len() >= REMEMBERED
            && let Some((_, nearest)) = self.by_time.pop_first()
        {
            self.full_at.remove(&nearest);
        }
        self.next += 1;
        let at = (full_at + EVERY, self.next);
        self.full_at.insert(subject.to_owned(), at);
        self.by_time.insert(at, subject.to_owned());
        true
    }

    pub(super) fn clear(&mut self) {
        self.full_at.clear();
        self.by_time.clear();
    }

    fn forget_full(&mut self, now: Instant) {
        while let Some(first) = self.by_time.first_entry()
            && first.key().0 <= now
        {
            self.full_at.remove(&first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::Clock;

    use super::*;

    #[test]
    fn one_object_may_be_told_of_so_many_times_at_once_and_then_once_in_five_minutes() {
        let (mut spam, begun) = (Spam::default(), Clock::system().now());
        let mut taken = |at: Duration| (0..100).filter(|_| spam.take("a", begun + at)).count();
        assert_eq!(taken(Duration::ZERO), 25);
        assert_eq!(taken(EVERY - Duration::from_millis(1)), 0);
        assert_eq!(taken(EVERY), 1);
        assert_eq!(taken(EVERY * 4), 3);
        assert_eq!(taken(EVERY * 1000), 25, "no more than a full bucket");
    }

    #[test]
    fn objects_and_sources_have_tokens_of_their_own_and_those_of_full_buckets_take_no_memory() {
        let (mut spam, now) = (Spam::default(), Clock::system().now());
        while spam.take("a", now) {}
        assert!(spam.take("b", now));
        for i in 0..10_000 {
            assert!(spam.take(&i.to_string(), now));
        }
        assert_eq!(spam.full_at.len(), REMEMBERED);
        assert!(!spam.take("a", now), "who has least is forgotten last");
        spam.take("a", now + EVERY * 30);
        assert_eq!((spam.full_at.len(), spam.by_time.len()), (1, 1));
    }
}
