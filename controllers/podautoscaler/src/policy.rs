//! When to scale, when to leave it, when to step back from a rival; pure.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Corrections of the same field that are made within [`WINDOW`] before the controller steps back.
pub const CORRECTIONS: usize = 3;
/// The window in which corrections count.
pub const WINDOW: Duration = Duration::from_secs(60);
/// How long the first step back lasts; each following one twice as long, up to [`HOLD_MAX`].
pub const HOLD: Duration = Duration::from_secs(60);
/// The longest step back.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 60);
/// After so long in agreement a rivalry is forgotten.
pub const PEACE: Duration = Duration::from_secs(10 * 60);

/// What is wanted, from the PodAutoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The PodAutoscaler's generation: a new one is a new decision of its owner and starts with a clean slate.
    pub generation: Option<i64>,
    /// The target's identity, its uid: a recreated Deployment has no history.
    pub target: Option<String>,
    /// The replicas to have.
    pub replicas: i32,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: the Deployment asks for what is wanted.
    InSync,
    /// Write the replicas.
    Scale {
        /// What the Deployment asks for.
        from: i32,
        /// What it is to ask for.
        to: i32,
    },
    /// Leave it to the rival for so long.
    Hold {
        /// The time that is left.
        left: Duration,
        /// Whether the step back begins now, which is worth an Event.
        begins: bool,
    },
}

/// What is remembered of one key between runs.
#[derive(Clone, Debug, Default)]
pub struct Rivalry {
    /// What was wanted when the replicas were last written.
    written: Option<Wanted>,
    /// When the controller's own value was set again after someone had changed it; at most [`CORRECTIONS`].
    corrections: VecDeque<Instant>,
    held_until: Option<Instant>,
    holds: u32,
    agreed_since: Option<Instant>,
}

impl Rivalry {
    /// Decides what to do when the Deployment asks for `current` replicas. Changes nothing that a repeated call would not decide
    /// the same way; [`Rivalry::wrote`] is told of a write that was accepted.
    pub fn decide(&mut self, wanted: &Wanted, current: i32, now: Instant) -> Decision {
        if self
            .written
            .as_ref()
            .is_some_and(|written| written != wanted)
        {
            *self = Self::default();
        }
        if current == wanted.replicas {
            let since = *self.agreed_since.get_or_insert(now);
            if now.duration_since(since) >= PEACE {
                (self.holds, self.held_until) = (0, None);
            }
            return Decision::InSync;
        }
        self.agreed_since = None;
        if let Some(until) = self.held_until.filter(|until| *until > now) {
            return Decision::Hold {
                left: until - now,
                begins: false,
            };
        }
        self.corrections
            .retain(|at| now.duration_since(*at) < WINDOW);
        // one try after each step back, CORRECTIONS before the first
        let allowed = if self.holds == 0 { CORRECTIONS } else { 0 };
        let try_again = self.held_until.is_some();
        if self.written.is_some() && !try_again && self.corrections.len() >= allowed {
            let left = HOLD
                .saturating_mul(2u32.saturating_pow(self.holds))
                .min(HOLD_MAX);
            self.holds = self.holds.saturating_add(1);
            self.held_until = Some(now + left);
            return Decision::Hold { left, begins: true };
        }
        Decision::Scale {
            from: current,
            to: wanted.replicas,
        }
    }

    /// The write that [`Decision::Scale`] asked for was accepted.
    pub fn wrote(&mut self, wanted: &Wanted, now: Instant) {
        if self.written.as_ref() == Some(wanted) && self.held_until.is_none() {
            self.corrections.push_back(now);
            if self.corrections.len() > CORRECTIONS {
                self.corrections.pop_front();
            }
        }
        self.held_until = None;
        self.written = Some(wanted.clone());
    }

    /// Whether the controller has stepped back at `now`.
    pub fn held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests;
