//! What an exit means, given what the child is: the table behind every restart; pure.

use crate::exit::{ErrorKind, Exit};
use crate::spec::{Restart, Strategy};

/// What a supervisor does about an exit it did not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The child is done and has no way back.
    Forget,
    /// The child is done, but comes back if its group is restarted.
    Rest,
    /// Restart what the strategy says, after a delay; unless the window is full, if this exit counts.
    Restart { counts: bool },
    /// Give up: a restart of this child alone cannot help.
    Escalate,
}

/// What `exit` means for a child with `restart`, under a supervisor that can give up or cannot.
pub(crate) fn decide(restart: Restart, exit: &Exit, can_give_up: bool) -> Decision {
    match (restart, exit) {
        (Restart::Temporary, _) => Decision::Forget,
        (Restart::Transient, Exit::Normal | Exit::Shutdown) => Decision::Rest,
        (
            _,
            Exit::Error {
                kind: ErrorKind::Fatal,
                ..
            },
        ) if can_give_up => Decision::Escalate,
        (_, exit) => Decision::Restart {
            counts: can_give_up && exit.counts(),
        },
    }
}

impl Strategy {
    /// Whether a child depends on those before it.
    pub(crate) fn is_ordered(self) -> bool {
        match self {
            Strategy::OneForOne => false,
            Strategy::RestForOne => true,
        }
    }
}

#[cfg(test)]
mod tests;
