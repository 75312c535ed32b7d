//! How long to leave a server alone that failed.

use std::time::{Duration, Instant};

use boatswain_supervision::Entropy;

const MIN: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
const RESET: Duration = Duration::from_secs(120);

/// Delays of client-go's reflector: a base of 800 ms that doubles up to 30 s, each delay drawn from [base, 2 × base), back to the first after
/// two minutes without a failure.
#[derive(Debug)]
pub(crate) struct Backoff {
    base: Duration,
    /// When the last delay was over.
    over: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self {
            base: MIN,
            over: None,
        }
    }

    /// When to try again after a failure at `now`, but not before `floor` has passed.
    pub(crate) fn next(&mut self, now: Instant, floor: Duration, entropy: &Entropy) -> Instant {
        if self
            .over
            .is_some_and(|over| now.saturating_duration_since(over) >= RESET)
        {
            self.base = MIN;
        }
        let delay = (self.base + self.base.mul_f64(entropy.unit())).max(floor);
        self.base = (self.base * 2).min(MAX);
        let over = now + delay;
        self.over = Some(over);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use boatswain_supervision::{Clock, Entropy};
    use std::time::Duration;

    #[test]
    fn delays_double_from_800_ms_to_30_s_with_full_jitter_and_reset_after_two_healthy_minutes() {
        let (mut backoff, entropy, mut now) =
            (Backoff::new(), Entropy::seeded(1), Clock::system().now());
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let until = backoff.next(now, Duration::ZERO, &entropy);
            let delay = (until - now).as_secs_f64();
            assert!(
                (base..2.0 * base).contains(&delay),
                "{delay} is not in [{base}, {})",
                2.0 * base
            );
            now = until + Duration::from_secs(119);
        }
        now += Duration::from_secs(1);
        assert!(backoff.next(now, Duration::ZERO, &entropy) - now < Duration::from_millis(1600));
    }

    #[test]
    fn a_delay_asked_for_by_the_server_is_a_floor() {
        let (mut backoff, now) = (Backoff::new(), Clock::system().now());
        assert_eq!(
            backoff.next(now, Duration::from_secs(20), &Entropy::seeded(1)),
            now + Duration::from_secs(20)
        );
    }
}
