use std::collections::BTreeMap;

use crate::{Exit, NodeSnapshot, NodeSort, NodeState, Strategy, TreeSnapshot};

fn actor(path: &str) -> NodeSnapshot {
    let id = path.rsplit('/').next().unwrap().to_owned();
    NodeSnapshot {
        path: path.to_owned(),
        id,
        kind: NodeSort::Actor,
        state: NodeState::Running,
        thread: "main".to_owned(),
        incarnation: 1,
        restarts: 0,
        last_exit: None,
        last_exit_ms: None,
        uptime_ms: 0,
        inbox: 0,
        inbox_high_water: 0,
        handled: 0,
        facts: BTreeMap::new(),
        degraded: None,
        significant: false,
        streak: 0,
        children: Vec::new(),
        virtual_children: None,
    }
}

fn supervisor(path: &str, strategy: Strategy, children: Vec<NodeSnapshot>) -> NodeSnapshot {
    NodeSnapshot {
        kind: NodeSort::Supervisor {
            strategy,
            window: None,
        },
        children,
        ..actor(path)
    }
}

#[test]
fn a_tree_is_drawn_with_its_branches_and_in_columns() {
    let panic = Exit::Panic {
        message: "assertion failed\n  left: 1".to_owned(),
        location: Some("pump.rs:7:5".to_owned()),
    };
    let pump = NodeSnapshot {
        state: NodeState::Backoff { until_ms: 97 },
        restarts: 12,
        inbox: 3,
        handled: 1024,
        last_exit: Some(panic),
        ..actor("root/engine/pump")
    };
    let valve = NodeSnapshot {
        degraded: Some("leaks".to_owned()),
        ..actor("root/engine/valve")
    };
    let engine = supervisor("root/engine", Strategy::RestForOne, vec![pump, valve]);
    let left = NodeSnapshot {
        state: NodeState::Stopping,
        ..actor("root/old")
    };
    let snapshot = TreeSnapshot {
        root: Some(supervisor(
            "root",
            Strategy::OneForOne,
            vec![engine, actor("root/ölstand")],
        )),
        left_behind: vec![left],
        tasks: 6,
    };
    let expected = "\
ACTOR                     STATE          RESTARTS  INBOX  HANDLED  THREAD  LAST EXIT
root (one for one)        running               0      0        0  main
├─ engine (rest for one)  running               0      0        0  main
│  ├─ pump                back in 97 ms        12      3     1024  main    panicked at pump.rs:7:5: assertion failed…
│  └─ valve               running               0      0        0  main    degraded: leaks
└─ ölstand                running               0      0        0  main
left behind: root/old     stopping              0      0        0  main
";
    assert_eq!(snapshot.to_string(), expected);
}

#[test]
fn a_last_exit_takes_no_more_than_its_share_of_the_line() {
    let message = "x".repeat(10_000);
    let root = NodeSnapshot {
        last_exit: Some(Exit::Panic {
            message,
            location: None,
        }),
        ..actor("root")
    };
    let snapshot = TreeSnapshot {
        root: Some(root),
        left_behind: Vec::new(),
        tasks: 1,
    };
    assert!(
        snapshot
            .to_string()
            .lines()
            .all(|line| line.chars().count() < 160)
    );
    assert!(snapshot.to_string().ends_with("x…\n"));
}

#[test]
fn without_a_tree_there_is_only_the_head() {
    let snapshot = TreeSnapshot {
        root: None,
        left_behind: Vec::new(),
        tasks: 0,
    };
    assert_eq!(snapshot.to_string().lines().count(), 1);
}
