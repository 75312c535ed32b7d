//! When to scale, when to leave it, when to step back from a rival; pure.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Corrections of the same field that are made within [`WINDOW`] before the controller steps back, or says that it had to if it is then left alone.
pub const CORRECTIONS: usize = 3;
/// The window in which corrections count.
pub const WINDOW: Duration = Duration::from_secs(60);
/// How long the first step back lasts; each following one twice as long, up to [`HOLD_MAX`].
pub const HOLD: Duration = Duration::from_secs(60);
/// The longest step back.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 60);
/// After so long in agreement a rivalry is forgotten.
pub const PEACE: Duration = Duration::from_secs(10 * 60);
/// After so long in agreement the rival has stepped back: until then another change may be under way.
pub const SETTLED: Duration = Duration::from_secs(5);
/// After so long in agreement a rival that has stepped back is gone: one that follows the same rule would have tried again.
pub const GONE: Duration = Duration::from_secs(HOLD_MAX.as_secs() + WINDOW.as_secs());

/// What is wanted, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The generation of the object that wants it, where that has one: a new one is a new decision of its owner and starts with a clean slate.
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
    /// Nothing yet: the Deployment asks for what is wanted since it was corrected so often, and it is not clear whether that lasts.
    Wait {
        /// When it will be clear.
        left: Duration,
    },
    /// Nothing: the Deployment asks for what is wanted, because the rival has stepped back. It may try again.
    Upheld {
        /// When the rival is gone, if nothing happens till then.
        left: Duration,
        /// Whether this was not known before, which is worth an Event.
        begins: bool,
    },
    /// Write the replicas.
    Scale {
        /// What the Deployment asks for.
        from: i32,
        /// What it is to ask for.
        to: i32,
        /// Whether this is the last correction before a step back: who is to blame is known now or never.
        last: bool,
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
    upheld: Upheld,
}

/// Whether the controller's own value stands against a rival's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Upheld {
    #[default]
    No,
    /// As often as it takes for a step back it was set again; the rival has not stepped back yet.
    Asserted,
    Said,
}

impl Rivalry {
    /// Decides what to do when the Deployment asks for `current` replicas. What `begins` is said once; otherwise a repeated call decides
    /// the same. [`Rivalry::wrote`] is told of a write that was accepted.
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
            return self.agree(now.duration_since(since));
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
            self.upheld = Upheld::No;
            return Decision::Hold { left, begins: true };
        }
        Decision::Scale {
            from: current,
            to: wanted.replicas,
            last: self.written.is_some() && self.corrections.len() + 1 == CORRECTIONS,
        }
    }

    /// What to do after so long in agreement.
    fn agree(&mut self, time: Duration) -> Decision {
        if time >= PEACE {
            (self.holds, self.held_until) = (0, None);
        }
        if time >= GONE {
            self.upheld = Upheld::No;
        }
        let begins = match self.upheld {
            Upheld::No => return Decision::InSync,
            Upheld::Asserted if time < SETTLED => {
                return Decision::Wait {
                    left: SETTLED - time,
                };
            }
            Upheld::Asserted => true,
            Upheld::Said => false,
        };
        self.upheld = Upheld::Said;
        Decision::Upheld {
            left: GONE - time,
            begins,
        }
    }

    /// The write that [`Decision::Scale`] asked for was accepted.
    pub fn wrote(&mut self, wanted: &Wanted, now: Instant) {
        if self.written.as_ref() == Some(wanted) && self.held_until.is_none() {
            self.corrections.push_back(now);
            if self.corrections.len() > CORRECTIONS {
                self.corrections.pop_front();
            }
            if self.corrections.len() == CORRECTIONS && self.upheld == Upheld::No {
                self.upheld = Upheld::Asserted;
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
