//! Asks the author's predicate, whose panic is its own.

use std::sync::atomic::{AtomicBool, Ordering};

use boatswain_cache::{Change, Predicate};

use super::guard::guarded;

pub(super) struct Sieve {
    when: Option<Predicate>,
    failed: AtomicBool,
}

/// What a change is worth.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Run,
    Nothing,
    /// The predicate panicked; `first` if it never did before.
    Unknown {
        first: bool,
    },
}

impl Sieve {
    pub(super) fn new(when: Option<Predicate>) -> Self {
        Self {
            when,
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn judge(&self, change: &Change) -> Worth {
        let Some(when) = &self.when else {
            return Worth::Run;
        };
        match guarded(|| when.passes(change)) {
            Ok(true) => Worth::Run,
            Ok(false) => Worth::Nothing,
            Err(_) => Worth::Unknown {
                first: !self.failed.swap(true, Ordering::Relaxed),
            },
        }
    }
}
