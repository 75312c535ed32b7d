use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use super::{Census, assert_clean, run};
use crate::scripted::{Do, World};
use crate::{ChildSpec, Shutdown, Strategy, Tree, TreeOptions};

async fn start(world: &World, options: TreeOptions) -> Tree {
    let patient = |_: &str, child: ChildSpec| child.shutdown(Shutdown::Infinity);
    Tree::start(world.root(Strategy::OneForOne, &["a"], patient), options)
        .await
        .unwrap()
}

fn complaint(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn a_test_that_leaks_a_tree_fails_and_says_what_is_left() {
    let complaint = complaint(|| {
        run(1, async |options| {
            std::mem::forget(start(&World::default(), options).await)
        });
    });
    assert!(
        complaint.contains("2 tasks, alive: root, root/a"),
        "{complaint}"
    );
}

#[test]
fn a_test_may_end_by_dropping_its_tree() {
    run(1, async |options| {
        let world = World::default();
        let tree = start(&world, options).await;
        assert_eq!(world.at("a").ask(Do::Refuse).await, Ok(0));
        drop(tree);
    });
}

#[test]
fn a_tree_that_runs_is_not_clean() {
    run(1, async |options| {
        let tree = start(&World::default(), options).await;
        let observer = tree.observer();
        assert!(complaint(|| assert_clean(&observer)).contains("root/a"));
        tree.stop(Duration::from_secs(1)).await.unwrap();
        assert_clean(&observer);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_still_runs_is_named_and_one_that_ended_is_not() {
    run(1, async |options| {
        let census = Census::take();
        let tree = start(&World::default(), options).await;
        let observer = tree.observer();
        tree.stop(Duration::from_secs(1)).await.unwrap();

        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("census-witness".to_owned());
        let (named, is_named) = mpsc::channel();
        let thread = thread.spawn(move || {
            named.send(()).unwrap();
            ended.recv()
        });
        let thread = thread.unwrap();
        is_named.recv().unwrap();
        let ours = |name: &str| name == "census-witness";
        let complaint = complaint(|| census.assert_clean(&observer, ours));
        assert!(complaint.contains("census-witness"), "{complaint}");
        Census::take().assert_clean(&observer, ours);
        drop(end);
        let _ = thread.join().unwrap();
        census.assert_clean(&observer, ours);
    });
}
