//! Pulls batches from the queue and commits them.

use std::sync::Arc;

use actix::{Actor, AsyncContext, Handler, Message};
use boatswain_supervision::{Address, Clock, Context, supervised};

use crate::core::{InformerCore, Tended};
use crate::delta_fifo::actor::{Credit, DeltaFifo};

/// Keys committed at a time: readers wait for no more than that.
const BATCH: usize = 256;

/// The only one who commits. It asks for the next batch when the last one is done, so while it is slow news of a key become one.
pub(crate) struct Indexer {
    core: Arc<InformerCore>,
    fifo: Address<DeltaFifo>,
    clock: Clock,
    /// Whether it works on what is stored, between batches.
    tending: bool,
}

impl Indexer {
    pub(crate) fn new(core: Arc<InformerCore>, fifo: Address<DeltaFifo>, clock: Clock) -> Self {
        Self {
            core,
            fifo,
            clock,
            tending: false,
        }
    }

    fn commit(&mut self, ctx: &mut Context<Self>) {
        #[cfg(test)]
        if self.core.is_stalled() {
            return;
        }
        if !self.core.hand_is_free() {
            let begun = self.clock.now();
            self.core.commit_in_hand();
            let took = self.clock.now().saturating_duration_since(begun);
            self.core.count(|counters| counters.commits.add(took));
        }
        self.fifo.tell(Credit { max: BATCH });
        if !self.tending {
            self.tend(Tended::Checked, ctx);
        }
    }

    fn tend(&mut self, after: Tended, ctx: &mut Context<Self>) {
        let done = self.core.tend(after);
        self.tending = done.is_some();
        if let Some(done) = done {
            ctx.notify(Tend(done));
        }
    }
}

impl Actor for Indexer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // what the last incarnation had in hand comes first, and before a reflector asks where to resume
        self.commit(ctx);
    }
}
supervised!(Indexer);

/// There is a batch in hand.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct HandFull;

impl Handler<HandFull> for Indexer {
    type Result = ();

    fn handle(&mut self, _: HandFull, ctx: &mut Context<Self>) {
        self.commit(ctx);
    }
}

/// Some of the work on stored objects is done.
#[derive(Message)]
#[rtype(result = "()")]
struct Tend(Tended);

impl Handler<Tend> for Indexer {
    type Result = ();

    fn handle(&mut self, Tend(done): Tend, ctx: &mut Context<Self>) {
        self.tend(done, ctx);
    }
}
