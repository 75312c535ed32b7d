//! How long a lease lasts and how often it is renewed.

use std::time::Duration;

/// The terms of a lease: how long it lasts, until when it must be renewed, how often that is tried.
///
/// Defaults are those of the trade: 15 s, 10 s and 2 s. A rival takes over at most `duration` + `retry` after the holder's last sign of life; the
/// holder itself stops writing a tenth of `duration` earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// How long others must leave a lease alone after they last saw it renewed. Whole seconds, at least one: that is how a Lease spells it.
    pub duration: Duration,
    /// How long after its last successful renewal a holder gives up leading. Less than `duration` minus a tenth.
    pub deadline: Duration,
    /// How long between two tries to renew, or to acquire. `deadline` is more than 1.2 times as long.
    pub retry: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Terms that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// A Lease tells its duration in whole seconds.
    #[error(
        "the lease duration is {0:?}, but a Lease tells it in whole seconds, from 1 to 2147483647: choose such a number"
    )]
    Duration(Duration),
    /// Nobody may write when a rival could take over.
    #[error(
        "the renew deadline {deadline:?} is not below nine tenths of the lease duration {duration:?}: a leader would lead when it may not write any more; raise --lease-duration or lower --renew-deadline"
    )]
    Deadline {
        /// The deadline.
        deadline: Duration,
        /// The duration.
        duration: Duration,
    },
    /// One failed try would end the leadership.
    #[error(
        "the retry period {retry:?} is zero, or not below the renew deadline {deadline:?} divided by 1.2: one failed renewal would end the leadership; lower --retry-period or raise --renew-deadline"
    )]
    Retry {
        /// The retry period.
        retry: Duration,
        /// The deadline.
        deadline: Duration,
    },
}

impl LeaseTerms {
    /// Whether the terms can be kept.
    ///
    /// # Errors
    ///
    /// Unless `1.2 × retry < deadline < 0.9 × duration`, and `duration` is in whole seconds (client-go has the same rule without the tenth).
    pub fn validate(self) -> Result<Self, TermsError> {
        let Self {
            duration,
            deadline,
            retry,
        } = self;
        if duration.subsec_nanos() != 0 || !(1..=i32::MAX as u64).contains(&duration.as_secs()) {
            return Err(TermsError::Duration(duration));
        }
        if deadline >= self.fence() {
            return Err(TermsError::Deadline { deadline, duration });
        }
        if retry.is_zero() || retry.saturating_mul(12) >= deadline.saturating_mul(10) {
            return Err(TermsError::Retry { retry, deadline });
        }
        Ok(self)
    }

    /// How long after the sending of a successful renewal its holder may write: a tenth less than others leave it alone.
    pub(crate) fn fence(self) -> Duration {
        self.duration - self.duration / 10
    }

    /// How long one request may take: a connection that hangs must leave time for another try.
    pub(crate) fn patience(self) -> Duration {
        self.deadline / 2
    }
}
