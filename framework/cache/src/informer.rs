//! Puts an informer together: three actors around a core.

use std::sync::Arc;
use std::time::Duration;

use boatswain_supervision::{Address, ChildSpec, Mailbox, Strategy, SupervisorSpec, Thread};
use tokio::sync::Semaphore;

use crate::core::InformerCore;
use crate::delta_fifo::actor::DeltaFifo;
use crate::framing::MAX_ITEM;
use crate::indexer::actor::Indexer;
use crate::reflector::actor::Reflector;
use crate::reflector::stream_lists::StreamLists;

#[cfg(test)]
mod tests;

/// Lists read at once by default.
const LISTS: usize = 4;

/// How an informer talks to its server. Clones share what is behind [`InformerOptions::lists`] and [`InformerOptions::stream_lists`].
#[derive(Clone, Debug)]
pub struct InformerOptions {
    /// Items asked for per page of a list. Default 500, as kubectl and client-go.
    pub page_size: u32,
    /// Largest object in bytes; larger ones are set aside by name. Default 16 MiB, far above what etcd stores.
    pub max_object: usize,
    /// How long a request may take to be answered, and a list to send its next bytes. Default 30 s; a list is given up, too, when all its waits
    /// together exceed ten times this.
    pub answer: Duration,
    /// How long a watch may be silent before the server is asked for its version. Default 3 minutes; a kind that proves to be merely quiet doubles it
    /// for itself, up to an hour.
    pub silence: Duration,
    /// Taken while a list is read, so that not all informers list at once; a streamed list holds its place until its end. Default a new gate for 4:
    /// clones of these options share it, and whoever starts several informers should clone. It is not one for the whole process by itself, for then
    /// runs on virtual time would wait for each other.
    pub lists: Option<Arc<Semaphore>>,
    /// Where the gate is contended, the first list of an informer steps back for a random time up to this before it queues, so that many processes
    /// started together do not list in step. Nobody who is alone waits. Default 1 s.
    pub spread: Duration,
    /// Lists are streamed where the server can (`sendInitialEvents`, Kubernetes 1.27 and later): the list and its watch are one request, consistent, and
    /// cost the server no copy of the whole. Where a server refuses that, ignores it or never ends it, they are read in pages, and it is remembered here;
    /// [`InformerStatus::paged`](crate::InformerStatus::paged) says why. A list that may overrule what is stored is never streamed. Default a new memory;
    /// `None` turns streaming off.
    pub stream_lists: Option<StreamLists>,
    /// Where queue and indexer run, and with them the index functions of users: not beside the I/O of reflectors, which one that blocks would hold up. Default
    /// the thread of the informer.
    pub indexer: Option<Thread>,
}

impl Default for InformerOptions {
    fn default() -> Self {
        Self {
            page_size: 500,
            max_object: MAX_ITEM,
            answer: Duration::from_secs(30),
            silence: Duration::from_secs(180),
            lists: Some(Arc::new(Semaphore::new(LISTS))),
            spread: Duration::from_secs(1),
            stream_lists: Some(StreamLists::new()),
            indexer: None,
        }
    }
}

impl InformerOptions {
    /// Longer times mean no more than this one, and what is added to them stays within what a clock can count.
    const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

    /// The same with times that can be counted with: "never" is often written as the longest there is.
    pub(crate) fn countable(self) -> Self {
        Self {
            answer: self.answer.min(Self::LONGEST),
            silence: self.silence.min(Self::LONGEST),
            spread: self.spread.min(Self::LONGEST),
            ..self
        }
    }
}

/// The actors that keep `core` up to date, as one supervisor that is called as its [selection](crate::Selection::id): the delta FIFO, the indexer and the reflector, each
/// depending on the ones before it.
///
/// Run it in one place at a time. The `client` should neither retry by itself nor limit watches: the reflector has its own backoff. Its connections must
/// live on a runtime that outlives these actors.
pub fn informer(
    core: Arc<InformerCore>,
    client: kube::Client,
    options: InformerOptions,
) -> SupervisorSpec {
    assemble(core, client, options, |_, _, _| {})
}

/// `wired` is given the addresses of every new set of actors.
fn assemble(
    core: Arc<InformerCore>,
    client: kube::Client,
    options: InformerOptions,
    wired: impl Fn(Address<DeltaFifo>, Address<Indexer>, Address<Reflector>) + Send + 'static,
) -> SupervisorSpec {
    SupervisorSpec::new(core.selection().id(), Strategy::RestForOne).children(move |children| {
        let (fifo, indexer, reflector) = (
            Mailbox::<DeltaFifo>::new(),
            Mailbox::<Indexer>::new(),
            Mailbox::<Reflector>::new(),
        );
        let (to_fifo, to_indexer) = (fifo.address(), indexer.address());
        wired(to_fifo.clone(), to_indexer.clone(), reflector.address());

        // queue and indexer share a thread: beside a reflector that always has something to read neither would get a turn
        let placed = |spec: ChildSpec| match &options.indexer {
            Some(thread) => spec.thread(thread.clone()),
            None => spec,
        };
        let shared = core.clone();
        children.add(placed(ChildSpec::actor("fifo", fifo, move |link| {
            shared.clock_is(link.clock());
            DeltaFifo::new(shared.clone(), to_indexer.clone(), link)
        })));

        let (shared, address) = (core.clone(), to_fifo.clone());
        children.add(placed(ChildSpec::actor("indexer", indexer, move |link| {
            Indexer::new(shared.clone(), address.clone(), link.clock().clone())
        })));

        let (shared, client, options) = (core.clone(), client.clone(), options.clone());
        children.add(ChildSpec::actor("reflector", reflector, move |link| {
            Reflector::new(
                shared.clone(),
                client.clone(),
                options.clone(),
                to_fifo.clone(),
                link,
            )
        }));
    })
}
