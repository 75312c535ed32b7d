//! The actix context of a supervised actor.

use std::fmt;

use actix::dev::{
    AsyncContextParts, ContextParts, Envelope, EnvelopeProxy, MessageResponse, OneshotSender,
    ToEnvelope,
};
use actix::{
    Actor, ActorContext, ActorFuture, ActorState, Addr, AsyncContext, Handler, Message, SpawnHandle,
};

use crate::exit::{Exit, Failure};
use crate::link::Link;
use crate::mailbox::{Address, Mailbox, packed_by_address};
use crate::stats::Gauge;

/// Messages handled in one turn before others on the thread, and orders from the supervisor, get theirs.
/// actix itself would empty the mailbox first, however full it is.
pub(crate) const MESSAGES_PER_TURN: u32 = 256;

/// The actix context of a supervised actor: counts what is handled, knows the actor's place in the tree, and can fail it.
///
/// It offers all of [`AsyncContext`]. [`ActorContext::stop`] ends this incarnation with [`Exit::Normal`] once
/// [`Actor::stopping`] agrees; [`ActorContext::terminate`] does so whether it agrees or not.
///
/// A stop drops the context's futures at once. An actor that wants to finish what it has begun returns [`Running::Continue`](actix::Running::Continue)
/// from [`Actor::stopping`], takes on nothing new, and calls [`ActorContext::stop`] when it is done; its [`Shutdown`](crate::Shutdown) says how long it may take.
///
/// `stopped` runs when an incarnation ends in good order, including [`fail`](Self::fail); not after a panic or a kill, when the actor's state cannot be
/// trusted: what must happen in any case belongs into `Drop`.
/// Futures spawned into the context are dropped when the incarnation ends, not when the next one begins.
///
/// # Caveats
/// A future returned as actix' `ResponseFuture` runs outside the context: it outlives stop and restart, and its panic is not seen by the supervisor.
/// Return `ResponseActFuture` or `AtomicResponse` instead.
pub struct Context<A: Actor<Context = Context<A>>> {
    parts: ContextParts<A>,
    me: Address<A>,
    gauge: std::sync::Arc<Gauge>,
    link: Link,
    exit: Option<Exit>,
    /// The incarnation ends whatever `stopping` says.
    ending: bool,
    hasty: bool,
    held: bool,
    budget: u32,
}

impl<A: Actor<Context = Context<A>>> Context<A> {
    pub(crate) fn new(me: Address<A>, link: Link) -> Self {
        Context {
            parts: fresh_parts(),
            gauge: me.gauge(),
            me,
            link,
            exit: None,
            ending: false,
            hasty: false,
            held: false,
            budget: MESSAGES_PER_TURN,
        }
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
    /// Siblings that start later wait for it, and so does whoever starts the tree.
    pub fn hold_start(&mut self) {
        self.held = true;
    }

    /// The actor has now started; see [`hold_start`](Self::hold_start).
    pub fn release_start(&mut self) {
        self.held = false;
    }

    pub(crate) fn end(&mut self, exit: Exit) {
        // the first reason is the cause, later ones are consequences
        self.exit.get_or_insert(exit);
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
        self.exit.take()
    }

    pub(crate) fn is_hasty(&self) -> bool {
        self.hasty
    }

    pub(crate) fn make_hasty(&mut self) {
        self.hasty = true;
    }

    pub(crate) fn begin_turn(&mut self) {
        self.budget = MESSAGES_PER_TURN;
    }

    pub(crate) fn used_up_turn(&self) -> bool {
        self.budget == 0
    }

    /// Forgets everything of the incarnation that ended.
    pub(crate) fn renew(&mut self, link: Link) {
        // actix keeps cancelled handles across a restart and would cancel innocent futures that got the same numbers
        self.parts = fresh_parts();
        self.link = link;
        self.exit = None;
        self.ending = false;
        self.hasty = false;
        self.held = false;
    }

    /// Makes dropping the context run nothing of the actor's, in particular not `started`.
    pub(crate) fn silence(&mut self) {
        self.parts.terminate();
    }
}

/// Parts that belong to no mailbox: addresses are handed out by the context itself.
fn fresh_parts<A: Actor<Context = Context<A>>>() -> ContextParts<A> {
    ContextParts::new(Mailbox::<A>::new().receiver.sender_producer())
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
        self.parts.spawn(future)
    }

    fn wait<F>(&mut self, future: F)
    where
        F: ActorFuture<A, Output = ()> + 'static,
    {
        self.parts.wait(future);
    }

    // the mailbox asks this before each message, which is where a turn can be cut short
    fn waiting(&self) -> bool {
        self.budget == 0 || self.parts.waiting()
    }

    fn cancel_future(&mut self, handle: SpawnHandle) -> bool {
        self.parts.cancel_future(handle)
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

impl<A, M> ToEnvelope<A, M> for Context<A>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn pack(message: M, reply: Option<OneshotSender<M::Result>>) -> Envelope<A> {
        Envelope::with_proxy(Box::new(Letter {
            content: Some((message, reply)),
            counted: packed_by_address(),
        }))
    }
}

/// A message on its way, which is counted when it is handled.
struct Letter<M: Message> {
    content: Option<(M, Option<OneshotSender<M::Result>>)>,
    counted: bool,
}

impl<A, M> EnvelopeProxy<A> for Letter<M>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn handle(&mut self, actor: &mut A, ctx: &mut Context<A>) {
        ctx.budget = ctx.budget.saturating_sub(1);
        // before the handler runs: a message that kills the actor has left the queue too
        if self.counted {
            ctx.gauge.leave();
        }
        ctx.gauge.handled();
        if let Some((message, reply)) = self.content.take() {
            if reply.as_ref().is_some_and(OneshotSender::is_closed) {
                return;
            }
            let response = <A as Handler<M>>::handle(actor, message, ctx);
            response.handle(ctx, reply);
        }
    }
}
