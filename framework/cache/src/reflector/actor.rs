//! Carries out what the state machine says, over HTTP.

use std::pin::pin;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, WrapFuture};
use boatswain_supervision::{Address, Clock, Context, Entropy, Link, supervised};
use futures::future::select;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::Failure;
use super::state::{At, End, List, Machine, Plan};
use crate::core::InformerCore;
use crate::delta::{Cause, Delta, Trust};
use crate::delta_fifo::actor::{DeltaFifo, Deltas, Mark, Position, Resume, What};
use crate::delta_fifo::state::Replace;
use crate::envelope;
use crate::framing::{Item, ListMeta, ListSplitter};
use crate::informer::InformerOptions;
use crate::status::{Degraded, InformerState};
use crate::version::Version;

mod call;
mod watching;

use call::Caller;

/// Items handed over at a time.
const BATCH: usize = 64;
/// Bytes parsed at a time: what is parsed but not handed over is bounded by it, however large a chunk is.
const PARSE: usize = 64 << 10;

/// The only actor that speaks to the server.
///
/// All its work is one future in its context; when it crashes, the next incarnation asks the queue where to resume.
pub(crate) struct Reflector {
    run: Option<Run>,
}

impl Reflector {
    pub(crate) fn new(
        core: Arc<InformerCore>,
        client: kube::Client,
        options: InformerOptions,
        fifo: Address<DeltaFifo>,
        link: &Link,
    ) -> Self {
        let (clock, entropy) = (link.clock().clone(), link.entropy().clone());
        let (shared, age) = (core.clone(), clock.clone());
        link.report("informer", move || {
            serde_json::to_value(shared.status(age.now())).unwrap_or_default()
        });
        let caller = Caller::new(
            client,
            core.kind().path(core.scope()),
            clock.clone(),
            options.answer,
        );
        Self {
            run: Some(Run {
                core,
                caller,
                options,
                fifo,
                link: link.clone(),
                clock,
                entropy,
                session: 0,
                lists: None,
                asked: 0,
                opening: None,
                complete: true,
            }),
        }
    }
}

impl Actor for Reflector {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(run) = self.run.take() {
            let end = |(), _: &mut Self, ctx: &mut Context<Self>| {
                ctx.fail(boatswain_supervision::Failure::transient(
                    "the queue did not say where to resume",
                ))
            };
            ctx.spawn(run.run().into_actor(self).map(end));
        }
    }
}
supervised!(Reflector);

struct Run {
    core: Arc<InformerCore>,
    caller: Caller,
    options: InformerOptions,
    fifo: Address<DeltaFifo>,
    link: Link,
    clock: Clock,
    entropy: Entropy,
    session: u64,
    /// Held while a list is read.
    lists: Option<OwnedSemaphorePermit>,
    /// The last consistent list asked for that the state machine knows of.
    asked: u64,
    /// A list of which nothing was handed over yet.
    opening: Option<Replace>,
    /// Whether every item of the list being read could be put down to a key.
    complete: bool,
}

impl Run {
    async fn run(mut self) {
        self.core.lost();
        let Ok(Position {
            session,
            version,
            exact,
        }) = self.fifo.ask(Resume).await
        else {
            return;
        };
        self.session = session;
        let Self {
            options, entropy, ..
        } = &self;
        let mut machine = Machine::new(
            version,
            exact,
            options.page_size,
            options.silence,
            entropy.clone(),
        );
        self.asked = self.core.relists().1;
        loop {
            let (wanted, _) = self.core.relists();
            if wanted > self.asked {
                self.asked = wanted;
                machine.asked();
            }
            let plan = machine.plan(self.clock.now());
            match plan {
                Plan::Wait(until) => {
                    self.core.lost();
                    self.note(InformerState::Waiting, &machine, None);
                    let (wake, asked) = (
                        pin!(self.clock.sleep_until(until)),
                        pin!(self.core.relist_asked.notified()),
                    );
                    select(wake, asked).await;
                }
                Plan::List(list) => {
                    self.core.lost();
                    let listed = self.list(&mut machine, list).await;
                    if let Err(failure) = listed {
                        self.mark(What::ReplaceAbort);
                        self.lists = None;
                        machine.list_failed(&failure, self.clock.now());
                        self.note(InformerState::Waiting, &machine, Some(&failure));
                    }
                }
                Plan::Watch { version, timeout } => {
                    let end = self.watch(&mut machine, &version, timeout).await;
                    self.core.count(|counters| {
                        *counters.watch_ends.entry(cause(&end)).or_default() += 1
                    });
                    let now = self.clock.now();
                    self.core.note_watch_ended(now);
                    machine.watch_ended(&end, now);
                    let failure = match &end {
                        End::NotOpened(failure) | End::Error(failure) => Some(failure),
                        _ => None,
                    };
                    self.note(InformerState::Waiting, &machine, failure);
                }
                Plan::Probe => {
                    self.note(InformerState::Probing, &machine, None);
                    self.core.count(|counters| counters.probes += 1);
                    match self.probe().await {
                        Ok(version) => {
                            self.core.note_contact(self.clock.now());
                            machine.probed(version);
                        }
                        Err(failure) => {
                            machine.probe_failed(&failure, self.clock.now());
                            self.note(InformerState::Waiting, &machine, Some(&failure));
                        }
                    }
                }
            }
        }
    }

    async fn list(&mut self, machine: &mut Machine, list: List) -> Result<(), Failure> {
        if let (None, Some(gate)) = (&self.lists, &self.options.lists) {
            self.lists = gate.clone().acquire_owned().await.ok();
        }
        self.note(InformerState::Listing, machine, None);
        if list.token.is_none() {
            self.core.note_list_begun(self.clock.now());
            self.complete = true;
            self.core
                .count(|counters| *counters.relists.entry(list.reason.as_str()).or_default() += 1);
            let cause = if self.core.synced() {
                Cause::Relist
            } else {
                Cause::Initial
            };
            let (trust, answers) = if list.at == At::Now {
                (Trust::Quorum, self.asked)
            } else {
                (Trust::Cached, 0)
            };
            self.opening = Some(Replace {
                answers,
                ..Replace::new(self.core.next_epoch(), trust, cause)
            });
        }
        self.core.count(|counters| counters.lists += 1);
        let meta = self.page(machine, &list).await?;
        self.begin(machine, Some(&meta.version));
        if let Some(version) = machine.listed(&meta) {
            self.core.note_list_read(self.clock.now());
            self.mark(What::ReplaceEnd {
                version,
                complete: self.complete,
            });
            self.lists = None;
            self.note(InformerState::Watching, machine, None);
        }
        Ok(())
    }

    /// Tells the beginning of a list, once it is known how much it counts.
    fn begin(&mut self, machine: &Machine, version: Option<&Version>) {
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
        self.mark(What::ReplaceBegin(replace));
    }

    async fn page(&mut self, machine: &Machine, list: &List) -> Result<ListMeta, Failure> {
        let mut body = self.caller.list(list).await?;
        let mut splitter = ListSplitter::new(self.options.max_object);
        while let Some(chunk) = body.within(&self.clock, self.options.answer).await? {
            self.core.note_contact(self.clock.now());
            for part in chunk.chunks(PARSE) {
                let mut deltas = Vec::new();
                splitter.push(part, &mut |item| self.item(item, &mut deltas))?;
                if !deltas.is_empty() {
                    let version = splitter.meta().map(|meta| &meta.version);
                    machine.accept(version)?;
                    self.begin(machine, version);
                    self.hand_over(deltas, true).await;
                }
            }
        }
        let meta = splitter.finish()?;
        machine.accept(Some(&meta.version))?;
        self.core.note_event(self.clock.now());
        Ok(meta)
    }

    fn item(&mut self, item: Item<'_>, deltas: &mut Vec<Delta>) {
        let bad = match item {
            Item::Whole(json) => match self.core.intake().open(json) {
                Ok(object) => return deltas.push(Delta::Listed(object)),
                Err(bad) => bad,
            },
            Item::Oversized(head) => envelope::oversized(head, self.options.max_object),
        };
        // damaged bytes may have swallowed others
        self.complete &= bad.key.is_some() && !bad.damaged;
        match bad.key {
            Some(key) => deltas.push(self.set_aside(Delta::Unreadable {
                key,
                version: bad.version,
                reason: bad.reason,
            })),
            None => {
                self.core.count(|counters| counters.unidentified += 1);
                tracing::error!(resource = %self.core.kind(), reason = bad.reason, "an object in a list has no name; deletions found by this list are held back");
            }
        }
    }

    fn set_aside(&self, delta: Delta) -> Delta {
        if let Delta::Unreadable { key, reason, .. } = &delta {
            tracing::warn!(resource = %self.core.kind(), %key, reason, "object cannot be read; it is set aside and others go on");
        }
        delta
    }

    /// Waits until there is room: this is where a server is made to wait for a slow indexer.
    async fn hand_over(&mut self, deltas: Vec<Delta>, listed: bool) {
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

    async fn probe(&self) -> Result<Version, Failure> {
        let mut body = self.caller.probe().await?;
        let mut splitter = ListSplitter::new(self.options.max_object);
        while let Some(chunk) = body.within(&self.clock, self.options.answer).await? {
            splitter.push(&chunk, &mut |_| {})?;
        }
        Ok(splitter.finish()?.version)
    }

    fn mark(&self, what: What) {
        self.fifo.tell(Mark {
            session: self.session,
            what,
        });
    }

    /// Shows state and trouble, and logs trouble when it begins, changes kind or ends.
    fn note(&self, state: InformerState, machine: &Machine, failure: Option<&Failure>) {
        let before = self.core.degraded();
        let degraded = machine.trouble().map(|trouble| Degraded {
            verb: trouble.verb,
            resource: self.core.kind().resource(),
            namespace: match self.core.scope() {
                crate::Scope::Namespace(namespace) => Some(namespace.clone()),
                crate::Scope::All => None,
            },
            cause: trouble.cause,
            message: match (failure, before) {
                (Some(failure), _) => failure.to_string(),
                (None, before) => before.map(|degraded| degraded.message).unwrap_or_default(),
            },
        });
        let text = degraded.as_ref().map(ToString::to_string);
        if self.core.note_state(state, degraded.clone()) {
            match &text {
                Some(text) => tracing::warn!(resource = %self.core.kind(), "{text}"),
                None => tracing::info!(resource = %self.core.kind(), "listed and watched again"),
            }
        }
        self.link.degraded(text);
    }
}

/// Label of a counter.
fn cause(end: &End) -> &'static str {
    match end {
        End::NotOpened(failure) if failure.status().is_some_and(|status| status.is_expired()) => {
            "expired"
        }
        End::Error(failure) if failure.status().is_some_and(|status| status.is_expired()) => {
            "expired"
        }
        End::NotOpened(_) => "refused",
        End::Closed => "closed",
        End::Error(_) => "error",
        End::Unreadable => "unreadable",
        End::Silent => "silent",
        End::Asked => "asked",
    }
}
