//! How a message gets from a queue to its actor, and the answer back to whoever asked.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use actix::dev::{Envelope, EnvelopeProxy, MessageResponse, OneshotSender, ToEnvelope};
use actix::fut::wrap_future;
use actix::{Actor, ActorFuture, AsyncContext, Handler, Message, ResponseFuture};
use futures::Stream;

use crate::context::Context;
use crate::mailbox::packed_by_address;
use crate::panics::Foreign;

/// Hands one message to the actor.
pub(crate) fn deliver<A, M>(
    actor: &mut A,
    message: M,
    reply: Option<OneshotSender<M::Result>>,
    ctx: &mut Context<A>,
) where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + 'static,
{
    let mut response = Some(<A as Handler<M>>::handle(actor, message, ctx));
    let future = (&mut response as &mut dyn Any)
        .downcast_mut::<Option<ResponseFuture<M::Result>>>()
        .and_then(Option::take);
    if let Some(future) = future {
        // actix would give it a task of its own, which outlives the actor and whose panic nobody hears
        ctx.spawn(wrap_future(async move {
            let answer = future.await;
            if let Some(reply) = reply {
                let _ = reply.send(answer);
            }
        }));
    } else if let Some(response) = response {
        response.handle(ctx, reply);
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
            content: Foreign::new((message, reply)),
            counted: packed_by_address(),
        }))
    }
}

/// A message on its way, which is counted when it is handled.
struct Letter<M: Message> {
    content: Foreign<(M, Option<OneshotSender<M::Result>>)>,
    counted: bool,
}

impl<A, M> EnvelopeProxy<A> for Letter<M>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn handle(&mut self, actor: &mut A, ctx: &mut Context<A>) {
        let Some((message, reply)) = self.content.take() else {
            return;
        };
        ctx.spend_turn();
        // before the handler runs: a message that kills the actor has left the queue too
        ctx.gauge().take(self.counted);
        if self.counted && reply.is_some() {
            ctx.gauge().settle();
        }
        if !reply.as_ref().is_some_and(OneshotSender::is_closed) {
            deliver(actor, message, reply, ctx);
        }
    }
}

/// Brings an incarnation the messages from its inbox. actix' own mailbox would die with the incarnation, and the queue with it.
pub(crate) struct Courier;

impl<A: Actor<Context = Context<A>>> ActorFuture<A> for Courier {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut Context<A>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        while !ctx.waiting()
            && let Poll::Ready(Some(mut envelope)) = ctx.poll_inbox(task)
        {
            envelope.handle(actor, ctx);
        }
        Poll::Pending
    }
}

/// A message of an actor to itself.
pub(crate) struct Note<M> {
    message: Option<M>,
    /// Whether a turn was used up before it: the next one is not to be.
    waited: bool,
}

impl<M> Note<M> {
    pub(crate) fn new(message: M) -> Note<M> {
        Note {
            message: Some(message),
            waited: false,
        }
    }
}

// the message is moved out, never pinned
impl<M> Unpin for Note<M> {}

impl<A, M> ActorFuture<A> for Note<M>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message + 'static,
{
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut Context<A>,
        _: &mut TaskContext<'_>,
    ) -> Poll<()> {
        // who writes to himself whenever he reads would never be done with his turn
        if ctx.used_up_own() && !self.waited {
            self.waited = true;
            return Poll::Pending;
        }
        ctx.spend_own();
        if let Some(message) = self.message.take() {
            deliver(actor, message, None, ctx);
        }
        Poll::Ready(())
    }
}

/// Handles the messages of a stream.
pub(crate) struct Inflow<S>(pub(crate) Pin<Box<S>>);

impl<A, S> ActorFuture<A> for Inflow<S>
where
    A: Actor<Context = Context<A>> + Handler<S::Item>,
    S: Stream,
    S::Item: Message + 'static,
{
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut Context<A>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        while let Some(message) = ready!(self.0.as_mut().poll_next(task)) {
            deliver(actor, message, None, ctx);
            ctx.spend_own();
            // asked afterwards: a turn that others used up must not starve the stream
            if ctx.waiting() || ctx.used_up_own() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
