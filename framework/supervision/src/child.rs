//! Polls one actor, survives its panic, and reports how it ended; the only place that catches panics of actors.
//!
//! A child is one task for all incarnations of its actor. It keeps the receiving end of the mailbox, and with it every address; an incarnation
//! is a context future of actix' that is lent it, and is dropped whole when it ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use actix::dev::channel::AddressReceiver;
use actix::{Actor, ActorContext, Supervised};
use tokio::sync::watch;

use crate::context::{Context, Incarnation};
use crate::events::What;
use crate::exit::{Exit, Failure};
use crate::link::Link;
use crate::mailbox::{Address, Mailbox};
use crate::panics::{Foreign, guard};
use crate::roster::Token;
use crate::slot::{Moment, during};
use crate::stats::{Node, NodeKind, Registry, Standing, millis};
use crate::supervisor::Supervisor;

/// What a child tells its supervisor; the only way a failure travels.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) token: Token,
    pub(crate) news: News,
}

#[derive(Debug)]
pub(crate) enum News {
    /// The incarnation has started.
    Started,
    /// The incarnation has ended.
    Exited(Ending),
    /// The task has ended, some time after the incarnation.
    Left,
}

#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) exit: Exit,
    pub(crate) uptime: Duration,
    /// Whether the incarnation had started.
    pub(crate) started: bool,
    /// Whether the task ended with it and there can be no further incarnation.
    pub(crate) gone: bool,
}

/// Whom a child reports to.
pub(crate) enum Superior {
    Supervisor(Address<Supervisor>),
    Tree(watch::Sender<RootState>),
}

/// What the tree knows of its root supervisor.
#[derive(Clone, Debug)]
pub(crate) enum RootState {
    Starting,
    Running,
    Ended(Exit),
}

impl Superior {
    /// False if nobody is left to hear it.
    fn hear(&self, node: &Node, news: News) -> bool {
        match self {
            Superior::Supervisor(address) => address.tell(Report {
                token: node.token,
                news,
            }),
            Superior::Tree(state) => {
                match news {
                    News::Started => {
                        node.stand(Standing::Running);
                        state.send_replace(RootState::Running);
                    }
                    News::Exited(Ending {
                        exit, gone: true, ..
                    }) => {
                        node.stand(if exit.is_orderly() {
                            Standing::Stopped
                        } else {
                            Standing::Failed
                        });
                        state.send_replace(RootState::Ended(exit));
                    }
                    // the tree always lets its root go for good: the exit and the end of the task come as one
                    News::Exited(_) | News::Left => return false,
                }
                true
            }
        }
    }
}

/// Where a child is launched into.
pub(crate) struct Berth {
    pub(crate) node: Arc<Node>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) superior: Superior,
}

/// Starts the task of a child. If its thread has ended, or ends before it gets to the task, the child reports that it was killed.
pub(crate) type Launch = Box<dyn FnOnce(Berth) + Send>;

type Make<A> = Box<dyn Fn(&Link) -> Result<A, Failure> + Send>;

pub(crate) fn launcher<A>(mailbox: Mailbox<A>, make: Make<A>) -> Launch
where
    A: Actor<Context = Context<A>> + Supervised,
{
    let make = Foreign::new(make);
    Box::new(move |berth| {
        let thread = berth.node.thread.clone();
        let tether = Tether::new(berth);
        let address = mailbox.address();
        let receiver = mailbox.receiver;
        thread.run(move || {
            let child = Child {
                incarnation: None,
                inbox: Some(receiver),
                make,
                address,
                tether,
                begin: true,
            };
            tokio::task::spawn_local(child);
        });
    })
}

/// What ties a task to its supervisor: however the task ends, the supervisor hears of it.
struct Tether {
    berth: Berth,
    /// The incarnation that has not been reported as ended yet.
    running: Option<Running>,
    /// With what the task ends.
    exit: Option<Box<Exit>>,
}

#[derive(Clone, Copy)]
struct Running {
    since: Instant,
    /// Whether it was polled at all.
    looked: bool,
    /// False for an incarnation that ends before it has begun, and so was none.
    begun: bool,
    started: bool,
    asked_to_stop: bool,
}

impl Tether {
    fn new(berth: Berth) -> Tether {
        berth.node.alive.store(true, Ordering::Release);
        berth.registry.tasks.fetch_add(1, Ordering::AcqRel);
        let running = Some(Running::since(berth.registry.clock.now()));
        Tether {
            berth,
            running,
            exit: None,
        }
    }

    fn report(&self, news: News) -> bool {
        self.berth.superior.hear(&self.berth.node, news)
    }

    fn started(&self) {
        let Berth { node, registry, .. } = &self.berth;
        registry.tell(node, || What::Started {
            incarnation: node.incarnation.load(Ordering::Acquire),
        });
        self.report(News::Started);
    }

    /// The end of an incarnation, of which observers hear here, whoever is left to hear the report.
    fn ending(&mut self, exit: Exit, gone: bool) -> Option<Ending> {
        let running = self.running.take()?;
        let Berth { node, registry, .. } = &self.berth;
        let now = registry.clock.now();
        let uptime = now.saturating_duration_since(running.since);
        if running.begun {
            registry.tell(node, || What::Exited {
                incarnation: node.incarnation.load(Ordering::Acquire),
                exit: exit.clone(),
                uptime_ms: millis(uptime),
            });
            node.end(&exit, now, gone);
        }
        Some(Ending {
            exit,
            uptime,
            started: running.started,
            gone,
        })
    }
}

impl Running {
    fn since(since: Instant) -> Running {
        Running {
            since,
            looked: false,
            begun: false,
            started: false,
            asked_to_stop: false,
        }
    }
}

impl Drop for Tether {
    fn drop(&mut self) {
        self.berth.node.control.close();
        self.berth.node.alive.store(false, Ordering::Release);
        // it may know the node, which would then keep itself
        let told = self.berth.node.record().told.take();
        let _ = guard(&self.berth.node.path, || drop(told));
        // without an exit of its own the task was dropped by its thread
        let exit = self.exit.take().map_or(Exit::Killed, |exit| *exit);
        let ending = self.ending(exit.clone(), true);
        let Berth { node, registry, .. } = &self.berth;
        node.depart(exit);
        registry.tell(node, || What::Stopped);
        if registry.tasks.fetch_sub(1, Ordering::AcqRel) == 1 {
            registry.feed.close();
        }
        self.report(ending.map_or(News::Left, News::Exited));
    }
}

/// The task of one child.
struct Child<A: Actor<Context = Context<A>> + Supervised> {
    incarnation: Option<Incarnation<A>>,
    /// Lent to each incarnation, and given back when the task ends.
    inbox: Option<AddressReceiver<A>>,
    make: Foreign<Make<A>>,
    address: Address<A>,
    /// The first incarnation begins unasked.
    begin: bool,
    // last: its drop reports, after everything of the actor's is gone
    tether: Tether,
}

impl<A: Actor<Context = Context<A>> + Supervised> Child<A> {
    fn path(&self) -> &Arc<str> {
        &self.tether.berth.node.path
    }

    fn begin(&mut self) -> Result<(), Exit> {
        let berth = &self.tether.berth;
        let incarnation = berth.node.incarnation.fetch_add(1, Ordering::AcqRel) + 1;
        let told = berth.node.record().told.take();
        let path = &berth.node.path;
        let link = Link {
            node: Arc::clone(&berth.node),
            registry: Arc::clone(&berth.registry),
            incarnation,
        };
        self.tether.running = Some(Running {
            begun: true,
            ..Running::since(berth.registry.clock.now())
        });
        let made = during(Moment::Making, || {
            guard(path, || {
                drop(told);
                self.make.get()(&link)
            })
        });
        let (actor, Some(inbox)) = (made??, self.inbox.take()) else {
            return Err(Exit::Killed);
        };
        let me = self.address.clone();
        self.incarnation = Some(Context::incarnate(actor, inbox, me, link));
        berth.node.gauge().set_up(true);
        Ok(())
    }

    /// The supervisor changed its mind before the incarnation began.
    fn taken_back(&mut self) -> Exit {
        self.tether.running = Some(Running::since(self.tether.berth.registry.clock.now()));
        Exit::Shutdown
    }

    /// Gives the running incarnation its turn. `Some` once it has ended.
    ///
    /// The first look is without messages: that it has started is told before any of them can end it. One that is suspended gets no further;
    /// and one that ends gets all it needs to.
    fn turn(&mut self, suspended: bool, cx: &mut TaskContext<'_>) -> Option<Exit> {
        let running = self.tether.running.as_ref()?;
        let suspended = suspended && !running.asked_to_stop;
        if suspended && running.started {
            return None;
        }
        if !running.looked {
            let exit = self.look(true, cx);
            if exit.is_some() || suspended {
                return exit;
            }
        }
        self.look(suspended, cx)
    }

    /// Polls the running incarnation; a deaf one hears no messages.
    fn look(&mut self, deaf: bool, cx: &mut TaskContext<'_>) -> Option<Exit> {
        let path = &self.tether.berth.node.path;
        let (Some(future), Some(running)) = (&mut self.incarnation, &mut self.tether.running)
        else {
            return None;
        };
        running.looked = true;
        future.ctx().begin_turn(deaf);
        let mut polled = guard(path, || Pin::new(&mut *future).poll(cx));
        if matches!(polled, Ok(Poll::Pending)) && future.ctx().is_ending() {
            // `stopping` refused, or the actor waited for a future: once more, and then it ends in any case
            future.ctx().stop();
            polled = guard(path, || Pin::new(&mut *future).poll(cx)).map(|_| Poll::Ready(()));
        }
        match polled {
            Err(panic) => Some(panic),
            Ok(Poll::Ready(())) => {
                let by_default = if running.asked_to_stop {
                    Exit::Shutdown
                } else {
                    Exit::Normal
                };
                Some(future.ctx().take_exit().unwrap_or(by_default))
            }
            Ok(Poll::Pending) => {
                if !running.started && !future.ctx().started_held() {
                    running.started = true;
                    self.tether.started();
                }
                if future.ctx().used_up_turn(deaf) {
                    cx.waker().wake_by_ref();
                }
                None
            }
        }
    }

    /// Carries out orders to a running incarnation. `Some` if that ends it on the spot.
    fn obey(&mut self, stop: bool, kill: bool) -> Option<Exit> {
        let (Some(future), Some(running)) = (&mut self.incarnation, &mut self.tether.running)
        else {
            return None;
        };
        let node = &self.tether.berth.node;
        if node.is_condemned() {
            return Some(Exit::Stuck);
        }
        if kill {
            match node.kind {
                NodeKind::Actor => return Some(Exit::Killed),
                // a supervisor that vanished would leave its children behind
                NodeKind::Supervisor(_) => future.ctx().make_hasty(),
            }
        }
        if stop || kill {
            running.asked_to_stop = true;
            future.ctx().stop();
        }
        None
    }

    /// Drops the incarnation, and parks. False if nobody is there to decide what comes next.
    fn end(&mut self, exit: Exit) -> bool {
        self.tether.berth.node.gauge().set_up(false);
        self.bury(if let Exit::Panic { .. } = exit {
            Moment::Crash
        } else {
            Moment::Ordinary
        });
        if self.tether.berth.node.control.released() {
            self.tether.exit = Some(Box::new(exit));
            return false;
        }
        match self.tether.ending(exit, false) {
            Some(ending) => self.tether.report(News::Exited(ending)),
            None => true,
        }
    }

    /// Drops the incarnation that ended: what it holds must not live on through a backoff, and the next one may borrow it. The mailbox stays.
    fn bury(&mut self, moment: Moment) {
        let path = &self.tether.berth.node.path;
        let Some(mut future) = self.incarnation.take() else {
            return;
        };
        self.inbox = future.ctx().take_inbox();
        during(moment, || {
            // actix restarts only what somebody can still write to
            let _writer = future.address();
            // two panics at once would abort the process, and `restarting` may panic as well as the drop of the actor
            let _ = guard(path, || future.restart());
            let _ = guard(path, || {
                future.ctx().silence();
                drop(future);
            });
        });
    }

    fn run(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            let orders = self.tether.berth.node.control.take(cx.waker());
            if self.begin || self.tether.running.is_none() {
                if !(std::mem::take(&mut self.begin) || orders.restart) {
                    if orders.release {
                        break;
                    }
                    return Poll::Pending;
                }
                let begun = if orders.stop || orders.kill {
                    Err(self.taken_back())
                } else {
                    self.begin()
                };
                if let Err(exit) = begun {
                    if self.end(exit) {
                        continue;
                    }
                    break;
                }
            }
            let exit = self
                .obey(orders.stop, orders.kill)
                .or_else(|| self.turn(orders.suspended, cx));
            let Some(exit) = exit else {
                return Poll::Pending;
            };
            if !self.end(exit) {
                break;
            }
        }
        self.discard();
        Poll::Ready(())
    }

    /// Gives everything back.
    fn discard(&mut self) {
        self.bury(Moment::Ordinary);
        let (inbox, make) = (self.inbox.take(), self.make.take());
        let _ = guard(self.path(), || drop((inbox, make)));
    }
}

impl<A: Actor<Context = Context<A>> + Supervised> Future for Child<A> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.tether.berth.node.turns.enter();
        let polled = this.run(cx);
        this.tether.berth.node.turns.leave();
        polled
    }
}

impl<A: Actor<Context = Context<A>> + Supervised> Drop for Child<A> {
    fn drop(&mut self) {
        // the thread ended, and took the task with it
        self.discard();
    }
}

#[cfg(test)]
mod tests;
