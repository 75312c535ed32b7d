//! Children that come and go, and those that are refused.

use super::{HOUR, SECOND, end, nested};
use crate::scripted::{Begin, Do, World, panicked};
use crate::testing::run;
use crate::{
    AskError, Backoff, ChildSpec, Intensity, SpecError, StartError, StopError, Strategy,
    SupervisorSpec, Tree,
};

#[test]
fn children_come_and_go_while_the_tree_runs() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(nested(&world, vec![]), options).await.unwrap();
        world.news();
        tree.add_child("root/middle", world.child("late", vec![]))
            .await
            .unwrap();
        assert_eq!(world.at("late").ask(Do::Count).await, Ok(1));
        assert!(tree.snapshot().find("root/middle/late").is_some());

        tree.stop_child("root/middle/leaf").await.unwrap();
        assert_eq!(world.news(), ["+late", "-leaf"]);
        assert!(tree.snapshot().find("root/middle/leaf").is_none());
        assert!(!world.at("leaf").is_open());
        let gone = StopError::NotFound {
            path: "root/middle/leaf".to_owned(),
        };
        assert_eq!(tree.stop_child("root/middle/leaf").await, Err(gone));

        tree.stop_child("root/middle").await.unwrap();
        assert_eq!(world.news(), ["-late", "-twin"]);
        end(tree).await;
        assert_eq!(world.news(), ["-after", "-before"]);
    });
}

#[test]
fn a_child_in_backoff_can_be_stopped_at_once() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        assert_eq!(
            world.at("a").ask(Do::Panic("down")).await,
            Err(AskError::Lost)
        );
        let asked = options.clock.now();
        tree.stop_child("root/a").await.unwrap();
        assert_eq!(options.clock.now(), asked);
        assert_eq!(tree.observer().alive(), ["root"]);
        end(tree).await;
    });
}

#[test]
fn a_child_that_cannot_be_added_is_refused_with_the_reason() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        let refused = async |supervisor: &str, spec: ChildSpec| {
            tree.add_child(supervisor, spec).await.unwrap_err()
        };
        let no_supervisor = |path: &str| StartError::NoSupervisor {
            path: path.to_owned(),
        };
        assert_eq!(
            refused("root/x", world.child("b", vec![])).await,
            no_supervisor("root/x")
        );
        assert_eq!(
            refused("root/a", world.child("b", vec![])).await,
            no_supervisor("root/a")
        );
        let duplicate = SpecError::Duplicate {
            supervisor: "root".to_owned(),
            child: "a".to_owned(),
        };
        assert_eq!(
            refused("root", world.child("a", vec![])).await,
            duplicate.into()
        );
        let slow = Backoff::new(HOUR, HOUR, 1.0, 0.0).unwrap();
        let error = refused("root", world.child("b", vec![]).backoff(slow)).await;
        assert!(error.to_string().contains("so it never would"), "{error}");
        let error = refused("root", world.child("b", vec![Begin::PanicInStarted])).await;
        let StartError::Failed { path, exit } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(path, "root/b");
        assert!(panicked("started badly")(exit));
        assert!(tree.snapshot().find("root/b").is_none());
        end(tree).await;
    });
}

#[test]
fn a_tree_that_contradicts_itself_does_not_start() {
    run(1, async |options| {
        let world = World::default();
        let refused = async |spec: SupervisorSpec| {
            let error = Tree::start(spec, options.clone()).await.unwrap_err();
            assert!(matches!(error, StartError::Spec(_)), "{error:?}");
            error.to_string()
        };
        let error = refused(world.root(Strategy::OneForOne, &["a", "a"], |_, child| child)).await;
        assert!(error.contains("ids must be unique"), "{error}");
        let error = refused(world.root(Strategy::OneForOne, &[""], |_, child| child)).await;
        assert!(error.contains("empty id"), "{error}");
        let error = refused(world.root(Strategy::OneForOne, &["a/b"], |_, child| child)).await;
        assert!(error.contains("use another character"), "{error}");
        let error = refused(SupervisorSpec::new("", Strategy::OneForOne)).await;
        assert!(error.contains("empty id"), "{error}");
        let inner = world.clone();
        let below = move || {
            let inner = inner.clone();
            let spec = SupervisorSpec::new("below", Strategy::OneForOne);
            spec.children(move |children| {
                children.add(inner.child("a", vec![]).significant());
            })
        };
        let deep = SupervisorSpec::new("root", Strategy::OneForOne)
            .children(move |children| children.add(ChildSpec::supervisor(below())));
        let error = refused(deep).await;
        assert!(
            error.starts_with("root/below: \"a\" is significant"),
            "{error}"
        );
        let never = world
            .root(Strategy::OneForOne, &["a"], |_, child| child)
            .intensity(Intensity::new(12, 60 * SECOND));
        let error = refused(never).await;
        assert!(error.contains("lengthen the period"), "{error}");
        assert_eq!(world.news(), Vec::<String>::new());
    });
}
