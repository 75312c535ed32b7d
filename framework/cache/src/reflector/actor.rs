//! Carries out what the state machine says, over HTTP.

use std::pin::pin;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, WrapFuture};
use boatswain_supervision::{Address, Clock, Context, Entropy, Link, supervised};
use futures::future::select;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::Failure;
use super::plan::{End, Plan};
use super::state::Machine;
use super::voice::{Line, Voice};
use crate::core::InformerCore;
use crate::delta::Trust;
use crate::delta_fifo::actor::{DeltaFifo, Mark, Position, Resume, What};
use crate::delta_fifo::state::Replace;
use crate::framing::ListSplitter;
use crate::informer::InformerOptions;
use crate::status::{Degraded, InformerState, Trouble};
use crate::version::Version;

mod call;
mod listing;
mod watching;

use call::{Caller, Patience};
use watching::Opening;

/// Items handed over at a time.
const BATCH: usize = 128;
/// Bytes parsed at a time: what is parsed but not handed over is bounded by it, however large a chunk is.
const PARSE: usize = 512 << 10;

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
        let options = options.countable();
        let (clock, entropy) = (link.clock().clone(), link.entropy().clone());
        let (shared, age) = (core.clone(), clock.clone());
        link.report("informer", move || {
            serde_json::to_value(shared.status(age.now())).unwrap_or_default()
        });
        let caller = Caller::new(
            client,
            core.selection().clone(),
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
                incarnation: 0,
                session: 0,
                lists: None,
                asked: 0,
                opening: None,
                trust: Trust::default(),
                complete: true,
                began: false,
                voice: Voice::new(),
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

/// Stopped, crashed or killed: from here on nobody follows the server, until the next incarnation does.
impl Drop for Run {
    fn drop(&mut self) {
        self.core.left(self.incarnation);
    }
}

struct Run {
    core: Arc<InformerCore>,
    caller: Caller,
    options: InformerOptions,
    fifo: Address<DeltaFifo>,
    link: Link,
    clock: Clock,
    entropy: Entropy,
    /// By which the core knows who keeps it up to date; 0 before the run begins.
    incarnation: u64,
    session: u64,
    /// Held while a list is read.
    lists: Option<OwnedSemaphorePermit>,
    /// The last consistent list asked for that the state machine knows of.
    asked: u64,
    /// A list of which nothing was handed over yet.
    opening: Option<Replace>,
    /// How much the list being read counts, as far as that is known.
    trust: Trust,
    /// Whether every item of the list being read could be put down to a key.
    complete: bool,
    /// Whether this incarnation has read a list before.
    began: bool,
    voice: Voice<Trouble>,
}

impl Run {
    async fn run(mut self) {
        self.incarnation = self.core.kept();
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
        machine.allow_streams(options.stream_lists.is_some());
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
                        self.abort();
                        machine.list_failed(&failure, self.clock.now());
                        self.note(InformerState::Waiting, &machine, Some(&failure));
                    }
                }
                Plan::Stream(list) => {
                    self.core.lost();
                    self.enter().await;
                    match self.unstreamed().await {
                        Some(_) => machine.not_streamed(),
                        None => self.follow(&mut machine, Opening::Stream(list)).await,
                    }
                }
                Plan::Watch { version, timeout } => {
                    self.follow(&mut machine, Opening::Watch(version, timeout))
                        .await;
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

    async fn probe(&self) -> Result<Version, Failure> {
        let mut body = self.caller.probe().await?;
        let mut splitter = ListSplitter::new(self.options.max_object);
        let mut patience = Patience::new(self.options.answer);
        while let Some(chunk) = body.within(&self.clock, &mut patience).await? {
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

    /// Shows state and trouble, and logs trouble when it begins, changes kind or ends, and ever more rarely while it lasts.
    fn note(&mut self, state: InformerState, machine: &Machine, failure: Option<&Failure>) {
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
        let state = match state {
            InformerState::Waiting if machine.is_parked() => InformerState::Parked,
            state => state,
        };
        self.core.note_state(state, degraded);
        match self.voice.hear(machine.trouble(), self.clock.now()) {
            Some(Line::Trouble) => {
                tracing::warn!(resource = %self.core.kind(), "{}", text.as_deref().unwrap_or_default());
            }
            Some(Line::Recovery) => {
                tracing::info!(resource = %self.core.kind(), "listed and watched again");
            }
            None => {}
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
        End::SetBack => "set_back",
        End::Asked => "asked",
    }
}
