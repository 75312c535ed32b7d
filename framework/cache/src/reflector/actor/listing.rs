//! Reads lists and hands them over.

use std::sync::Arc;

use super::call::Patience;
use super::{BATCH, PARSE, Run};
use crate::delta::{Cause, Delta, Trust};
use crate::delta_fifo::actor::{Deltas, What};
use crate::delta_fifo::state::Replace;
use crate::envelope::{self, BadObject, Known};
use crate::framing::{Item, ListMeta, ListSplitter, Sink};
use crate::key::Key;
use crate::object::{Meta, Object};
use crate::opener::Opener;
use crate::reflector::answer::Failure;
use crate::reflector::plan::{At, List, Reason};
use crate::reflector::state::Machine;
use crate::status::InformerState;
use crate::version::Version;

impl Run {
    pub(super) async fn list(&mut self, machine: &mut Machine, list: List) -> Result<(), Failure> {
        self.enter().await;
        self.note(InformerState::Listing, machine, None);
        if list.token.is_none() {
            self.open(list.reason, &list.at);
        }
        self.core.count(|counters| counters.lists += 1);
        let meta = self.page(machine, &list).await?;
        machine.leads_on(&meta)?;
        self.begin(machine, Some(&meta.version));
        if let Some(version) = machine.listed(&meta) {
            self.end(version);
            self.note(InformerState::Watching, machine, None);
        }
        Ok(())
    }

    /// A list begins; it counts as told once there is something to tell.
    pub(super) fn open(&mut self, reason: Reason, at: &At) {
        self.complete = true;
        self.core.note_list_begun(self.clock.now());
        self.core
            .count(|counters| *counters.relists.entry(reason.as_str()).or_default() += 1);
        let cause = if self.core.synced() {
            Cause::Relist
        } else {
            Cause::Initial
        };
        let (trust, answers) = if *at == At::Now {
            (Trust::Quorum, self.asked)
        } else {
            (Trust::Cached, 0)
        };
        // until it is known whether the server was set back, equal versions prove nothing
        self.trust = if trust == Trust::Quorum && self.core.low_water().is_some() {
            Trust::Restored
        } else {
            trust
        };
        self.opening = Some(Replace {
            answers,
            ..Replace::new(self.core.next_epoch(), trust, cause)
        });
    }

    /// Tells the beginning of a list, once it is known how much it counts.
    pub(super) fn begin(&mut self, machine: &Machine, version: Option<&Version>) {
        let Some(mut replace) = self.opening.take() else {
            return;
        };
        if replace.trust == Trust::Quorum
            && version.is_some_and(|version| machine.is_ahead_of(version))
        {
            tracing::warn!(resource = %self.core.kind(), "the server went back in time; its state is taken as it is now");
            self.core.count(|counters| counters.histories += 1);
            replace.trust = Trust::Restored;
        }
        self.trust = replace.trust;
        self.mark(What::ReplaceBegin(replace));
    }

    /// The list was handed over to its end.
    pub(super) fn end(&mut self, version: Version) {
        self.core.note_list_read(self.clock.now());
        self.mark(What::ReplaceEnd {
            version,
            complete: self.complete,
        });
        self.lists = None;
        self.began = true;
    }

    /// The list was not handed over to its end: nothing follows from what it lacks.
    pub(super) fn abort(&mut self) {
        self.mark(What::ReplaceAbort);
        self.opening = None;
        self.lists = None;
    }

    /// Waits for a place among those that list. Where they are rare, a beginner does not queue at once.
    pub(super) async fn enter(&mut self) {
        let (None, Some(gate)) = (&self.lists, self.options.lists.clone()) else {
            return;
        };
        self.lists = gate.clone().try_acquire_owned().ok();
        if self.lists.is_none() {
            if !self.began {
                let aside = self.options.spread.mul_f64(self.entropy.unit());
                self.clock.sleep(aside).await;
            }
            self.lists = gate.acquire_owned().await.ok();
        }
    }

    /// Whether this server is known not to stream lists of this kind, and why.
    pub(super) async fn unstreamed(&mut self) -> Option<Arc<str>> {
        let memory = self.options.stream_lists.clone()?;
        let (resource, now) = (self.core.kind().resource(), self.clock.now());
        let reason = if memory.concern(&resource, now) {
            memory.refused(&self.caller.server().await, &resource, now)
        } else {
            None
        };
        self.core.note_paged(reason.clone());
        reason
    }

    /// Remembers that this server does not stream lists of this kind.
    pub(super) async fn remember(&self, reason: &str) {
        let Some(memory) = &self.options.stream_lists else {
            return;
        };
        let (resource, now) = (self.core.kind().resource(), self.clock.now());
        let server = self.caller.server().await;
        memory.refuse(&server, &resource, reason, now);
        self.core.count(|counters| counters.unstreamed += 1);
        self.core.note_paged(Some(reason.into()));
        tracing::info!(resource = %self.core.kind(), server, reason, "the server does not stream this list; it is read in pages");
    }

    async fn page(&mut self, machine: &Machine, list: &List) -> Result<ListMeta, Failure> {
        let mut body = self.caller.list(list).await?;
        let mut splitter = ListSplitter::new(self.options.max_object);
        let mut patience = Patience::new(self.options.answer);
        let known = self.known();
        let mut opener = self.core.opener().clone();
        // what was read and is not handed over yet: each time costs the queue's thread a turn, so while there is more to read it waits for company
        let mut deltas = Vec::new();
        while let Some(chunk) = body.within(&self.clock, &mut patience).await? {
            self.core.note_contact(self.clock.now());
            for part in chunk.chunks(PARSE) {
                opener.pack_at_once(self.core.is_behind());
                let mut page = Page {
                    opener: &mut opener,
                    known: &known,
                    limit: self.options.max_object,
                    read: Vec::new(),
                };
                splitter.push_to(part, &mut page)?;
                let other = |read: &Result<_, BadObject>| matches!(read, Err(bad) if bad.foreign);
                if page.read.iter().any(other) {
                    return Err(Failure::OtherKind);
                }
                deltas.extend(page.read.into_iter().filter_map(|read| self.delta(read)));
                if deltas.len() >= BATCH || (!deltas.is_empty() && !body.has_more()) {
                    let version = splitter.meta().map(|meta| &meta.version);
                    self.list_on(machine, version, std::mem::take(&mut deltas))
                        .await?;
                }
            }
        }
        let meta = splitter.finish()?;
        self.list_on(machine, Some(&meta.version), deltas).await?;
        self.core.note_event(self.clock.now());
        Ok(meta)
    }

    /// Hands over a part of a list of `version`, as far as that is known.
    async fn list_on(
        &mut self,
        machine: &Machine,
        version: Option<&Version>,
        deltas: Vec<Delta>,
    ) -> Result<(), Failure> {
        machine.accept(version)?;
        if !deltas.is_empty() {
            self.begin(machine, version);
            self.hand_over(deltas, true).await;
        }
        Ok(())
    }

    /// `None` if it cannot be put down to a key.
    fn delta(&mut self, read: Result<Object, BadObject>) -> Option<Delta> {
        let bad = match read {
            Ok(object) => return Some(Delta::Listed(object)),
            Err(bad) => bad,
        };
        // damaged bytes may have swallowed others
        self.complete &= bad.key.is_some() && !bad.damaged;
        let Some(key) = bad.key else {
            self.unidentified(&bad.reason);
            return None;
        };
        Some(self.set_aside(Delta::Unreadable {
            key,
            version: bad.version,
            reason: bad.reason,
        }))
    }

    /// Something in the list being read is known to be there, but not by name.
    pub(super) fn unidentified(&mut self, reason: &str) {
        self.complete = false;
        self.core.count(|counters| counters.unidentified += 1);
        tracing::error!(resource = %self.core.kind(), reason, "an object in a list has no name; deletions found by this list are held back");
    }

    /// What is stored in the same state need not be read again.
    pub(super) fn known(&self) -> impl Fn(&Key, &Meta) -> Option<Object> + use<> {
        // before the first list is in, next to nothing is
        let reuse = self.core.synced() && self.trust != Trust::Restored;
        let core = self.core.clone();
        move |key, meta| {
            if !reuse {
                return None;
            }
            let stored = core.reader().get(key)?;
            let same = stored.meta().uid == meta.uid
                && stored.meta().resource_version == meta.resource_version;
            same.then_some(stored)
        }
    }

    pub(super) fn set_aside(&self, delta: Delta) -> Delta {
        if let Delta::Unreadable { key, reason, .. } = &delta
            && self.core.reader().unreadable(key).as_deref() != Some(reason)
        {
            tracing::warn!(resource = %self.core.kind(), %key, reason, "object cannot be read; it is set aside and others go on");
        }
        delta
    }

    /// Waits until there is room: this is where a server is made to wait for a slow indexer.
    pub(super) async fn hand_over(&mut self, deltas: Vec<Delta>, listed: bool) {
        let credits = if listed {
            &self.core.list_credits
        } else {
            &self.core.watch_credits
        };
        let mut deltas = deltas.into_iter().peekable();
        while deltas.peek().is_some() {
            let deltas: Vec<_> = deltas.by_ref().take(BATCH).collect();
            let count = u32::try_from(deltas.len()).unwrap_or(u32::MAX);
            // the core never closes its credits
            let Ok(permits) = credits.clone().acquire_many_owned(count).await else {
                return;
            };
            if listed {
                self.core
                    .count(|counters| counters.listed += u64::from(count));
            }
            self.fifo.tell(Deltas {
                session: self.session,
                deltas,
                permits,
            });
        }
    }
}

/// Reads the items of a page as they are cut out of it.
struct Page<'a> {
    opener: &'a mut Opener,
    known: Known<'a>,
    /// What the splitter keeps of an item.
    limit: usize,
    read: Vec<Result<Object, BadObject>>,
}

impl Sink for Page<'_> {
    fn kind(&mut self, kind: &str) {
        self.opener.listed_as(kind);
    }

    fn item(&mut self, item: Item<'_>) {
        self.read.push(match item {
            Item::Whole(json) => self.opener.open_unless(json, self.known),
            Item::Oversized(head) => Err(envelope::oversized(head, self.limit)),
        });
    }

    fn front(&mut self, bytes: &[u8]) -> Option<usize> {
        let (object, length) = self.opener.front(bytes, self.known)?;
        self.read.push(Ok(object));
        Some(length)
    }
}
