use boatswain_supervision::TreeSnapshot;
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use super::*;
use crate::{
    terminal::panel::Shown,
    view::{Health, InformerView, KeyRow, Keys, LeaseView, Parked, ParkedRow, Trouble},
};

fn screen() -> Screen {
    let node = |path: &str, state| {
        json!({
            "path": path, "id": path.rsplit('/').next(), "kind": { "type": "actor" }, "state": state, "thread": "main",
            "incarnation": 2, "restarts": 3, "streak": 3, "significant": false, "last_exit": { "exit": "panic", "message": "boom",
            "location": null }, "last_exit_ms": 61_000, "uptime_ms": 5, "inbox": 0, "inbox_high_water": 0, "handled": 0, "facts": {},
            "degraded": null, "children": [],
        })
    };
    let mut root = node("root", json!({ "state": "running" }));
    let failing = json!({ "state": "backoff", "until_ms": 4200 });
    root["children"] = json!([node("root/events", failing)]);
    let tree = json!({ "root": root, "left_behind": [], "tasks": 2 });
    let tree: TreeSnapshot = serde_json::from_value(tree).expect("a tree");
    Screen::new(Overview {
        at_ms: 200_000,
        health: Health {
            level: Level::Warning,
            line: "root/events failed 3 times in a row".into(),
            troubles: vec![Trouble {
                level: Level::Warning,
                id: "node".into(),
                what: "root/events is stuck".into(),
                why: "panicked: boom".into(),
                since_ms: 20_000,
                path: None,
            }],
        },
        process: Default::default(),
        actions: false,
        tree,
        events: Vec::new(),
        controllers: vec![ControllerView {
            name: "scaler".into(),
            parked: 7,
            ..ControllerView::default()
        }],
        informers: vec![InformerView {
            name: "pods,*".into(),
            degraded: Some("cannot list pods: forbidden".into()),
            relists: [("expired".into(), 3)].into(),
            ..InformerView::default()
        }],
        leases: vec![LeaseView {
            identity: "one".into(),
            holder: Some("other".into()),
            transitions: 12,
            ..LeaseView::default()
        }],
    })
}

fn shown(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, screen)).expect("drawn");
    terminal.backend().to_string()
}

fn holds(shown: &str, all: &[&str]) {
    for words in all {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn the_screen_says_what_is_stuck_why_and_since_when() {
    let mut screen = screen();
    screen.scroll(1000);
    let told = shown(&mut screen, 110, 16);
    holds(
        &told,
        &[
            "! root/events failed 3 times in a row",
            "for 3m: root/events is stuck — panicked: boom",
            "scaler",
            "P99",
            "back in 4s",
            "↻3 1m ago panicked: boom",
        ],
    );
    screen.lost("nobody answers".into());
    holds(&shown(&mut screen, 110, 16), &["✕ nobody answers"]);
}

#[test]
fn a_narrow_screen_has_what_matters_most_and_a_tiny_one_does_no_harm() {
    let mut screen = screen();
    let told = shown(&mut screen, 44, 16);
    holds(
        &told,
        &["scaler", "READY", "PARKED", "works", "1 tree", "back in 4s"],
    );
    screen.overview.informers[0].name = format!("{}.example.com,*", "x".repeat(80));
    screen.turn(Panel::Informers);
    let told = shown(&mut screen, 44, 16);
    holds(&told, &["…", ".example.com,* degraded"]);
    screen.turn(Panel::Tree);
    assert!(!told.contains("P99") && !told.contains("WAIT"), "{told}");
    for (width, height) in [(1, 1), (2, 40), (200, 2), (20, 5)] {
        shown(&mut screen, width, height);
    }
}

#[test]
fn keys_parked_keys_informers_and_the_lease_have_panels() {
    let mut screen = screen();
    screen.turn(Panel::Informers);
    holds(
        &shown(&mut screen, 160, 16),
        &[
            "pods,*",
            "degraded",
            "cannot list pods: forbidden",
            "expired 3",
            "held by other, changed hands 12 times",
            "stands by",
        ],
    );
    screen.turn(Panel::Keys);
    holds(&shown(&mut screen, 110, 16), &["asking …"]);
    let overview = screen.overview.clone();
    let keys = Keys {
        keys: vec![KeyRow {
            controller: "scaler".into(),
            key: "shop/web".into(),
            state: "waiting".into(),
            next_ms: Some(205_000),
            failures: 2,
            // what a terminal obeys
            why: Some("no\u{1b}[2Jroute".into()),
            ..KeyRow::default()
        }],
        more: true,
    };
    screen.show(overview.clone(), Shown::Keys(keys));
    let told = shown(&mut screen, 130, 16);
    holds(
        &told,
        &[
            "shop/web",
            "waiting",
            "next in 5s · failed 2×",
            "there are more",
        ],
    );
    assert!(!told.contains('\u{1b}'), "{told:?}");
    screen.turn(Panel::Parked);
    let parked = Parked {
        parked: vec![ParkedRow {
            controller: "scaler".into(),
            key: "shop/cart".into(),
            reason: "gave up".into(),
            failures: 16,
            since_ms: 140_000,
            next_ms: 0,
        }],
        total: 9,
    };
    screen.show(overview, Shown::Parked(parked));
    holds(
        &shown(&mut screen, 130, 16),
        &[
            "scaler shop/cart",
            "for 1m",
            "failed 16× · gave up",
            "8 more",
        ],
    );
}

#[test]
fn panels_go_round_in_both_directions() {
    let all = Panel::ALL;
    assert_eq!(all.map(Panel::next).map(Panel::before), all);
    assert_eq!(Panel::Informers.next(), Panel::Tree);
}
