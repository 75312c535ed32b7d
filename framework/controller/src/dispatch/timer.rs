//! The one timer of an actor that looks for itself what is due.

use std::time::Instant;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, SpawnHandle};
use boatswain_supervision::{Clock, Context};

/// When it rings, and what rings it.
#[derive(Default)]
pub(super) struct Timer(Option<(Instant, SpawnHandle)>);

impl Timer {
    /// Makes it ring at `next`, or never, instead of when it would have. The first thing that `ring` does is to say that it [rang](Self::rang).
    pub(super) fn set<A: Actor<Context = Context<A>>>(
        &mut self,
        next: Option<Instant>,
        clock: &Clock,
        ctx: &mut Context<A>,
        ring: fn(&mut A, &mut Context<A>),
    ) {
        if next == self.0.map(|(at, _)| at) {
            return;
        }
        if let Some((_, timer)) = self.0.take() {
            ctx.cancel_future(timer);
        }
        if let Some(at) = next {
            let clock = clock.clone();
            let wait = async move { clock.sleep_until(at).await };
            let timer = actix::fut::wrap_future::<_, A>(wait);
            let timer = ctx.spawn(timer.map(move |(), actor, ctx| ring(actor, ctx)));
            self.0 = Some((at, timer));
        }
    }

    pub(super) fn rang(&mut self) {
        self.0 = None;
    }
}
