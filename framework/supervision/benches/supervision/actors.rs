//! The same small actor twice: under actix alone, and supervised.

use actix::{Actor, ActorContext, Handler, Message};
use boatswain_supervision::{Context, Failure, supervised};

/// Counts; the answer is the count.
pub(crate) struct Ping;

impl Message for Ping {
    type Result = u64;
}

/// Panics.
pub(crate) struct Panic;

impl Message for Panic {
    type Result = ();
}

/// Gives up with an error; without a supervisor, stops.
pub(crate) struct Fail;

impl Message for Fail {
    type Result = ();
}

#[derive(Default)]
pub(crate) struct Plain(u64);

impl Actor for Plain {
    type Context = actix::Context<Self>;
}

impl actix::Supervised for Plain {
    fn restarting(&mut self, _: &mut actix::Context<Self>) {
        *self = Plain::default();
    }
}

impl Handler<Fail> for Plain {
    type Result = ();

    fn handle(&mut self, _: Fail, ctx: &mut actix::Context<Self>) {
        ctx.stop();
    }
}

#[derive(Default)]
pub(crate) struct Supervised(u64);

impl Actor for Supervised {
    type Context = Context<Self>;
}
supervised!(Supervised);

impl Handler<Fail> for Supervised {
    type Result = ();

    fn handle(&mut self, _: Fail, ctx: &mut Context<Self>) {
        ctx.fail(Failure::transient("benchmark"));
    }
}

macro_rules! counts_and_panics {
    ($actor:ty) => {
        impl Handler<Ping> for $actor {
            type Result = u64;

            fn handle(&mut self, _: Ping, _: &mut Self::Context) -> u64 {
                self.0 += 1;
                self.0
            }
        }

        impl Handler<Panic> for $actor {
            type Result = ();

            fn handle(&mut self, _: Panic, _: &mut Self::Context) {
                std::panic::panic_any(Meant);
            }
        }
    };
}

counts_and_panics!(Plain);
counts_and_panics!(Supervised);

/// The payload of panics that are part of a benchmark.
struct Meant;

/// Keeps panics that are part of a benchmark off the terminal.
pub(crate) fn hush() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Meant>() {
            loud(info);
        }
    }));
}
