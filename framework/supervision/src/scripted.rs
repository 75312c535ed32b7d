//! The one actor of all tests: does what it is told, and writes down what happens to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Handler, Message, Running};

use crate::stats::lock;
use crate::{
    Address, ChildSpec, Children, Clock, Context, Exit, Failure, Link, Mailbox, Strategy,
    SupervisorSpec, Tree, TreeOptions, Work, supervised,
};

/// What an actor is told to do.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Counts; the answer is the count since this incarnation began.
    Count,
    Panic(&'static str),
    PanicLater(&'static str),
    Fail(Failure),
    /// Stops itself.
    Stop,
    /// Refuses to stop when asked.
    Refuse,
    /// Refuses to stop until its work is done, which takes this long, and then stops.
    Work(Duration),
    /// Panics in `stopped`.
    PanicInStopped,
    /// Waits inside `ctx.wait`, deaf to messages, for this long.
    Wait(Duration),
    /// Sends itself this many messages.
    Storm(u32),
    /// Holds a witness in a spawned future that never ends.
    Hold(Arc<()>),
    /// Blocks its thread until the gate is open.
    Block(Gate),
    /// Declares work that may take this long, in place of what it declared before.
    Declare(Option<Duration>),
    /// Says that it does not work as it should, or that it does.
    Degrade(Option<&'static str>),
}

/// Where an actor blocks its thread until it is let through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Gate {
    fn pass(&self) {
        self.change(|(arrived, _)| *arrived = true);
        self.wait(|&(_, open)| open);
    }

    pub(crate) fn open(&self) {
        self.change(|(_, open)| *open = true);
    }

    /// Returns when an actor blocks here.
    pub(crate) fn wait_for_arrival(&self) {
        self.wait(|&(arrived, _)| arrived);
    }

    fn change(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut lock(&self.0.0));
        self.0.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&(bool, bool)) -> bool) {
        let state = lock(&self.0.0);
        let state = self.0.1.wait_while(state, |state| !until(state));
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Message for Do {
    type Result = u32;
}

/// How an actor behaves as it starts, by incarnation; beyond the end, well.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Begin {
    Well,
    PanicInMake,
    PanicInStarted,
    FailInStarted(Failure),
    StopInStarted,
    HoldStart(Duration),
}

/// Everything that happened, and who did it.
#[derive(Clone, Default)]
pub(crate) struct World {
    log: Arc<Mutex<Vec<(Instant, String)>>>,
    addresses: Arc<Mutex<BTreeMap<String, Address<Scripted>>>>,
}

impl World {
    pub(crate) fn note(&self, clock: &Clock, what: String) {
        lock(&self.log).push((clock.now(), what));
    }

    /// What happened since the last look.
    pub(crate) fn news(&self) -> Vec<String> {
        lock(&self.log).drain(..).map(|(_, what)| what).collect()
    }

    /// When something happened, since the last look.
    pub(crate) fn times(&self, what: &str) -> Vec<Instant> {
        lock(&self.log)
            .iter()
            .filter(|(_, noted)| noted == what)
            .map(|&(at, _)| at)
            .collect()
    }

    pub(crate) fn at(&self, id: &str) -> Address<Scripted> {
        lock(&self.addresses)[id].clone()
    }

    /// A child that writes `+id` when it starts and `-id` when it stops.
    pub(crate) fn child(&self, id: &str, begins: Vec<Begin>) -> ChildSpec {
        self.child_at(Mailbox::new(), id, begins)
    }

    /// The same, with a mailbox of the test's own.
    pub(crate) fn child_at(
        &self,
        mailbox: Mailbox<Scripted>,
        id: &str,
        begins: Vec<Begin>,
    ) -> ChildSpec {
        let (world, name) = (self.clone(), id.to_owned());
        lock(&self.addresses).insert(name.clone(), mailbox.address());
        ChildSpec::actor(id, mailbox, move |link| {
            let begin = begins
                .get(link.incarnation() as usize - 1)
                .cloned()
                .unwrap_or(Begin::Well);
            assert!(begin != Begin::PanicInMake, "made badly");
            Scripted {
                id: name.clone(),
                world: world.clone(),
                link: link.clone(),
                begin,
                count: 0,
                refuses: false,
                bad_end: false,
                work: None,
            }
        })
    }

    /// A tree of well-behaved children that do not depend on each other.
    pub(crate) async fn start(&self, ids: &'static [&'static str], options: &TreeOptions) -> Tree {
        let spec = self.root(Strategy::OneForOne, ids, |_, child| child);
        Tree::start(spec, options.clone()).await.unwrap()
    }

    /// A supervisor of well-behaved children, changed by `edit`.
    pub(crate) fn root(
        &self,
        strategy: Strategy,
        ids: &'static [&'static str],
        edit: impl Fn(&str, ChildSpec) -> ChildSpec + Send + 'static,
    ) -> SupervisorSpec {
        let world = self.clone();
        SupervisorSpec::new("root", strategy).children(move |children: &mut Children| {
            for id in ids {
                children.add(edit(id, world.child(id, Vec::new())));
            }
        })
    }
}

pub(crate) struct Scripted {
    id: String,
    world: World,
    link: Link,
    begin: Begin,
    count: u32,
    refuses: bool,
    bad_end: bool,
    work: Option<Work>,
}

supervised!(Scripted);

impl Actor for Scripted {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.world.note(self.link.clock(), format!("+{}", self.id));
        match &self.begin {
            Begin::Well => {}
            Begin::PanicInMake => unreachable!("made badly and yet started"),
            Begin::PanicInStarted => panic!("started badly"),
            Begin::FailInStarted(failure) => ctx.fail(failure.clone()),
            Begin::StopInStarted => ctx.stop(),
            Begin::HoldStart(time) => {
                ctx.hold_start();
                let (clock, time) = (self.link.clock().clone(), *time);
                let wait = wrap_future::<_, Self>(async move { clock.sleep(time).await });
                ctx.spawn(wait.map(|(), _, ctx: &mut Context<Self>| ctx.release_start()));
            }
        }
    }

    fn stopping(&mut self, _: &mut Context<Self>) -> Running {
        if self.refuses {
            Running::Continue
        } else {
            Running::Stop
        }
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.world.note(self.link.clock(), format!("-{}", self.id));
        assert!(!self.bad_end, "stopped badly");
    }
}

impl Handler<Do> for Scripted {
    type Result = u32;

    fn handle(&mut self, told: Do, ctx: &mut Context<Self>) -> u32 {
        let clock = self.link.clock().clone();
        match told {
            Do::Count => self.count += 1,
            Do::Panic(text) => panic!("{text}"),
            Do::PanicLater(text) => {
                ctx.spawn(wrap_future(async move { panic!("{text}") }));
            }
            Do::Fail(failure) => ctx.fail(failure),
            Do::Stop => ctx.stop(),
            Do::Refuse => self.refuses = true,
            Do::Work(time) => {
                self.refuses = true;
                let work = wrap_future::<_, Self>(async move { clock.sleep(time).await });
                ctx.spawn(work.map(|(), actor, ctx: &mut Context<Self>| {
                    actor.refuses = false;
                    ctx.stop();
                }));
            }
            Do::PanicInStopped => self.bad_end = true,
            Do::Wait(time) => ctx.wait(wrap_future(async move { clock.sleep(time).await })),
            Do::Block(gate) => gate.pass(),
            Do::Declare(time) => self.work = time.map(|time| self.link.deadline(time)),
            Do::Degrade(why) => self.link.degraded(why.map(str::to_owned)),
            Do::Storm(0) => {}
            Do::Storm(n) => {
                ctx.me().tell(Do::Storm(n - 1));
            }
            Do::Hold(witness) => {
                ctx.spawn(wrap_future(async move {
                    std::future::pending::<()>().await;
                    drop(witness);
                }));
            }
        }
        self.count
    }
}

pub(crate) fn panicked(message: &str) -> impl Fn(&Exit) -> bool {
    move |exit| matches!(exit, Exit::Panic { message: text, location: Some(_) } if text == message)
}
