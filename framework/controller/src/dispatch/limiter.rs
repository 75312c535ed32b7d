//! The RateLimiter: paces the retries of the whole controller.

use actix::{Actor, Handler};
use boatswain_supervision::{Address, Clock, Context, Link, supervised};

use super::{Desks, Look, desk::desk_of, timer::Timer};

pub(crate) struct LimiterActor {
    desks: Desks,
    own: Address<LimiterActor>,
    clock: Clock,
    timer: Timer,
}

impl LimiterActor {
    pub(crate) fn new(desks: Desks, own: Address<LimiterActor>, link: &Link) -> Self {
        if let Some(desk) = desks.first() {
            let core = desk.core.clone();
            link.report("pacing", move || core.pacing.fact());
        }
        Self {
            desks,
            own,
            clock: link.clock().clone(),
            timer: Timer::default(),
        }
    }

    /// Hands out what is due and sets one timer for what comes next.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        let Some(first) = self.desks.first() else {
            return;
        };
        let pacing = &first.core.pacing;
        let (keys, mut next, lost) = pacing.release(self.clock.now());
        let mut due = vec![Vec::new(); self.desks.len()];
        for key in keys {
            due[desk_of(&key, &self.desks)].push(key);
        }
        for (desk, keys) in self.desks.iter().zip(due) {
            if !keys.is_empty() {
                desk.due(&keys);
            }
            if lost {
                desk.tell_retries();
                next = None;
            }
        }
        if lost {
            self.own.tell(Look);
        }
        self.timer
            .set(next, &self.clock, ctx, |limiter: &mut Self, ctx| {
                limiter.timer.rang();
                limiter.turn(ctx);
            });
    }
}

impl Drop for LimiterActor {
    fn drop(&mut self) {
        if let Some(desk) = self.desks.first() {
            desk.core.pacing.bell.detach();
        }
    }
}

supervised!(LimiterActor);

impl Actor for LimiterActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(desk) = self.desks.first() {
            let own = self.own.clone();
            desk.core.pacing.bell.attach(move || {
                own.tell(Look);
            });
        }
        self.turn(ctx);
    }
}

impl Handler<Look> for LimiterActor {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Self::Context) {
        if let Some(desk) = self.desks.first() {
            desk.core.pacing.bell.heard();
        }
        self.turn(ctx);
    }
}
