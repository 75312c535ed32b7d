use boatswain_supervision::TreeSnapshot;
use serde_json::json;

use super::*;
use crate::view::{FailingView, InformerView, LeaseView, ShutView};

fn actor(path: &str, state: serde_json::Value) -> serde_json::Value {
    json!({
        "path": path, "id": path.rsplit('/').next(), "kind": { "type": "actor" }, "state": state, "thread": "main", "incarnation": 2,
        "restarts": 1, "streak": 3, "significant": false, "last_exit": { "exit": "panic", "message": "boom", "location": null }, "uptime_ms": 5,
        "inbox": 0, "inbox_high_water": 0, "handled": 0, "facts": {}, "degraded": null, "children": [],
    })
}

fn overview(at_ms: u64, state: serde_json::Value) -> Overview {
    let mut root = actor("root", json!({ "state": "running" }));
    root["children"] = json!([actor("root/events", state)]);
    let tree = json!({ "root": root, "left_behind": [], "tasks": 1 });
    let tree: TreeSnapshot = serde_json::from_value(tree).expect("a tree");
    Overview {
        at_ms,
        health: Health::default(),
        process: Default::default(),
        actions: false,
        tree,
        events: Vec::new(),
        controllers: Vec::new(),
        informers: Vec::new(),
        leases: Vec::new(),
    }
}

fn judged(seen: &Overview, memory: &mut Memory) -> Health {
    judge(seen, Vec::new(), &History::default(), memory)
}

fn of_leases(leases: Vec<LeaseView>) -> Vec<Trouble> {
    let seen = Overview {
        leases,
        ..overview(1_000, json!({ "state": "running" }))
    };
    judged(&seen, &mut Memory::default()).troubles
}

#[test]
fn that_nobody_leads_is_told_once_with_what_stands_in_the_way() {
    let vacant = |error: Option<&str>| LeaseView {
        vacant: true,
        error: error.map(str::to_owned),
        ..LeaseView::default()
    };
    let free = of_leases(vec![vacant(None)]);
    assert_eq!(free.len(), 1, "{free:?}");
    assert_eq!(
        free[0].what,
        "no replica is known to lead: every controller is idle"
    );
    assert_eq!(
        free[0].why,
        "the lease is free, and who claims it next begins"
    );
    let cut_off = of_leases(vec![LeaseView {
        controller: Some("fixer".into()),
        ..vacant(Some("no route"))
    }]);
    assert_eq!(cut_off.len(), 1, "{cut_off:?}");
    assert_eq!(
        (cut_off[0].what.as_str(), cut_off[0].why.as_str()),
        ("no replica is known to lead: fixer is idle", "no route")
    );
    let standby = LeaseView {
        error: Some("no route".into()),
        ..LeaseView::default()
    };
    assert_eq!(of_leases(vec![standby])[0].what, "the lease cannot be read");
}

#[test]
fn a_lease_that_cannot_be_renewed_is_named_by_its_controller() {
    let lease = |controller: Option<&str>, error: Option<&str>| LeaseView {
        controller: controller.map(str::to_owned),
        error: error.map(str::to_owned),
        leads: true,
        ..LeaseView::default()
    };
    let told = |leases: Vec<LeaseView>| {
        let troubles = of_leases(leases).into_iter();
        troubles.map(|one| (one.id, one.what)).collect::<Vec<_>>()
    };
    assert_eq!(
        told(vec![lease(None, Some("no route"))]),
        [("lease".into(), "the lease cannot be renewed".into())]
    );
    assert_eq!(
        told(vec![
            lease(Some("scaler"), None),
            lease(Some("fixer"), Some("no route")),
        ]),
        [(
            "lease:fixer".into(),
            "the lease of fixer cannot be renewed".into()
        )]
    );
}

#[test]
fn a_quiet_tree_is_well() {
    let seen = overview(1_000, json!({ "state": "running" }));
    let health = judged(&seen, &mut Memory::default());
    assert_eq!((health.level, health.troubles.len()), (Level::Ok, 0));
    assert!(health.line.starts_with("All is well"), "{}", health.line);
}

#[test]
fn what_fails_is_named_with_cause_and_since_its_first_failure() {
    let mut memory = Memory::default();
    let failing = json!({ "state": "backoff", "until_ms": 800 });
    judged(&overview(1_000, failing.clone()), &mut memory);
    // it works for a moment, then fails again
    judged(&overview(5_000, json!({ "state": "running" })), &mut memory);
    let health = judged(&overview(9_000, failing.clone()), &mut memory);
    let trouble = &health.troubles[0];
    assert_eq!(trouble.path.as_deref(), Some("root/events"));
    assert_eq!(trouble.since_ms, 1_000, "a short calm is no end");
    assert!(trouble.why.contains("boom"), "{trouble:?}");
    assert!(health.line.contains("3 times in a row"), "{}", health.line);
    judged(
        &overview(60_000, json!({ "state": "running" })),
        &mut memory,
    );
    let again = judged(&overview(61_000, failing), &mut memory);
    assert_eq!(again.troubles[0].since_ms, 61_000, "a long calm is");
}

#[test]
fn the_worst_comes_first_then_the_oldest() {
    let mut seen = overview(100_000, json!({ "state": "blocked" }));
    seen.informers.push(InformerView {
        name: "pods,*".into(),
        degraded: Some("cannot list pods: forbidden".into()),
        ..InformerView::default()
    });
    seen.controllers.push(ControllerView {
        name: "scaler".into(),
        parked: 2,
        shut: Some(ShutView {
            state: "paused".into(),
            why: "paused by ann".into(),
            since_ms: Some(70_000),
        }),
        ..ControllerView::default()
    });
    let health = judge(
        &seen,
        vec![("api-server".into(), "no answer".into())],
        &History::default(),
        &mut Memory::default(),
    );
    assert_eq!(health.level, Level::Critical);
    let what: Vec<_> = health.troubles.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(
        what,
        [
            "node:root/events",
            "ready:api-server",
            "informer:pods,*",
            "parked:scaler",
            "shut:scaler"
        ]
    );
    assert_eq!(health.troubles[4].since_ms, 70_000);
    assert_eq!(health.line, "events blocks its thread (and 4 more)");
}

#[test]
fn a_standby_is_no_trouble() {
    let mut seen = overview(1_000, json!({ "state": "running" }));
    seen.controllers.push(ControllerView {
        name: "scaler".into(),
        shut: Some(ShutView {
            state: "standby".into(),
            why: "another process leads".into(),
            since_ms: None,
        }),
        ..ControllerView::default()
    });
    assert_eq!(judged(&seen, &mut Memory::default()).level, Level::Ok);
}

#[test]
fn what_stops_everything_is_the_worst_and_what_only_passes_is_not() {
    let mut seen = overview(100_000, json!({ "state": "running" }));
    seen.leases.push(LeaseView {
        vacant: true,
        ..LeaseView::default()
    });
    seen.informers.push(InformerView {
        name: "pods,*".into(),
        degraded: Some("no answer".into()),
        ..InformerView::default()
    });
    let mut memory = Memory::default();
    let level = |health: &Health, id: &str| {
        let mut troubles = health.troubles.iter();
        troubles.find(|one| one.id == id).map(|one| one.level)
    };
    let passing = judged(&seen, &mut memory);
    assert_eq!(level(&passing, "vacant"), Some(Level::Warning));
    for at_ms in [110_000, 120_000, 130_001] {
        seen.at_ms = at_ms;
        judged(&seen, &mut memory);
    }
    let lasting = judged(&seen, &mut memory);
    assert_eq!(level(&lasting, "vacant"), Some(Level::Critical));
    let gone = vec![("api-server".into(), "no route".into())];
    let health = judge(&seen, gone, &History::default(), &mut Memory::default());
    assert_eq!(
        health.line, "the API server does not answer (and 2 more)",
        "older troubles do not hide it"
    );
}

#[test]
fn keys_that_fail_again_and_again_are_a_trouble_however_much_else_succeeds() {
    let mut seen = overview(100_000, json!({ "state": "running" }));
    seen.controllers.push(ControllerView {
        name: "scaler".into(),
        failing: Some(FailingView {
            count: 2,
            key: "shop/web".into(),
            error: "403 Forbidden".into(),
            since_ms: 40_000,
        }),
        ..ControllerView::default()
    });
    let health = judged(&seen, &mut Memory::default());
    assert_eq!(health.level, Level::Warning);
    assert_eq!(health.line, "2 keys of scaler fail again and again");
    let trouble = &health.troubles[0];
    assert_eq!(trouble.why, "shop/web: 403 Forbidden");
    assert_eq!(trouble.since_ms, 40_000);
}

#[test]
fn a_standby_that_is_paused_is_worth_a_word() {
    let mut seen = overview(1_000, json!({ "state": "running" }));
    seen.controllers.push(ControllerView {
        name: "scaler".into(),
        paused: true,
        shut: Some(ShutView {
            state: "standby".into(),
            why: "this process does not lead; and paused by ann".into(),
            since_ms: None,
        }),
        ..ControllerView::default()
    });
    let health = judged(&seen, &mut Memory::default());
    assert_eq!(health.level, Level::Notice);
    assert!(
        health.line.starts_with("scaler is paused"),
        "{}",
        health.line
    );
}
