//! The actix context of a supervised actor.

use std::fmt;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use actix::dev::channel::{AddressReceiver, channel};
use actix::dev::{AsyncContextParts, ContextFut, ContextParts, Envelope, Mailbox as ActixMailbox};
use actix::{
    Actor, ActorContext, ActorFuture, ActorState, Addr, AsyncContext, Handler, Message, SpawnHandle,
};
use futures::{Stream, StreamExt};

use crate::delivery::{Courier, Inflow, Note, deliver};
use crate::exit::{Exit, Failure};
use crate::gauge::Gauge;
use crate::link::Link;
use crate::mailbox::Address;
use crate::panics::Fenced;

/// Messages handled in one turn before others on the thread, and orders from the supervisor, get theirs.
/// actix itself would empty the mailbox first, however full it is.
pub(crate) const MESSAGES_PER_TURN: u16 = 256;

/// One incarnation of an actor with its context, its futures, and everything they hold.
pub(crate) type Incarnation<A> = ContextFut<A, Context<A>>;

/// The actix context of a supervised actor: counts what is handled, knows the actor's place in the tree, and can fail it.
///
/// It offers all of [`AsyncContext`]. [`ActorContext::stop`] ends this incarnation with [`Exit::Normal`] once
/// [`Actor::stopping`] agrees; [`ActorContext::terminate`] does so whether it agrees or not.
///
/// A stop drops the context's futures at once. An actor that wants to finish what it has begun returns [`Running::Continue`](actix::Running::Continue)
/// from [`Actor::stopping`] until it is done, takes on nothing new meanwhile, and then calls [`ActorContext::stop`], which asks `stopping` once more; its
/// [`Shutdown`](crate::Shutdown) says how long it may take:
///
/// ```
/// # use boatswain_supervision::{actix::{Actor, Running}, supervised, Context};
/// struct Writer {
///     unwritten: usize, // whoever makes it zero calls `ctx.stop()`
/// }
///
/// impl Actor for Writer {
///     type Context = Context<Self>;
///
///     fn stopping(&mut self, _: &mut Context<Self>) -> Running {
///         if self.unwritten == 0 { Running::Stop } else { Running::Continue }
///     }
/// }
/// supervised!(Writer);
/// ```
///
/// `stopped` runs when an incarnation ends in good order, including [`fail`](Self::fail) unless `stopping` refuses; not after a panic or a kill, when the
/// actor's state cannot be trusted: what must happen in any case belongs into `Drop`.
/// Futures spawned into the context are dropped when the incarnation ends, not when the next one begins.
///
/// # Answers that take time
/// A future that a handler returns, be it actix' `ResponseFuture`, `ResponseActFuture`, `AtomicResponse` or `ActorResponse`, is one of the context's, however
/// the message came: its panic is the actor's, and the end of the incarnation drops it, of which the asker hears as [`Lost`](crate::AskError::Lost).
/// Like every future of the context it rests while the actor is in [`wait`](AsyncContext::wait), so a wait must not need it; and a turn
/// of the actor looks at all of its futures, so let thousands of them share one `FuturesUnordered`.
///
/// # Caveats
/// actix' `Response::fut` cannot be looked into and still gets a task of its own: it outlives stop and restart, and its panic is not seen by the supervisor.
/// So does what a [`MessageResponse`](actix::dev::MessageResponse) of your own may spawn elsewhere. Return a `ResponseFuture` instead.
pub struct Context<A: Actor<Context = Context<A>>> {
    parts: ContextParts<A>,
    /// The receiving end of the mailbox, which is handed from incarnation to incarnation.
    inbox: Option<AddressReceiver<A>>,
    me: Address<A>,
    link: Link,
    exit: Option<Box<Exit>>,
    /// The incarnation ends whatever `stopping` says.
    ending: bool,
    hasty: bool,
    held: bool,
    /// Messages it may still take from its mailbox in this turn.
    budget: u16,
    /// The same for messages from its streams and to itself: apart, so that neither can starve the other.
    own: u16,
}

impl<A: Actor<Context = Context<A>>> Context<A> {
    /// A new incarnation of the actor, which takes its messages from `inbox`.
    pub(crate) fn incarnate(
        actor: A,
        inbox: AddressReceiver<A>,
        me: Address<A>,
        link: Link,
    ) -> Incarnation<A> {
        // what actix takes for the mailbox, and nobody writes to
        let (_, empty) = channel(0);
        let mut context = Context {
            parts: ContextParts::new(empty.sender_producer()),
            inbox: Some(inbox),
            me,
            link,
            exit: None,
            ending: false,
            hasty: false,
            held: false,
            budget: MESSAGES_PER_TURN,
            own: MESSAGES_PER_TURN,
        };
        context.parts.spawn(Courier);
        ContextFut::new(context, actor, ActixMailbox::new(empty))
    }

    /// The actor's place in the tree.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The actor's own address. Cheaper than actix' [`address`](AsyncContext::address), and it counts.
    pub fn me(&self) -> &Address<A> {
        &self.me
    }

    /// Ends this incarnation with [`Exit::Error`]; its supervisor decides what comes next.
    ///
    /// The message being handled is done with; those that wait are handled by the next incarnation. [`Actor::stopping`] cannot prevent it.
    pub fn fail(&mut self, failure: Failure) {
        self.end(failure.into());
    }

    /// Keeps the actor "starting" after `started` has returned, until [`release_start`](Self::release_start).
    ///
    /// Siblings that start later wait for it, and so does whoever starts the tree, for as long as it takes: set a timer of your own where that can be for ever.
    pub fn hold_start(&mut self) {
        self.held = true;
    }

    /// The actor has now started; see [`hold_start`](Self::hold_start).
    pub fn release_start(&mut self) {
        self.held = false;
    }

    pub(crate) fn end(&mut self, exit: Exit) {
        // the first reason is the cause, later ones are consequences
        self.exit.get_or_insert_with(|| Box::new(exit));
        self.ending = true;
        self.parts.stop();
    }

    pub(crate) fn started_held(&self) -> bool {
        self.held
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    pub(crate) fn take_exit(&mut self) -> Option<Exit> {
        self.exit.take().map(|exit| *exit)
    }

    pub(crate) fn is_hasty(&self) -> bool {
        self.hasty
    }

    pub(crate) fn make_hasty(&mut self) {
        self.hasty = true;
    }

    pub(crate) fn begin_turn(&mut self, deaf: bool) {
        self.budget = if deaf { 0 } else { MESSAGES_PER_TURN };
        self.own = MESSAGES_PER_TURN;
    }

    /// Whether there may be something left for the next turn, which nothing else may wake.
    pub(crate) fn used_up_turn(&self, deaf: bool) -> bool {
        (self.budget == 0 && !deaf) || self.used_up_own()
    }

    pub(crate) fn used_up_own(&self) -> bool {
        self.own == 0
    }

    pub(crate) fn spend_own(&mut self) {
        self.own = self.own.saturating_sub(1);
    }

    pub(crate) fn spend_turn(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    pub(crate) fn gauge(&self) -> &Gauge {
        self.me.gauge()
    }

    pub(crate) fn poll_inbox(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Envelope<A>>> {
        self.inbox
            .as_mut()
            .map_or(Poll::Pending, |inbox| inbox.poll_next_unpin(cx))
    }

    pub(crate) fn take_inbox(&mut self) -> Option<AddressReceiver<A>> {
        self.inbox.take()
    }

    /// Makes dropping the context run nothing of the actor's, in particular not `started`.
    pub(crate) fn silence(&mut self) {
        self.parts.terminate();
    }
}

impl<A: Actor<Context = Context<A>>> ActorContext for Context<A> {
    fn stop(&mut self) {
        self.parts.stop();
    }

    // actix' own flag would loop for ever if a future was cancelled in the same turn
    fn terminate(&mut self) {
        self.end(Exit::Normal);
    }

    fn state(&self) -> ActorState {
        self.parts.state()
    }
}

impl<A: Actor<Context = Context<A>>> AsyncContext<A> for Context<A> {
    fn address(&self) -> Addr<A> {
        self.me.actix()
    }

    fn spawn<F>(&mut self, future: F) -> SpawnHandle
    where
        F: ActorFuture<A, Output = ()> + 'static,
    {
        self.parts.spawn(Fenced::new(future))
    }

    fn wait<F>(&mut self, future: F)
    where
        F: ActorFuture<A, Output = ()> + 'static,
    {
        self.parts.wait(Fenced::new(future));
    }

    // the mailbox asks this before each message, which is where a turn can be cut short
    fn waiting(&self) -> bool {
        self.budget == 0 || self.parts.waiting()
    }

    fn cancel_future(&mut self, handle: SpawnHandle) -> bool {
        self.parts.cancel_future(handle)
    }

    // the three below do what actix' own do, but keep an answer that takes time inside the context

    fn add_message_stream<S>(&mut self, stream: S)
    where
        S: Stream + 'static,
        S::Item: Message,
        A: Handler<S::Item>,
    {
        self.spawn(Inflow(Box::pin(stream)));
    }

    fn notify<M>(&mut self, message: M)
    where
        A: Handler<M>,
        M: Message + 'static,
    {
        self.spawn(Note::new(message));
    }

    fn notify_later<M>(&mut self, message: M, after: Duration) -> SpawnHandle
    where
        A: Handler<M>,
        M: Message + 'static,
    {
        self.run_later(after, |actor, ctx| deliver(actor, message, None, ctx))
    }
}

impl<A: Actor<Context = Context<A>>> AsyncContextParts<A> for Context<A> {
    fn parts(&mut self) -> &mut ContextParts<A> {
        &mut self.parts
    }
}

impl<A: Actor<Context = Context<A>>> fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("link", &self.link)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}
