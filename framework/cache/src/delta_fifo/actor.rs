//! Owns the queue, and gives the indexer a batch whenever it has asked for one and there is one.

use std::sync::Arc;

use actix::{Actor, Handler, Message, MessageResult};
use boatswain_supervision::{Address, Context, Link, supervised};
use tokio::sync::OwnedSemaphorePermit;

use super::state::{Fifo, Replace};
use crate::core::{InformerCore, Permit};
use crate::delta::Delta;
use crate::indexer::actor::{HandFull, Indexer};
use crate::version::Version;

/// The queue between reflector and indexer.
///
/// After a crash it begins empty behind the low-water version: what was pending is not in the store, so the server is asked for it again. What a
/// reflector of before the crash sent, and still lies in the mailbox, is not accepted: it would leave a gap.
pub(crate) struct DeltaFifo {
    core: Arc<InformerCore>,
    indexer: Address<Indexer>,
    fifo: Fifo<Permit>,
    /// The reflector incarnation whose news are accepted.
    session: Option<u64>,
    /// How many keys the indexer wants.
    credit: Option<usize>,
}

impl DeltaFifo {
    pub(crate) fn new(core: Arc<InformerCore>, indexer: Address<Indexer>, link: &Link) -> Self {
        let watched = core.clone();
        link.report("informer", move || {
            let (pending, high_water) = watched.pending();
            serde_json::json!({"pending": pending, "high_water": high_water})
        });
        Self {
            core,
            indexer,
            fifo: Fifo::new(None, 0),
            session: None,
            credit: None,
        }
    }

    fn accepts(&self, session: u64) -> bool {
        self.session == Some(session)
    }

    fn serve(&mut self) {
        if let Some(max) = self.credit
            && self.core.hand_is_free()
            && let Some(batch) = self.fifo.pop(max)
        {
            self.credit = None;
            self.core.hand_over(batch);
            self.indexer.tell(HandFull);
        }
        self.core
            .note_pending(self.fifo.len(), self.fifo.high_water());
    }
}

impl Actor for DeltaFifo {
    type Context = Context<Self>;
}
supervised!(DeltaFifo);

/// A reflector begins; from now on only its news count.
pub(crate) struct Resume;

/// Where it is to begin.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) session: u64,
    /// Everything up to here is in the store or pending.
    pub(crate) version: Option<Version>,
    /// Whether nothing newer than that is.
    pub(crate) exact: bool,
}

impl Message for Resume {
    type Result = Position;
}

impl Handler<Resume> for DeltaFifo {
    type Result = MessageResult<Resume>;

    fn handle(&mut self, _: Resume, _: &mut Context<Self>) -> Self::Result {
        let session = self.core.number();
        let (version, exact) = if self.session.replace(session).is_none() {
            self.fifo = Fifo::new(self.core.low_water(), self.core.epoch());
            (self.core.low_water(), false)
        } else {
            self.fifo.resume()
        };
        MessageResult(Position {
            session,
            version,
            exact,
        })
    }
}

/// News from a watch or a list, with a permit for each.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deltas {
    pub(crate) session: u64,
    pub(crate) deltas: Vec<Delta>,
    pub(crate) permits: OwnedSemaphorePermit,
}

impl Handler<Deltas> for DeltaFifo {
    type Result = ();

    fn handle(&mut self, mut message: Deltas, _: &mut Context<Self>) {
        if self.accepts(message.session) {
            let mut stale = 0;
            for delta in message.deltas {
                stale += u64::from(!self.fifo.push(delta, message.permits.split(1)));
            }
            if stale > 0 {
                self.core.count(|counters| counters.stale += stale);
            }
            self.serve();
        }
    }
}

/// What else a reflector has to say.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Mark {
    pub(crate) session: u64,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// Everything up to here has been told.
    Bookmark(Version),
    /// A watch was opened.
    Live(u64),
    ReplaceBegin(Replace),
    ReplaceEnd {
        version: Version,
        complete: bool,
    },
    ReplaceAbort,
}

impl Handler<Mark> for DeltaFifo {
    type Result = ();

    fn handle(&mut self, Mark { session, what }: Mark, _: &mut Context<Self>) {
        if !self.accepts(session) {
            return;
        }
        match what {
            What::Bookmark(version) => self.fifo.bookmark(version),
            What::Live(watch) => self.fifo.live(watch),
            What::ReplaceBegin(replace) => self.fifo.replace_begin(replace),
            What::ReplaceEnd { version, complete } => self.fifo.replace_end(version, complete),
            What::ReplaceAbort => self.fifo.replace_abort(),
        }
        self.serve();
    }
}

/// The indexer has a free hand for up to `max` keys.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Credit {
    pub(crate) max: usize,
}

impl Handler<Credit> for DeltaFifo {
    type Result = ();

    fn handle(&mut self, Credit { max }: Credit, _: &mut Context<Self>) {
        self.credit = Some(max);
        self.serve();
    }
}
