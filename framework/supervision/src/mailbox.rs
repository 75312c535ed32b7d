//! Mailboxes that exist before their actor, and addresses that count.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use actix::dev::channel::{AddressReceiver, AddressSender, channel};
use actix::{Actor, Handler, Message};

use crate::context::Context;
use crate::gauge::{Gauge, Gauged};
use crate::panics::Foreign;

/// The queue of an actor that is yet to be started: addresses exist first, so siblings can be given each other's in any order.
///
/// The queue survives restarts of its actor. It has no capacity: bound a producer by [`Credits`](crate::Credits), and watch [`Address::high_water`].
/// Only questions are bounded, and only while there is no incarnation of the actor to answer them: see [`Mailbox::with_buffer`].
pub struct Mailbox<A: Actor> {
    pub(crate) receiver: AddressReceiver<A>,
    address: Address<A>,
}

/// Questions that may wait for an actor that is down, unless its mailbox says otherwise.
const BUFFER: usize = 1024;

impl<A: Actor> Mailbox<A> {
    /// A queue without an actor, in which up to 1,024 questions wait for one. Messages sent now are handled once it has one.
    #[must_use]
    pub fn new() -> Self {
        Mailbox::with_buffer(BUFFER)
    }

    /// Sets how many questions may wait while the actor is down: it has ended and waits to be restarted, or is yet to be started.
    ///
    /// Those that waited already when it ended go on waiting, and count; while `questions` or more wait, a new one is refused at once with
    /// [`AskError::Restarting`]. One whose asker has lost patience counts until the actor is back.
    /// Messages told rather than asked are neither refused nor counted.
    #[must_use]
    pub fn with_buffer(questions: usize) -> Self {
        // a capacity of zero is actix' way to say none
        let (tx, receiver) = channel(0);
        Mailbox {
            receiver,
            address: Address(Arc::new(Inner {
                tx,
                gauge: Gauge::default(),
                buffer: questions,
            })),
        }
    }

    /// An address of this mailbox.
    #[must_use]
    pub fn address(&self) -> Address<A> {
        self.address.clone()
    }

    /// Its counts, and no more of it than that.
    pub(crate) fn gauged(&self) -> Arc<dyn Gauged> {
        Arc::clone(&self.address.0) as _
    }
}

impl<A: Actor> Default for Mailbox<A> {
    fn default() -> Self {
        Mailbox::new()
    }
}

impl<A: Actor> fmt::Debug for Mailbox<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("depth", &self.address.depth())
            .finish_non_exhaustive()
    }
}

/// Where messages for an actor go. Cheap to clone; stays valid across restarts.
pub struct Address<A: Actor>(Arc<Inner<A>>);

struct Inner<A: Actor> {
    tx: AddressSender<A>,
    gauge: Gauge,
    /// Questions that may wait while the actor is down.
    buffer: usize,
}

impl<A: Actor> Gauged for Inner<A> {
    fn gauge(&self) -> &Gauge {
        &self.gauge
    }
}

/// Why an [`Address::ask`] brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The actor is gone for good; the message was not handled.
    #[error("the actor is gone: the message was not handled")]
    Gone,
    /// The actor is down and about to be restarted, and as many questions as may wait for that do; the message was not handled, and asking again is safe.
    #[error("the actor is down until it is restarted: the message was not handled, ask again")]
    Restarting,
    /// The actor failed on this message, or ended before it answered. Whether the message had an effect is unknown.
    #[error(
        "the actor failed or ended before it answered: whether the message had an effect is unknown"
    )]
    Lost,
}

impl AskError {
    /// Whether the message was certainly not handled, so that asking again cannot do anything twice. Of an actor that is gone, ask its successor.
    #[must_use]
    pub fn is_retry_safe(self) -> bool {
        match self {
            AskError::Gone | AskError::Restarting => true,
            AskError::Lost => false,
        }
    }
}

thread_local! {
    /// Set while an address packs a message, so that the envelope knows that the gauge has counted it.
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the message being packed was counted by an address of ours, rather than sent past it through an actix address.
pub(crate) fn packed_by_address() -> bool {
    COUNTED.replace(false)
}

impl<A: Actor> Address<A> {
    /// The number of messages waiting; 0 once the actor is gone for good.
    #[must_use]
    pub fn depth(&self) -> usize {
        if self.is_open() {
            self.0.gauge.depth()
        } else {
            0
        }
    }

    /// The largest number of messages that ever waited.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.0.gauge.high_water()
    }

    /// Whether the actor can still get messages: it runs, waits to be restarted, or is yet to be started.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.tx.connected()
    }

    /// The same place as a plain actix address, for interfaces that want one. Messages sent through it do not count in [`depth`](Self::depth).
    #[must_use]
    pub fn actix(&self) -> actix::Addr<A> {
        actix::Addr::new(self.0.tx.clone())
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        &self.0.gauge
    }
}

impl<A: Actor<Context = Context<A>>> Address<A> {
    /// Sends a message that wants no answer; false if the actor is gone for good.
    ///
    /// True means queued, not handled: the actor may yet end, or fail on this very message, which is then dropped.
    pub fn tell<M>(&self, message: M) -> bool
    where
        A: Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        self.counted(|tx| tx.do_send(message)).is_ok()
    }

    /// Sends a message and returns the answer. The message is queued at once, before the future is first polled.
    ///
    /// While the actor is down the question waits with its restart, if the mailbox has room for it ([`Mailbox::with_buffer`]); bound it with a
    /// timeout where that is too long, or ask only [if it is running](Self::ask_if_running).
    ///
    /// # Errors
    /// [`AskError::Gone`] if the actor is gone for good, [`AskError::Restarting`] if it is down and too many questions wait for it already,
    /// [`AskError::Lost`] if it failed on this message or ended before it answered.
    ///
    /// # Cancellation safety
    /// Dropping the future while the message waits takes the message back; once handling began it goes on, and the answer is dropped.
    pub fn ask<M>(
        &self,
        message: M,
    ) -> impl Future<Output = Result<M::Result, AskError>> + Send + use<A, M>
    where
        A: Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        self.question(message, self.0.buffer)
    }

    /// As [`ask`](Self::ask), but never waits for a restart: the answer is [`AskError::Restarting`] at once if the actor is down.
    ///
    /// An actor that ends with the question already in its queue answers it after its restart.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    ///
    /// # Cancellation safety
    /// As [`ask`](Self::ask).
    pub fn ask_if_running<M>(
        &self,
        message: M,
    ) -> impl Future<Output = Result<M::Result, AskError>> + Send + use<A, M>
    where
        A: Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        self.question(message, 0)
    }

    fn question<M>(
        &self,
        message: M,
        room: usize,
    ) -> impl Future<Output = Result<M::Result, AskError>> + Send + use<A, M>
    where
        A: Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let gauge = &self.0.gauge;
        let sent = if gauge.admit(room) {
            self.counted(|tx| tx.send(message)).map_err(|_| {
                gauge.settle();
                AskError::Gone
            })
        } else if self.is_open() {
            Err(AskError::Restarting)
        } else {
            Err(AskError::Gone)
        };
        async move { sent?.await.map_err(|_| AskError::Lost) }
    }

    /// The same place for one type of message, with the actor's type erased.
    #[must_use]
    pub fn recipient<M>(&self) -> Tell<M>
    where
        A: Handler<M>,
        M: Message + Send + 'static,
        M::Result: Send,
    {
        let address = self.clone();
        Tell(Arc::new(move |message| address.tell(message)))
    }

    fn counted<T, E>(&self, send: impl FnOnce(&AddressSender<A>) -> Result<T, E>) -> Result<T, E> {
        self.0.gauge.enter();
        COUNTED.set(true);
        let sent = send(&self.0.tx);
        // a closed mailbox refuses before it packs
        COUNTED.set(false);
        if sent.is_err() {
            self.0.gauge.withdraw();
        }
        sent
    }
}

impl<A: Actor> Clone for Address<A> {
    fn clone(&self) -> Self {
        Address(Arc::clone(&self.0))
    }
}

impl<A: Actor> PartialEq for Address<A> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<A: Actor> Eq for Address<A> {}

impl<A: Actor> fmt::Debug for Address<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("depth", &self.depth())
            .field("open", &self.is_open())
            .finish()
    }
}

/// Where messages of one type go, whoever handles them. Cheap to clone.
pub struct Tell<M>(Arc<dyn Fn(M) -> bool + Send + Sync>);

impl<M> Tell<M> {
    /// Sends through `send`, which says whether anybody is left to handle the message.
    #[must_use]
    pub fn new(send: impl Fn(M) -> bool + Send + Sync + 'static) -> Tell<M> {
        let send = Foreign::new(send);
        Tell(Arc::new(move |message| send.get()(message)))
    }

    /// Sends a message that wants no answer; false if the actor is gone for good.
    pub fn tell(&self, message: M) -> bool {
        (self.0)(message)
    }
}

impl<M> Clone for Tell<M> {
    fn clone(&self) -> Self {
        Tell(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Tell<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tell").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
