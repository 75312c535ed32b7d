//! Faults reported of other informers, and what happens here instead.

use super::*;

fn relists(rig: &Rig, reason: &str) -> u64 {
    rig.core
        .status(rig.clock.now())
        .counters
        .relists
        .get(reason)
        .copied()
        .unwrap_or_default()
}

#[test]
fn a_watch_that_is_cut_resumes_from_the_last_version_without_a_list() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.pass(20).await;
        server.drop_watches();
        server.put("b", json!({}));
        server.delete("a");
        rig.caught_up().await;
        rig.fresh().await;
        assert_eq!(rig.hear(), ["created default/b@2"]);
        assert_eq!(server.requests("list").len(), 1);
        assert!(server.requests("watch")[1].contains("resourceVersion=1&"));
        rig.stop().await;
    });
}

#[test]
fn objects_that_vanish_in_a_gap_are_told_as_deleted_with_their_last_known_state() {
    run(|options| async {
        let server = Server::default();
        for name in ["a", "b", "c"] {
            server.put(name, json!({}));
        }
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        rig.pass(20).await;
        server.silently(|server| {
            server.delete("a");
            server.delete("b");
            server.put("b", json!({"again": true}));
        });
        server.cut_and_compact();
        rig.caught_up().await;
        let mut heard = rig.hear();
        heard.sort();
        assert_eq!(
            heard,
            [
                "created default/b@6",
                "vanished default/a@1",
                "vanished default/b@2"
            ]
        );
        assert_eq!(relists(&rig, "expired"), 1);
        assert_eq!(
            server.requests("list")[1],
            "resourceVersion=3&resourceVersionMatch=NotOlderThan"
        );
        rig.stop().await;
    });
}

#[test]
fn a_relist_of_unchanged_objects_tells_nobody_anything() {
    run(|options| async {
        let server = Server::default();
        server.fill(300);
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        for round in 1..4 {
            rig.pass(20).await;
            server.cut_and_compact();
            rig.until("listed again", |rig| {
                relists(rig, "expired") == round && rig.core.fresh()
            })
            .await;
        }
        assert_eq!(relists(&rig, "expired"), 3);
        assert!(rig.hear().is_empty());
        assert_eq!(rig.core.status(rig.clock.now()).counters.unchanged, 900);
        rig.stop().await;
    });
}

#[test]
fn a_server_that_ends_every_watch_at_once_is_asked_less_and_less() {
    run(|options| async {
        let server = Server::default();
        let rig = {
            for _ in 0..10_000 {
                server.fault("watch", Fault::Answer(String::new()));
            }
            Rig::start(&server, options).await
        };
        rig.pass(3600).await;
        let watches = server.requests("watch").len();
        assert!((60..140).contains(&watches), "{watches} watches in an hour");
        assert_eq!(server.requests("list").len(), 1);
        rig.stop().await;
    });
}

#[test]
fn a_forbidden_resource_is_named_with_its_verb_and_retried_slowly() {
    run(|options| async {
        let server = Server::default();
        for _ in 0..1000 {
            server.fault(
                "list",
                Fault::Refuse(
                    403,
                    "Forbidden",
                    json!({"message": "deployments.apps is forbidden: User \"x\" cannot list"}),
                ),
            );
        }
        let rig = Rig::start(&server, options).await;
        rig.pass(600).await;
        let degraded = rig.core.degraded().unwrap();
        assert_eq!(
            (degraded.verb, degraded.cause),
            ("list", TroubleCause::Forbidden)
        );
        let text = degraded.to_string();
        assert!(text.starts_with("cannot list deployments.apps in all namespaces: not allowed; grant the verbs list and watch"), "{text}");
        assert!(text.contains("User \"x\" cannot list"));
        assert!((10..30).contains(&server.requests("list").len()));
        assert!(matches!(
            rig.lister.list(),
            Err(ReadError::NotSynced { .. })
        ));
        let snapshot = rig.tree.snapshot().root.unwrap();
        let shown = snapshot
            .children
            .iter()
            .find(|child| child.id == "reflector")
            .unwrap();
        assert_eq!(shown.degraded.as_deref(), Some(text.as_str()));
        assert_eq!(
            shown.restarts, 0,
            "a server that says no is no failure of an actor"
        );
        rig.stop().await;
    });
}

#[test]
fn a_kind_that_does_not_exist_yet_is_waited_for_and_said_so() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        for _ in 0..20 {
            server.fault("list", Fault::Refuse(404, "NotFound", json!({})));
        }
        let rig = Rig::start(&server, options).await;
        rig.pass(30).await;
        let text = rig.core.degraded().unwrap().to_string();
        assert!(text.contains("waiting for its CRD"), "{text}");
        assert_eq!(
            rig.core.status(rig.clock.now()).state,
            InformerState::Waiting
        );
        rig.fresh().await;
        assert_eq!(rig.core.degraded(), None);
        assert_eq!(rig.lister.list().unwrap().len(), 1);
        rig.stop().await;
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_told_in_one_line_and_recovered_from() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        for _ in 0..5 {
            server.fault("list", Fault::Unreachable);
        }
        let rig = Rig::start(&server, options).await;
        rig.pass(1).await;
        let text = rig.core.degraded().unwrap().to_string();
        assert!(
            text.contains("cannot be reached") && text.contains("connection refused"),
            "{text}"
        );
        rig.fresh().await;
        rig.stop().await;
    });
}

#[test]
fn one_bad_object_is_set_aside_by_name_and_the_others_go_on() {
    run(|options| async {
        let server = Server::default();
        server.put("good", json!({}));
        server.put_raw("bad", json!({"metadata": {"generation": "not a number"}}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        assert_eq!(rig.lister.list().unwrap().len(), 1);
        assert!(matches!(
            rig.lister.get(&key("bad")),
            Err(ReadError::Undecodable(_))
        ));
        assert_eq!(rig.hear(), ["created default/good@1"]);
        assert_eq!(rig.core.status(rig.clock.now()).unreadable[0].0, key("bad"));

        server.put_raw("bad", json!({"metadata": {"generation": 2}}));
        rig.until("readable", |rig| rig.lister.get(&key("bad")).is_ok())
            .await;
        assert_eq!(rig.hear(), ["created default/bad@3"]);

        server.put_raw("bad", json!({"metadata": {"generation": "broken again"}}));
        rig.until("set aside", |rig| rig.lister.get(&key("bad")).is_err())
            .await;
        server.put("good", json!({"more": 1}));
        rig.until("going on", |rig| {
            rig.core
                .low_water()
                .is_some_and(|version| version.to_string() == "5")
        })
        .await;
        server.delete("bad");
        rig.until("gone", |rig| rig.lister.get(&key("bad")) == Ok(None))
            .await;
        assert_eq!(
            rig.hear(),
            ["updated default/good@5 from 1", "vanished default/bad@3"]
        );
        assert_eq!(server.requests("list").len(), 1);
        rig.stop().await;
    });
}

#[test]
fn an_object_above_the_limit_is_set_aside_by_name() {
    run(|options| async {
        let server = Server::default();
        server.put("small", json!({}));
        server.put("big", json!({"text": "x".repeat(2000)}));
        let rig = Rig::with(
            &server,
            options,
            InformerOptions {
                max_object: 1000,
                ..paged()
            },
        )
        .await;
        rig.fresh().await;
        server.put("big", json!({"text": "y".repeat(2000)}));
        server.put("small", json!({"more": 1}));
        rig.until("going on", |rig| {
            rig.state()
                .get("small")
                .is_some_and(|version| version == "4")
        })
        .await;
        let error = rig.lister.get(&key("big")).unwrap_err().to_string();
        assert!(
            error.contains("larger than the limit of 1000 bytes"),
            "{error}"
        );
        rig.stop().await;
    });
}

#[test]
fn an_event_that_cannot_be_understood_lists_again_and_is_not_passed_over() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let rig = Rig::start(&server, options).await;
        rig.fresh().await;
        server.silently(|server| {
            server.put("b", json!({}));
        });
        server.say("{\"type\":\"ADDED\",\"object\":{oops");
        rig.caught_up().await;
        assert_eq!(relists(&rig, "unreadable"), 1);
        rig.stop().await;
    });
}

#[test]
fn a_list_that_breaks_off_deletes_nothing_and_is_read_again() {
    run(|options| async {
        let server = Server::default();
        for name in ["a", "b", "c"] {
            server.put(name, json!({}));
        }
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        let item = r#"{"metadata":{"name":"a","namespace":"default","uid":"uid-1","resourceVersion":"1"}}"#;
        let half = format!(r#"{{"metadata":{{"resourceVersion":"3"}},"items":[{item},"#);
        server.fault("list", Fault::Break(half.clone()));
        server.fault("list", Fault::Answer(half));
        server.fault("list", Fault::Answer("<html>login</html>".into()));
        rig.core.relist();
        rig.until("listed again", |rig| {
            server.requests("list").len() >= 5 && rig.core.fresh()
        })
        .await;
        assert_eq!(rig.lister.list().unwrap().len(), 3);
        assert!(rig.hear().is_empty());
        rig.stop().await;
    });
}

#[test]
fn pages_that_expire_are_read_again_as_one() {
    run(|options| async {
        let server = Server::default();
        for number in 0..10 {
            server.put(&format!("web-{number}"), json!({}));
        }
        server.compact_after_page();
        let rig = Rig::with(
            &server,
            options,
            InformerOptions {
                page_size: 4,
                ..paged()
            },
        )
        .await;
        rig.fresh().await;
        let lists = server.requests("list");
        assert_eq!(lists.len(), 3, "{lists:?}");
        assert!(
            lists[1].contains("continue=") && !lists[2].contains("limit="),
            "{lists:?}"
        );
        assert_eq!(rig.state(), server.state());
        rig.stop().await;
    });
}

#[test]
fn a_call_without_an_answer_ends_after_its_timeout() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.fault("list", Fault::Hang);
        server.fault("watch", Fault::Hang);
        let rig = Rig::start(&server, options).await;
        rig.pass(31).await;
        assert!(
            rig.core
                .degraded()
                .unwrap()
                .to_string()
                .contains("no answer within 30 s")
        );
        rig.fresh().await;
        assert!(rig.core.status(rig.clock.now()).last_event_age.unwrap() < Duration::from_secs(60));
        rig.stop().await;
    });
}

#[test]
fn a_watch_that_says_nothing_is_found_out_and_what_it_hid_is_caught_up_with() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.fault("watch", Fault::Mute);
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        server.put("b", json!({}));
        rig.pass(170).await;
        assert!(rig.hear().is_empty());
        rig.pass(20).await;
        assert_eq!(rig.hear(), ["created default/b@2"]);
        let status = rig.core.status(rig.clock.now());
        assert_eq!((status.counters.probes, status.counters.lists), (1, 1));
        rig.stop().await;
    });
}

#[test]
fn a_watch_the_server_does_not_end_in_time_is_ended() {
    run(|options| async {
        let server = Server::default();
        for _ in 0..9 {
            server.fault("watch", Fault::Mute);
        }
        let rig = Rig::with(
            &server,
            options,
            InformerOptions {
                silence: Duration::from_secs(3600),
                ..paged()
            },
        )
        .await;
        rig.pass(3600).await;
        assert!((5..10).contains(&server.requests("watch").len()));
        rig.stop().await;
    });
}

#[test]
fn a_server_restored_from_a_backup_is_followed_back_and_said_so() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.put("b", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.pass(20).await;
        let backup = server.version();
        server.put("b", json!({"later": 1}));
        server.put("c", json!({}));
        rig.caught_up().await;
        rig.hear();
        server.restore(backup);
        // a watch at a version of the future is accepted, and silent
        rig.caught_up().await;
        assert_eq!(
            rig.hear(),
            ["updated default/b@2 from 3", "vanished default/c@4"]
        );
        assert_eq!(
            (
                relists(&rig, "history"),
                rig.core.status(rig.clock.now()).counters.histories
            ),
            (1, 1)
        );
        server.put("d", json!({}));
        rig.caught_up().await;
        assert_eq!(rig.core.low_water().unwrap().to_string(), "3");
        rig.stop().await;
    });
}

#[test]
fn bookmarks_move_the_low_water_mark_and_the_place_to_resume_from() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.pass(20).await;
        server.silently(|server| {
            // another kind moves the server's version
            server.put("x", json!({}));
            server.delete("x");
        });
        server.bookmark();
        rig.until("moved", |rig| {
            rig.core.low_water().unwrap().to_string() == "3"
        })
        .await;
        server.drop_watches();
        rig.until("resumed", |_| server.requests("watch").len() == 2)
            .await;
        rig.fresh().await;
        assert!(server.requests("watch")[1].contains("resourceVersion=3&"));
        assert_eq!(server.requests("list").len(), 1);
        rig.stop().await;
    });
}

#[test]
fn a_consistent_list_can_be_asked_for_and_waited_for_through_crashes() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        server.silently(|server| {
            server.put("b", json!({}));
        });
        server.fault("list", Fault::Hang);
        let number = rig.core.relist();
        rig.pass(1).await;
        rig.actors.lock().unwrap().as_ref().unwrap().2.tell(Crash);
        rig.core.wait_relisted(number).await;
        assert_eq!(rig.state(), server.state());
        assert_eq!(rig.hear(), ["created default/b@2"]);
        assert_eq!(server.requests("list")[1..], ["limit=500", "limit=500"]);
        rig.stop().await;
    });
}
