//! The actors of the model, and what they write down about each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use boatswain_supervision::actix::{Actor, ActorContext, Handler, Message};
use boatswain_supervision::{Address, ChildSpec, Context, Failure, Mailbox, supervised};

/// What an actor is told to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    Note(u32),
    Panic,
    FailForNow,
    FailForGood,
    Stop,
}

impl Message for Do {
    type Result = ();
}

/// One mailbox and all that happened to it.
pub(crate) struct Post {
    pub(crate) address: Address<Hand>,
    pub(crate) sent: Vec<u32>,
    pub(crate) handled: Vec<u32>,
    pub(crate) suspended: bool,
    /// Incarnations that have started and whose value still lives.
    running: usize,
}

#[derive(Default)]
pub(crate) struct Log {
    /// The latest mailbox of each path is the one its actor has.
    pub(crate) posts: BTreeMap<String, Vec<Post>>,
    /// Values of actors that exist.
    pub(crate) values: usize,
    pub(crate) broken: Vec<String>,
    next: u32,
}

#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Log>>);

impl World {
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().expect("no panic happens under the lock")
    }

    /// A child that is to live at `path`, which ends with its id.
    pub(crate) fn child(&self, path: &str) -> ChildSpec {
        let mailbox = Mailbox::new();
        let post = {
            let mut log = self.log();
            let posts = log.posts.entry(path.to_owned()).or_default();
            posts.push(Post {
                address: mailbox.address(),
                sent: Vec::new(),
                handled: Vec::new(),
                suspended: false,
                running: 0,
            });
            posts.len() - 1
        };
        let id = path.rsplit('/').next().unwrap_or(path).to_owned();
        let (world, path) = (self.clone(), path.to_owned());
        ChildSpec::actor(id, mailbox, move |_| {
            world.log().values += 1;
            Hand {
                world: world.clone(),
                path: path.clone(),
                post,
                started: false,
            }
        })
    }

    /// The number of a note, and the mailbox it is to go to.
    pub(crate) fn number(&self, path: &str) -> Option<(u32, Address<Hand>)> {
        let mut log = self.log();
        log.next += 1;
        let number = log.next;
        let post = log.posts.get(path)?.last()?;
        Some((number, post.address.clone()))
    }

    /// The latest child of `path` was refused.
    pub(crate) fn unmade(&self, path: &str) {
        if let Some(posts) = self.log().posts.get_mut(path) {
            posts.pop();
        }
    }

    /// Changes what is known of the mailbox that the actor at `path` has now.
    pub(crate) fn post(&self, path: &str, change: impl FnOnce(&mut Post)) {
        if let Some(post) = self
            .log()
            .posts
            .get_mut(path)
            .and_then(|posts| posts.last_mut())
        {
            change(post);
        }
    }
}

pub(crate) struct Hand {
    world: World,
    path: String,
    post: usize,
    started: bool,
}

supervised!(Hand);

impl Actor for Hand {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.started = true;
        let mut log = self.world.log();
        let posts = log.posts.get_mut(&self.path).expect("made by `child`");
        posts[self.post].running += 1;
        let running: usize = posts.iter().map(|post| post.running).sum();
        if running > 1 {
            let path = &self.path;
            log.broken
                .push(format!("{running} incarnations of {path} live at once"));
        }
    }
}

impl Handler<Do> for Hand {
    type Result = ();

    fn handle(&mut self, told: Do, ctx: &mut Context<Self>) {
        {
            let mut log = self.world.log();
            let posts = log.posts.get_mut(&self.path).expect("made by `child`");
            let post = &mut posts[self.post];
            if let Do::Note(number) = told {
                post.handled.push(number);
            }
            if post.suspended {
                let path = &self.path;
                log.broken
                    .push(format!("{path} is suspended, and handled {told:?}"));
            }
        }
        match told {
            Do::Note(_) => {}
            Do::Panic => panic!("overboard"),
            Do::FailForNow => ctx.fail(Failure::transient("no route")),
            Do::FailForGood => ctx.fail(Failure::fatal("no schema")),
            Do::Stop => ctx.stop(),
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let mut log = self.world.log();
        log.values -= 1;
        if self.started
            && let Some(posts) = log.posts.get_mut(&self.path)
        {
            posts[self.post].running -= 1;
        }
    }
}
