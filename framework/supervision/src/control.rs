//! Orders from a supervisor to one child: a word of bits that overtakes the mailbox.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use futures::task::AtomicWaker;

/// What a supervisor may tell a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Begin the next incarnation. Takes back a stop that the last one did not live to see.
    Restart,
    /// Stop in good order.
    Stop,
    /// End now.
    Kill,
    /// The next exit, or the one that already happened, is the last: give everything back. Sticky.
    Release,
    /// Do nothing until [`Order::Resume`], but to end. Sticky: it outlasts restarts.
    Suspend,
    /// Take back [`Order::Suspend`].
    Resume,
}

/// The orders found on one look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) restart: bool,
    pub(crate) stop: bool,
    pub(crate) kill: bool,
    pub(crate) release: bool,
    pub(crate) suspended: bool,
}

const RESTART: u8 = 1;
const STOP: u8 = 2;
const KILL: u8 = 4;
const RELEASE: u8 = 8;
const CLOSED: u8 = 16;
const SUSPENDED: u8 = 32;

/// The word between one supervisor and one child: orders cannot pile up, and none is lost.
#[derive(Debug, Default)]
pub(crate) struct Control {
    bits: AtomicU8,
    waker: AtomicWaker,
}

impl Control {
    /// Gives an order; false if the child's task is gone and nobody will read it.
    pub(crate) fn order(&self, order: Order) -> bool {
        let old = match order {
            // the stop was meant for the incarnation before; the kill likewise
            Order::Restart => self.update(|bits| (bits & !(STOP | KILL)) | RESTART),
            Order::Stop => self.update(|bits| bits | STOP),
            Order::Kill => self.update(|bits| bits | KILL),
            Order::Release => self.update(|bits| bits | RELEASE),
            Order::Suspend => self.update(|bits| bits | SUSPENDED),
            Order::Resume => self.update(|bits| bits & !SUSPENDED),
        };
        self.waker.wake();
        old & CLOSED == 0
    }

    fn update(&self, change: impl Fn(u8) -> u8) -> u8 {
        match self
            .bits
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |bits| {
                Some(change(bits))
            }) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Takes the orders given since the last look and arranges to be woken for the next.
    pub(crate) fn take(&self, waker: &Waker) -> Orders {
        // registered before reading: an order given in between wakes us again
        self.waker.register(waker);
        let mut bits = self.bits.load(Ordering::Acquire);
        // most looks find nothing to take, and a write costs
        if bits & (RESTART | STOP | KILL) != 0 {
            bits = self.update(|bits| bits & !(RESTART | STOP | KILL));
        }
        Orders {
            restart: bits & RESTART != 0,
            stop: bits & STOP != 0,
            kill: bits & KILL != 0,
            release: bits & RELEASE != 0,
            suspended: bits & SUSPENDED != 0,
        }
    }

    /// Whether the next exit is the last.
    pub(crate) fn released(&self) -> bool {
        self.bits.load(Ordering::Acquire) & RELEASE != 0
    }

    pub(crate) fn suspended(&self) -> bool {
        self.bits.load(Ordering::Acquire) & SUSPENDED != 0
    }

    /// Whether the child's task has ended.
    pub(crate) fn closed(&self) -> bool {
        self.bits.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Gives the child's task a turn.
    pub(crate) fn nudge(&self) {
        self.waker.wake();
    }

    /// The child's task has ended: orders given from now on are refused.
    pub(crate) fn close(&self) {
        self.update(|bits| bits | CLOSED);
    }
}

#[cfg(test)]
mod tests;
