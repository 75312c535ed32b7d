//! Children made from a template.

use super::{HOUR, SECOND, end};
use crate::scripted::{Begin, Do, World};
use crate::testing::{assert_clean, run};
use crate::{
    Backoff, Dynamic, Exit, Restart, Shutdown, SpecError, StartError, Strategy, SupervisorSpec,
    Tree, TreeOptions,
};

async fn pool(world: &World, options: &TreeOptions) -> (Tree, Dynamic<(String, Vec<Begin>)>) {
    let template = world.clone();
    let (spec, pool) =
        SupervisorSpec::dynamic("root", move |(id, begins): (String, Vec<Begin>)| {
            template
                .child(&id, begins)
                .shutdown(Shutdown::Timeout(10 * SECOND))
        });
    (Tree::start(spec, options.clone()).await.unwrap(), pool)
}

#[test]
fn dynamic_children_neither_start_nor_stop_one_after_the_other() {
    run(1, async |options| {
        let world = World::default();
        let (tree, pool) = pool(&world, &options).await;
        let begun = options.clock.now();
        let slow = |n: u32| pool.start((format!("slow-{n}"), vec![Begin::HoldStart(SECOND)]));
        let started = futures::future::join_all((0..100).map(slow)).await;
        assert!(started.iter().all(Result::is_ok));
        assert_eq!(
            options.clock.now() - begun,
            SECOND,
            "each took a second, all together"
        );
        for n in 0..100 {
            world.at(&format!("slow-{n}")).tell(Do::Refuse);
        }
        let begun = options.clock.now();
        let observer = tree.observer();
        tree.stop(HOUR).await.unwrap();
        assert_eq!(
            options.clock.now() - begun,
            10 * SECOND,
            "each had ten seconds, all together"
        );
        assert_clean(&observer);
    });
}

#[test]
fn a_dynamic_child_that_fails_to_start_or_is_there_already_concerns_only_who_started_it() {
    run(1, async |options| {
        let world = World::default();
        let (tree, pool) = pool(&world, &options).await;
        pool.start(("a".to_owned(), vec![])).await.unwrap();
        let error = pool.start(("a".to_owned(), vec![])).await.unwrap_err();
        assert!(
            matches!(error, StartError::Spec(SpecError::Duplicate { .. })),
            "{error:?}"
        );
        let error = pool
            .start(("b".to_owned(), vec![Begin::PanicInMake]))
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::Failed { .. }), "{error:?}");
        assert_eq!(tree.snapshot().root.unwrap().children.len(), 1);
        pool.stop("a").await.unwrap();
        assert!(pool.stop("a").await.is_err());
        end(tree).await;
        assert!(pool.start(("c".to_owned(), vec![])).await.is_err());
    });
}

#[test]
fn finished_dynamic_children_leave_nothing_behind() {
    run(1, async |options| {
        let world = World::default();
        let template = world.clone();
        let (spec, pool) = SupervisorSpec::dynamic("root", move |id: String| {
            template.child(&id, vec![]).restart(Restart::Transient)
        });
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        for n in 0..100 {
            let id = format!("job-{n}");
            pool.start(id.clone()).await.unwrap();
            assert_eq!(world.at(&id).ask(Do::Stop).await, Ok(0));
            options.clock.sleep(SECOND).await;
        }
        let snapshot = tree.snapshot();
        assert_eq!(
            (snapshot.root.unwrap().children.len(), snapshot.tasks),
            (0, 1)
        );
        end(tree).await;
    });
}

#[test]
fn too_many_failures_of_dynamic_children_end_their_supervisor_and_its_next_life_has_none() {
    run(1, async |options| {
        let world = World::default();
        let template = world.clone();
        let (pool_spec, pool) = SupervisorSpec::dynamic("pool", move |id: &str| {
            template.child(id, vec![]).backoff(Backoff::none())
        });
        let root = SupervisorSpec::new("root", Strategy::OneForOne);
        let tree = Tree::start(root, options.clone()).await.unwrap();
        tree.add_child("root", crate::ChildSpec::supervisor(pool_spec))
            .await
            .unwrap();
        pool.start("a").await.unwrap();
        pool.start("b").await.unwrap();
        for _ in 0..6 {
            let _ = world.at("a").ask(Do::Panic("again")).await;
        }
        options.clock.sleep(SECOND).await;
        let snapshot = tree.snapshot();
        let pool_node = snapshot.find("root/pool").unwrap();
        assert!(
            matches!(pool_node.last_exit, Some(Exit::Escalated { .. })),
            "{pool_node:?}"
        );
        assert!(pool_node.children.is_empty());
        // the handle is still good
        pool.start("c").await.unwrap();
        assert_eq!(world.at("c").ask(Do::Count).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn a_dynamic_supervisor_with_children_from_the_start_is_refused() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::SimpleOneForOne, &["a"], |_, child| child);
        let error = Tree::start(spec, options).await.unwrap_err();
        assert!(error.to_string().contains("from a template"), "{error}");
    });
}
