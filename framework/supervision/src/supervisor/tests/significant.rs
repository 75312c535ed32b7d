//! Children whose end is the end of their supervisor.

use super::{HOUR, SECOND, end};
use crate::scripted::{Do, World};
use crate::testing::{assert_clean, run};
use crate::{AutoShutdown, ChildSpec, Exit, Restart, Strategy, SupervisorSpec, Tree};

fn spec(world: &World, auto_shutdown: AutoShutdown, restart: Restart) -> SupervisorSpec {
    let spec = world.root(
        Strategy::OneForOne,
        &["a", "b", "c"],
        move |id, child| match id {
            "c" => child,
            _ => child.restart(restart).significant(),
        },
    );
    spec.auto_shutdown(auto_shutdown)
}

#[test]
fn the_first_or_the_last_significant_child_that_ends_on_its_own_ends_the_supervisor() {
    for restart in [Restart::Transient, Restart::Temporary] {
        run(1, async |options| {
            let world = World::default();
            let any = spec(&world, AutoShutdown::AnySignificant, restart);
            let mut tree = Tree::start(any, options.clone()).await.unwrap();
            world.news();
            let marked = |path: &str| tree.snapshot().find(path).map(|node| node.significant);
            assert_eq!(
                (marked("root/a"), marked("root/c")),
                (Some(true), Some(false))
            );
            world.at("a").tell(Do::Stop);
            assert_eq!(tree.exited().await, Exit::Shutdown);
            assert_eq!(world.news(), ["-a", "-c", "-b"]);
            assert_clean(&tree.observer());

            let all = spec(&world, AutoShutdown::AllSignificant, restart);
            let mut tree = Tree::start(all, options.clone()).await.unwrap();
            world.at("b").tell(Do::Stop);
            options.clock.sleep(HOUR).await;
            world.news();
            world.at("a").tell(Do::Stop);
            assert_eq!(tree.exited().await, Exit::Shutdown);
            assert_eq!(world.news(), ["-a", "-c"]);
            assert_clean(&tree.observer());
        });
    }
}

#[test]
fn a_crash_a_stop_by_hand_and_the_end_of_others_end_no_supervisor() {
    run(1, async |options| {
        let world = World::default();
        let any = spec(&world, AutoShutdown::AnySignificant, Restart::Transient);
        let tree = Tree::start(any, options.clone()).await.unwrap();
        world.at("a").tell(Do::Panic("not an end"));
        world.at("c").tell(Do::Stop);
        options.clock.sleep(HOUR).await;
        tree.terminate_child("root/b").await.unwrap();
        tree.stop_child("root/a").await.unwrap();
        options.clock.sleep(HOUR).await;
        assert_eq!(world.at("c").ask(Do::Count).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn a_significant_supervisor_that_ended_ends_the_one_above() {
    run(1, async |options| {
        let world = World::default();
        let below = world.clone();
        let root = SupervisorSpec::new("root", Strategy::OneForOne)
            .auto_shutdown(AutoShutdown::AnySignificant)
            .children(move |children| {
                let inner = spec(&below, AutoShutdown::AnySignificant, Restart::Transient);
                let inner = ChildSpec::supervisor(inner)
                    .restart(Restart::Transient)
                    .significant();
                children.add(ChildSpec {
                    id: "inner".to_owned(),
                    ..inner
                });
            });
        let mut tree = Tree::start(root, options.clone()).await.unwrap();
        world.at("a").tell(Do::Stop);
        options.clock.sleep(SECOND).await;
        assert_eq!(tree.exited().await, Exit::Shutdown);
        assert_clean(&tree.observer());
    });
}

#[test]
fn a_significant_child_that_makes_no_sense_is_refused() {
    run(1, async |options| {
        let world = World::default();
        for (spec, why) in [
            (
                spec(&world, AutoShutdown::AnySignificant, Restart::Permanent),
                "never ends on its own; make it transient",
            ),
            (
                spec(&world, AutoShutdown::Never, Restart::Transient),
                "say `auto_shutdown`",
            ),
        ] {
            let error = Tree::start(spec, options.clone()).await.unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    });
}
