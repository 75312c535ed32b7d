use std::sync::Arc;
use std::time::Duration;

use actix::Arbiter;
use futures::FutureExt;

use super::{CAPACITY, Event, Events, Feed, Missed, What};
use crate::scripted::{Do, Gate, World, panicked};
use crate::testing::run;
use crate::{
    AskError, AutoShutdown, Backoff, ChildSpec, Clock, Exit, Failure, Restart, Shutdown, Strategy,
    SupervisorSpec, Thread, Tree,
};

const SECOND: Duration = Duration::from_secs(1);

/// What has been told so far, as `path what`, with nothing missed.
fn drain(events: &mut Events) -> Vec<Event> {
    let mut drained = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        drained.push(event.unwrap());
    }
    drained
}

fn short(events: &[Event]) -> Vec<String> {
    let short = |Event { path, what, .. }: &Event| match what {
        What::Started { incarnation } => format!("{path} started {incarnation}"),
        What::Exited {
            incarnation, exit, ..
        } => format!("{path} exited {incarnation}: {exit}"),
        What::Escalated { child, exit } => format!("{path} escalated {child}: {exit}"),
        What::Restarting { in_ms, streak } => format!("{path} restarting {streak} in {in_ms}"),
        other => format!("{path} {other:?}"),
    };
    events.iter().map(short).collect()
}

#[test]
fn a_crash_and_its_healing_are_told_in_order() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        let mut events = tree.observer().events();
        options.clock.sleep(2 * SECOND).await;
        assert_eq!(
            world.at("a").ask(Do::Panic("poison")).await,
            Err(AskError::Lost)
        );
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let told = drain(&mut events);
        let [exited, restarting, started] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(told.iter().all(|event| event.path == "root/a"));
        assert!(
            matches!(&exited.what, What::Exited { incarnation: 1, exit, uptime_ms: 2000..=2002 } if panicked("poison")(exit)),
            "{exited:?}"
        );
        let What::Restarting { in_ms, streak: 1 } = restarting.what else {
            panic!("{restarting:?}");
        };
        assert!((80..=120).contains(&in_ms), "{in_ms}");
        assert_eq!(started.what, What::Started { incarnation: 2 });

        assert_eq!(
            [restarting.seq, started.seq],
            [exited.seq + 1, exited.seq + 2]
        );
        assert_eq!(restarting.at_ms, exited.at_ms);
        assert!((in_ms..=in_ms + 2).contains(&(started.at_ms - exited.at_ms)));
        assert!((2000..=2002).contains(&(exited.at_ms - 1_704_067_200_000)));
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn siblings_of_a_group_are_told_to_restart_with_no_failure_of_their_own() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::RestForOne, &["a", "b"], |_, child| {
            child.backoff(Backoff::none())
        });
        let tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        world.at("a").tell(Do::Fail(Failure::transient("no route")));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(world.at("b").ask(Do::Count).await, Ok(1));
        assert_eq!(
            short(&drain(&mut events)),
            [
                "root/a exited 1: failed for now: no route",
                "root/b exited 1: stopped as asked",
                "root/a restarting 1 in 0",
                "root/a started 2",
                "root/b restarting 0 in 0",
                "root/b started 2"
            ]
        );
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn an_escalation_is_told_from_the_child_up_and_then_the_feed_ends() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a", "b"], |_, child| child);
        let mut tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        world.at("a").tell(Do::Fail(Failure::fatal("no schema")));
        tree.exited().await;
        assert_eq!(
            short(&drain(&mut events)),
            [
                "root/a exited 1: failed for good: no schema",
                "root escalated root/a: failed for good: no schema",
                "root/a Stopped",
                "root/b exited 1: stopped as asked",
                "root/b Stopped",
                "root exited 1: gave up because root/a failed for good: no schema",
                "root Stopped"
            ]
        );
        assert_eq!(events.next().await, None);
        assert_eq!(
            tree.observer().events().next().await,
            None,
            "a late reader waits"
        );
    });
}

#[test]
fn an_end_while_the_supervisor_itself_is_down_is_told_all_the_same() {
    run(1, async |options| {
        let world = World::default();
        let inner = world.clone();
        let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |root| {
            let inner = inner.clone();
            let middle = SupervisorSpec::new("middle", Strategy::OneForOne);
            root.add(ChildSpec::supervisor(
                middle.children(move |middle| middle.add(inner.child("a", vec![]))),
            ));
        });
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        let mut events = tree.observer().events();
        let broken = ChildSpec {
            launch: Box::new(|_| panic!("supervisor broken")),
            ..world.child("broken", vec![])
        };
        assert!(tree.add_child("root/middle", broken).await.is_err());
        options.clock.sleep(SECOND).await;
        let told = short(&drain(&mut events));
        let at = |what: &str| told.iter().position(|told| told.starts_with(what)).unwrap();
        let middle = [
            at("root/middle exited 1: panicked"),
            at("root/middle started 2"),
        ];
        let killed = at("root/middle/a exited 1: was killed");
        assert!(middle[0] < killed && killed < middle[1], "{told:?}");
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn a_slow_reader_is_told_how_many_it_missed_and_the_tree_does_not_wait() {
    run(1, async |options| {
        let world = World::default();
        let spec = world
            .root(Strategy::OneForOne, &["a"], |_, child| {
                child.backoff(Backoff::none())
            })
            .without_intensity();
        let tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        for _ in 0..600 {
            let failed = world.at("a").ask(Do::Fail(Failure::transient("again")));
            assert_eq!(failed.await, Ok(0));
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let missed = 3 * 600 - CAPACITY as u64;
        assert_eq!(events.next().await, Some(Err(Missed(missed))));
        assert_eq!(Missed(missed).to_string(), "missed 776 events");
        let mut rest = Vec::new();
        while rest.len() < CAPACITY {
            rest.push(events.next().await.unwrap().unwrap());
        }
        assert!(rest.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1));
        assert_eq!(
            rest.last().unwrap().what,
            What::Started { incarnation: 601 }
        );
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn nothing_is_built_while_nobody_listens_and_numbers_show_the_gap() {
    let (feed, clock) = (Feed::default(), Clock::system());
    let never = || -> What { unreachable!("built for nobody") };
    feed.tell(&clock, "root", never);
    let mut events = feed.listen();
    feed.tell(&clock, "root", || What::Stopped);
    assert_eq!(drain(&mut events)[0].seq, 2);
    drop(events);
    feed.tell(&clock, "root", never);
    feed.tell(&clock, "root", never);
    let mut events = feed.listen();
    feed.tell(&clock, "root", || What::Stopped);
    assert_eq!(drain(&mut events)[0].seq, 5);
}

#[test]
fn an_actor_that_is_left_behind_is_told_and_told_again_when_it_ends() {
    run(1, async |options| {
        let world = World::default();
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("blocked", &arbiter.handle());
        let spec = world.root(Strategy::OneForOne, &["a"], move |_, child| {
            child.thread(thread.clone()).shutdown(Shutdown::Brutal)
        });
        let tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        let gate = Gate::default();
        world.at("a").tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        assert!(tree.stop_child("root/a").await.is_err());
        assert_eq!(short(&drain(&mut events)), ["root/a LeftBehind"]);
        gate.open();
        arbiter.stop();
        arbiter.join().unwrap();
        assert_eq!(
            short(&drain(&mut events)),
            ["root/a exited 1: was killed", "root/a Stopped"]
        );
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn degradation_is_told_when_it_changes() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        for why in [Some("slow"), Some("slow"), None, None] {
            world.at("a").tell(Do::Degrade(why));
        }
        assert!(world.at("a").ask(Do::Count).await.is_ok());
        let told: Vec<What> = drain(&mut events)
            .into_iter()
            .map(|event| event.what)
            .collect();
        let why = |why: Option<&str>| What::Degraded {
            why: why.map(str::to_owned),
        };
        assert_eq!(told, [why(Some("slow")), why(None)]);
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn an_event_goes_through_json_and_back() {
    let event = Event {
        seq: 7,
        at_ms: 1_704_067_200_000,
        path: "root/a".to_owned(),
        what: What::Exited {
            incarnation: 2,
            exit: Exit::Stuck,
            uptime_ms: 30_000,
        },
    };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"seq":7,"at_ms":1704067200000,"path":"root/a","what":"exited","incarnation":2,"exit":{"exit":"stuck"},"uptime_ms":30000}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    let stopped = Event {
        what: What::Stopped,
        ..event
    };
    let json = serde_json::to_string(&stopped).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), stopped);
}

#[test]
fn what_an_operator_does_and_the_end_of_a_significant_child_are_told() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a", "b"], |id, child| {
            let child = child.restart(Restart::Transient);
            if id == "a" {
                child.significant()
            } else {
                child
            }
        });
        let spec = spec.auto_shutdown(AutoShutdown::AnySignificant);
        let mut tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        tree.suspend("root");
        tree.suspend("root");
        tree.resume("root/a");
        world.at("a").tell(Do::Stop);
        tree.exited().await;
        let expected = [
            "root/a Suspended",
            "root/b Suspended",
            "root/a Resumed",
            "root/a exited 1: ended normally",
            "root Concluded { child: \"root/a\" }",
            "root/a Stopped",
            "root/b exited 1: stopped as asked",
            "root/b Stopped",
            "root exited 1: stopped as asked",
            "root Stopped",
        ];
        assert_eq!(short(&drain(&mut events)), expected);
    });
}

#[test]
fn whoever_gives_up_an_actor_that_was_given_up_before_tells_nothing_new() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec, options).await.unwrap();
        let mut events = tree.observer().events();
        let node = tree.root_node().find("root/a").unwrap();
        tree.registry().leave_behind(Arc::clone(&node));
        tree.registry().leave_behind(node);
        assert_eq!(tree.snapshot().left_behind.len(), 1);
        drop(tree);
        let mut left = 0;
        while let Some(event) = events.next().await {
            left += usize::from(event.unwrap().what == What::LeftBehind);
        }
        assert_eq!(left, 1);
    });
}

#[test]
fn events_read_as_sentences() {
    let event = |path: &str, what| Event {
        seq: 1,
        at_ms: 0,
        path: path.to_owned(),
        what,
    };
    let exit = Exit::Panic {
        message: "overboard".to_owned(),
        location: Some("ship.rs:1:2".to_owned()),
    };
    let exited = What::Exited {
        incarnation: 1,
        exit: exit.clone(),
        uptime_ms: 7,
    };
    let child = "root/a".to_owned();
    for (event, text) in [
        (
            event("root/a", exited),
            "root/a panicked at ship.rs:1:2: overboard",
        ),
        (
            event("root/a", What::Started { incarnation: 2 }),
            "root/a started again, incarnation 2",
        ),
        (
            event("root", What::Escalated { child, exit }),
            "root gives up because root/a panicked at ship.rs:1:2: overboard",
        ),
        (
            event("root/a", What::Blocked { for_ms: 30_000 }),
            "root/a has blocked its thread for 30000 ms",
        ),
    ] {
        assert_eq!(event.to_string(), text);
    }
}
