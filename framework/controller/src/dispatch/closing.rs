//! The stop of a manager, as the shards and workers of all its controllers see it.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

/// From the moment it begins no run starts any more, and those that run have until its end. The tree stops one actor after the other;
/// this is what makes the grace period one for all of them.
#[derive(Clone, Default)]
pub(crate) struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// Only the first call counts.
    pub(crate) fn begin(&self, end: Instant) {
        self.0.get_or_init(|| end);
    }

    /// When what still runs is cancelled; `None` as long as it has not begun.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}
