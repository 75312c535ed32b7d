//! Pulls batches from the queue and commits them.

use std::sync::Arc;

use actix::{Actor, Handler, Message};
use boatswain_supervision::{Address, Context, supervised};

use crate::core::InformerCore;
use crate::delta_fifo::actor::{Credit, DeltaFifo};

/// Keys committed at a time: readers wait for no more than that.
const BATCH: usize = 256;

/// The only one who commits. It asks for the next batch when the last one is done, so while it is slow news of a key become one.
pub(crate) struct Indexer {
    core: Arc<InformerCore>,
    fifo: Address<DeltaFifo>,
}

impl Indexer {
    pub(crate) fn new(core: Arc<InformerCore>, fifo: Address<DeltaFifo>) -> Self {
        Self { core, fifo }
    }

    fn commit(&self) {
        #[cfg(test)]
        if self.core.is_stalled() {
            return;
        }
        self.core.commit_in_hand();
        self.fifo.tell(Credit { max: BATCH });
    }
}

impl Actor for Indexer {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        // what the last incarnation had in hand comes first, and before a reflector asks where to resume
        self.commit();
    }
}
supervised!(Indexer);

/// There is a batch in hand.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct HandFull;

impl Handler<HandFull> for Indexer {
    type Result = ();

    fn handle(&mut self, _: HandFull, _: &mut Context<Self>) {
        self.commit();
    }
}
