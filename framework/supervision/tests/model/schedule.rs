//! One schedule: a tree, what happens to it, and what must hold meanwhile and in the end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use boatswain_supervision::{
    AskError, AutoShutdown, Backoff, ChildSpec, Dynamic, Entropy, Exit, Intensity, NodeSnapshot,
    NodeSort, NodeState, Restart, Strategy, SupervisorSpec, Tree, TreeOptions,
};
use futures::FutureExt as _;
use futures::future::{Either, LocalBoxFuture, select};

use crate::world::{Do, World};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const EVENTS: u64 = 24;
/// The number of a note that is asked, not told.
const ASKED: u32 = u32::MAX;

const FIXED: [&str; 5] = ["root/a", "root/b", "root/mid/x", "root/mid/y", "root/mid/z"];
const POOL: [&str; 2] = ["root/pool/1", "root/pool/2"];

struct Play {
    world: World,
    entropy: Entropy,
    options: TreeOptions,
    pool: Dynamic<&'static str>,
    /// Something happened that counts toward escalation.
    counted: bool,
    answers: Vec<LocalBoxFuture<'static, Result<(), AskError>>>,
}

pub(crate) async fn play(entropy: Entropy, options: TreeOptions) {
    let world = World::default();
    let template = world.clone();
    let (pool_spec, pool) = SupervisorSpec::dynamic("pool", move |path: &'static str| {
        template.child(path).restart(Restart::Transient)
    });
    let spec = tree(&world, &entropy);
    let mut tree = Tree::start(spec, options.clone())
        .await
        .expect("it makes sense");
    tree.add_child("root", ChildSpec::supervisor(pool_spec))
        .await
        .expect("it makes sense");
    let mut play = Play {
        world,
        entropy,
        options,
        pool,
        counted: false,
        answers: Vec::new(),
    };
    for _ in 0..EVENTS {
        play.happen(&tree).await;
        let broken = std::mem::take(&mut play.world.log().broken);
        assert!(broken.is_empty(), "{broken:?}");
    }
    tree.resume("root");
    for path in FIXED.into_iter().chain(POOL) {
        play.world.post(path, |post| post.suspended = false);
    }
    play.sleep(HOUR).await;

    let ended = tree.exited().now_or_never();
    match &ended {
        None => play.check_calm(&tree.snapshot().root.expect("it runs")),
        Some(exit) => {
            assert!(
                play.counted,
                "ended with {exit:?}, though nothing failed that counts"
            );
            assert!(matches!(exit, Exit::Escalated { .. }), "{exit:?}");
        }
    }
    let observer = tree.observer();
    tree.stop(HOUR).await.expect("nothing blocks");
    assert_eq!(observer.alive(), Vec::<String>::new());
    assert_eq!(observer.snapshot().tasks, 0);
    for answer in play.answers {
        assert!(
            answer.now_or_never().is_some(),
            "a question was never answered"
        );
    }
    let log = play.world.log();
    assert_eq!(log.values, 0, "values of actors outlive the tree");
    assert!(log.broken.is_empty(), "{:?}", log.broken);
    for (path, post) in log
        .posts
        .iter()
        .flat_map(|(path, posts)| posts.iter().map(move |post| (path, post)))
    {
        let mut notes = post.handled.clone();
        notes.retain(|&number| number != ASKED);
        assert!(
            notes.is_sorted_by(|a, b| a < b),
            "{path} handled a message twice, or out of order: {:?}",
            post.handled
        );
    }
}

fn tree(world: &World, entropy: &Entropy) -> SupervisorSpec {
    let pick = |n: u64| entropy.range(0..n);
    let kind = |path| {
        let kinds = [
            Restart::Permanent,
            Restart::Permanent,
            Restart::Transient,
            Restart::Temporary,
        ];
        (path, kinds[pick(4) as usize])
    };
    let crew = FIXED.map(kind);
    let strategy = [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ][pick(3) as usize];
    let auto_shutdown = [
        AutoShutdown::Never,
        AutoShutdown::AnySignificant,
        AutoShutdown::AllSignificant,
    ][pick(3) as usize];
    let instant = pick(2) == 0;
    let patient = pick(2) == 0;
    let stubborn = pick(4) == 0;
    let world = world.clone();
    let leaf = move |world: &World, (path, kind): (&str, Restart)| {
        let backoff = if instant {
            Backoff::none()
        } else {
            Backoff::default()
        };
        world.child(path).restart(kind).backoff(backoff)
    };
    SupervisorSpec::new("root", Strategy::OneForOne)
        .intensity(Intensity::new(3, HOUR))
        .children(move |children| {
            let (top, below) = crew.split_at(2);
            for &hand in top {
                children.add(leaf(&world, hand));
            }
            let (world, below) = (world.clone(), below.to_vec());
            let mid = SupervisorSpec::new("mid", strategy).auto_shutdown(auto_shutdown);
            let mid = match (stubborn, patient) {
                (true, _) => mid.without_intensity(),
                (false, true) => mid.intensity(Intensity::new(8, 60 * SECOND)),
                (false, false) => mid.intensity(Intensity::new(1, 60 * SECOND)),
            };
            children.add(ChildSpec::supervisor(mid.children(move |children| {
                for &hand in &below {
                    let child = leaf(&world, hand);
                    let significant =
                        auto_shutdown != AutoShutdown::Never && hand.1 != Restart::Permanent;
                    children.add(if significant {
                        child.significant()
                    } else {
                        child
                    });
                }
            })));
        })
}

impl Play {
    fn pick(&self, n: usize) -> usize {
        self.entropy.range(0..n as u64) as usize
    }

    async fn sleep(&self, time: Duration) {
        self.options.clock.sleep(time).await;
    }

    /// What is asked of a tree is answered, though its deadlines and delays may have to pass first.
    async fn answered<T>(&self, what: &str, asked: impl Future<Output = T>) -> T {
        match select(pin!(asked), pin!(self.sleep(HOUR))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => panic!("{what} was never answered"),
        }
    }

    /// One thing happens, to somebody.
    async fn happen(&mut self, tree: &Tree) {
        let paths: Vec<&str> = FIXED.into_iter().chain(POOL).collect();
        let path = paths[self.pick(paths.len())];
        match self.pick(24) {
            0..4 => self.note(path),
            4..6 => self.ask(path),
            6 | 7 => self.tell(path, Do::Panic, true),
            8 => self.tell(path, Do::FailForNow, false),
            9 if self.pick(4) == 0 => self.tell(path, Do::FailForGood, true),
            9 | 10 => self.tell(path, Do::Stop, false),
            11 => self.counted |= tree.observer().kill(path),
            12 if self.pick(3) == 0 => self.counted |= tree.observer().kill("root/mid"),
            12 | 13 => self.suspend(tree, path),
            14 => {
                tree.resume(path);
                self.world.post(path, |post| post.suspended = false);
            }
            15 => {
                let _ = self.answered("terminate", tree.terminate_child(path)).await;
            }
            16 | 17 => {
                let _ = self.answered("restart", tree.restart_child(path)).await;
            }
            18 => {
                let _ = self.answered("delete", tree.delete_child(path)).await;
            }
            19 => {
                let path = POOL[self.pick(2)];
                if self.answered("start", self.pool.start(path)).await.is_err() {
                    self.world.unmade(path);
                }
            }
            20 if self.pick(2) == 0 => {
                let _ = self.answered("stop", tree.stop_child(path)).await;
            }
            20 | 21 => {
                self.sleep(Duration::from_millis(self.pick(300) as u64))
                    .await
            }
            _ => {
                self.sleep(Duration::from_millis(self.pick(20_000) as u64))
                    .await
            }
        }
    }

    fn note(&mut self, path: &str) {
        if let Some((number, address)) = self.world.number(path)
            && address.tell(Do::Note(number))
        {
            self.world.post(path, |post| post.sent.push(number));
        }
    }

    fn ask(&mut self, path: &str) {
        if let Some((_, address)) = self.world.number(path) {
            self.answers
                .push(address.ask(Do::Note(ASKED)).boxed_local());
        }
    }

    fn tell(&mut self, path: &str, told: Do, counts: bool) {
        if let Some((_, address)) = self.world.number(path) {
            self.counted |= address.tell(told) && counts;
        }
    }

    fn suspend(&mut self, tree: &Tree, path: &str) {
        if tree.suspend(path) > 0 {
            self.world.post(path, |post| post.suspended = true);
        }
    }

    /// After an hour in which nothing happened.
    fn check_calm(&self, node: &NodeSnapshot) {
        let path = node.path.as_str();
        assert!(
            matches!(node.state, NodeState::Running | NodeState::Stopped),
            "{path} has found no rest: {node:?}"
        );
        // a restart that was taken back before it began is no incarnation
        assert!(u64::from(node.incarnation) <= node.restarts + 1, "{path}");
        if node.state == NodeState::Running {
            assert_eq!(node.inbox, 0, "{path} runs and leaves its messages");
        }
        if node.kind == NodeSort::Actor && node.state == NodeState::Running {
            let log = self.world.log();
            let post = log.posts[path].last().expect("it exists");
            let handled: Vec<u32> = post
                .handled
                .iter()
                .copied()
                .filter(|&n| n != ASKED)
                .collect();
            assert_eq!(handled, post.sent, "{path} lost a message");
        }
        for child in &node.children {
            self.check_calm(child);
        }
    }
}
