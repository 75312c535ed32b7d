//! State that outlives the incarnations it is lent to.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::stats::lock;

/// Holds what must survive its actor: lent to one incarnation at a time, and taken back at its death.
///
/// A restart makes a new value of the actor, so that nothing half-changed lives on. What is too costly to build anew, such as a cache or the
/// batch in hand, goes into a slot: `make` borrows it, the actor owns the [`Loan`] and uses it without a lock, and however the incarnation ends
/// it comes back, before the supervisor hears of the end. The next borrower learns from [`Loan::after_crash`] whether to
/// look for damage. Cheap to clone; clones are the same slot.
///
/// ```
/// # use std::time::Duration;
/// # use actix::{Actor, Handler, Message, System};
/// # use boatswain_supervision::{
/// #     ChildSpec, Context, Failure, Loan, Mailbox, Slot, Strategy, SupervisorSpec, Tree, TreeOptions, supervised,
/// # };
/// struct Ledger {
///     total: Loan<u64>,
/// }
/// # impl Actor for Ledger {
/// #     type Context = Context<Self>;
/// # }
/// # supervised!(Ledger);
/// # struct Book(u64);
/// # impl Message for Book {
/// #     type Result = ();
/// # }
///
/// impl Handler<Book> for Ledger {
///     type Result = ();
///
///     fn handle(&mut self, Book(amount): Book, _: &mut Context<Self>) {
///         *self.total += amount;
///         assert!(amount < 1000, "cannot believe it");
///     }
/// }
///
/// # System::new().block_on(async {
/// # let mailbox = Mailbox::new();
/// # let address = mailbox.address();
/// # let tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), TreeOptions::default()).await.unwrap();
/// let slot = Slot::new(0);
/// let books = slot.clone();
/// let spec = ChildSpec::try_actor("ledger", mailbox, move |_| {
///     let mut total = books.lend().map_err(Failure::transient)?;
///     if total.after_crash() {
///         *total = 0;
///     }
///     Ok(Ledger { total })
/// });
/// # tree.add_child("root", spec).await.unwrap();
/// # address.ask(Book(1)).await.unwrap();
/// # address.ask(Book(1000)).await.unwrap_err();
/// # address.ask(Book(2)).await.unwrap();
/// # tree.stop(Duration::from_secs(5)).await.unwrap();
/// # assert_eq!(slot.take(), Ok(2));
/// # });
/// ```
pub struct Slot<T>(Arc<Mutex<State<T>>>);

/// Why a slot has no value to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// Somebody has borrowed it: an incarnation that has not ended, be it that it blocks its thread.
    #[error("the value is lent: its borrower has not ended yet")]
    Lent,
    /// It was taken out for good.
    #[error("the value was taken out of the slot for good")]
    Taken,
}

enum State<T> {
    Here { value: Box<T>, crashed: bool },
    Lent,
    Taken,
}

impl<T> State<T> {
    /// Takes the value, and whether its last borrower crashed; leaves `instead` in its place.
    fn leave(&mut self, instead: State<T>) -> Result<(Box<T>, bool), SlotError> {
        let (absent, error) = match std::mem::replace(self, instead) {
            State::Here { value, crashed } => return Ok((value, crashed)),
            State::Lent => (State::Lent, SlotError::Lent),
            State::Taken => (State::Taken, SlotError::Taken),
        };
        *self = absent;
        Err(error)
    }
}

impl<T> Slot<T> {
    /// A slot that holds `value`.
    #[must_use]
    pub fn new(value: T) -> Slot<T> {
        Slot(Arc::new(Mutex::new(State::Here {
            value: Box::new(value),
            crashed: false,
        })))
    }

    /// Lends the value, for one borrower at a time. It comes back when the loan is dropped.
    ///
    /// # Errors
    /// If it is lent already, or was taken out.
    pub fn lend(&self) -> Result<Loan<T>, SlotError> {
        let (value, after_crash) = lock(&self.0).leave(State::Lent)?;
        Ok(Loan {
            slot: self.clone(),
            value: Some(value),
            after_crash,
        })
    }

    /// Looks at the value while nobody has it. `read` runs under the slot's lock: it should be quick, and must not use the slot.
    ///
    /// # Errors
    /// If it is lent, or was taken out.
    pub fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> Result<R, SlotError> {
        match &*lock(&self.0) {
            State::Here { value, .. } => Ok(read(value)),
            State::Lent => Err(SlotError::Lent),
            State::Taken => Err(SlotError::Taken),
        }
    }

    /// Takes the value out for good, for what comes after the last incarnation.
    ///
    /// # Errors
    /// If it is lent, or was taken out before.
    pub fn take(&self) -> Result<T, SlotError> {
        let (value, _) = lock(&self.0).leave(State::Taken)?;
        Ok(*value)
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Slot(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*lock(&self.0) {
            State::Here { .. } => "here",
            State::Lent => "lent",
            State::Taken => "taken",
        };
        f.debug_tuple("Slot").field(&state).finish()
    }
}

/// What a [`Slot`] has lent: its borrower's own until it is dropped, when it goes back.
pub struct Loan<T> {
    slot: Slot<T>,
    /// Taken when the loan is dropped, never before.
    value: Option<Box<T>>,
    after_crash: bool,
}

impl<T> Loan<T> {
    /// Whether the last borrower panicked, so that the value may be half-changed.
    ///
    /// An incarnation that stopped, failed with an error or was killed did not: it ended between two steps. If `make` borrows and yet makes
    /// no actor, the mark stays as it was for the next attempt.
    #[must_use]
    pub fn after_crash(&self) -> bool {
        self.after_crash
    }
}

impl<T> Deref for Loan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("the value of a loan is there until its drop"),
        }
    }
}

impl<T> DerefMut for Loan<T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("the value of a loan is there until its drop"),
        }
    }
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        let crashed = thread::panicking()
            || match MOMENT.try_with(Cell::get) {
                Ok(Moment::Crash) => true,
                Ok(Moment::Making) => self.after_crash,
                Ok(Moment::Ordinary) | Err(_) => false,
            };
        if let Some(value) = self.value.take() {
            *lock(&self.slot.0) = State::Here { value, crashed };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("value", &self.value)
            .field("after_crash", &self.after_crash)
            .finish_non_exhaustive()
    }
}

/// What a loan that is dropped on this thread is dropped by.
#[derive(Clone, Copy)]
pub(crate) enum Moment {
    Ordinary,
    /// An actor is being made.
    Making,
    /// What is left of an actor that panicked is being dropped.
    Crash,
}

thread_local! {
    static MOMENT: Cell<Moment> = const { Cell::new(Moment::Ordinary) };
}

/// Lets loans know what they are dropped by. `code` does not unwind.
pub(crate) fn during<T>(moment: Moment, code: impl FnOnce() -> T) -> T {
    let outer = MOMENT.replace(moment);
    let result = code();
    MOMENT.set(outer);
    result
}

#[cfg(test)]
mod tests;
