//! Answers that are not what was asked for, and kinds that go.

use super::*;

/// What is wrong after `fault` befell the next request with `verb`.
async fn trouble(verb: &'static str, fault: Fault, options: TreeOptions) -> (String, Rig) {
    let server = Server::default();
    server.put("a", json!({}));
    server.fault(verb, fault);
    let rig = Rig::start(&server, options).await;
    rig.until("trouble", |rig| rig.core.degraded().is_some())
        .await;
    assert_eq!(server.requests(verb).len(), 1);
    (rig.core.degraded().unwrap().to_string(), rig)
}

/// kube-rs/kube#1986
#[test]
fn a_page_of_a_proxy_with_code_200_is_neither_a_list_nor_a_watch() {
    for verb in ["list", "watch"] {
        run(move |options| async move {
            let page = Fault::Foreign("content-type", "text/html; charset=utf-8");
            let (text, rig) = trouble(verb, page, options).await;
            assert!(text.contains("no JSON but text/html"), "{text}");
            rig.fresh().await;
            let lists = rig.server.requests("list").len();
            assert_eq!(
                lists,
                if verb == "list" { 2 } else { 1 },
                "a watch is resumed"
            );
            rig.stop().await;
        });
    }
}

/// kube-rs/kube#2079
#[test]
fn a_compressed_watch_is_refused_and_named_instead_of_taken_for_events() {
    run(|options| async {
        let packed = Fault::Foreign("content-encoding", "gzip");
        let (text, rig) = trouble("watch", packed, options).await;
        assert!(text.contains("no JSON but gzip"), "{text}");
        rig.fresh().await;
        rig.stop().await;
    });
}

#[test]
fn a_refusal_whose_words_never_come_is_known_by_its_code() {
    run(|options| async {
        let (text, rig) = trouble("list", Fault::Speechless(503), options).await;
        assert!(text.contains("answered 503"), "{text}");
        rig.fresh().await;
        rig.stop().await;
    });
}

#[test]
fn a_list_that_trickles_for_ever_is_given_up_after_five_minutes() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.fault("list", Fault::Trickle(options.clock.clone()));
        let rig = Rig::start(&server, options).await;
        rig.pass(295).await;
        assert!(!rig.core.synced() && server.requests("list").len() == 1);
        rig.pass(10).await;
        assert!(rig.core.fresh() && server.requests("list").len() == 2);
        rig.stop().await;
    });
}

/// kubernetes/kubernetes#79610
#[test]
fn a_kind_that_is_deleted_parks_its_mirror_which_keeps_what_it_has_and_its_return_revives_it() {
    run(|options| async {
        let server = Server::default();
        server.put("stays", json!({}));
        server.put("goes", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        rig.pass(20).await;
        for _ in 0..200 {
            server.fault("list", Fault::Refuse(404, "NotFound", json!({})));
        }
        server.fault("watch", Fault::Refuse(404, "NotFound", json!({})));
        server.drop_watches();
        server.delete("goes");
        rig.pass(3600).await;
        let status = rig.core.status(rig.clock.now());
        assert_eq!(status.state, InformerState::Parked);
        assert!(status.synced && !status.fresh);
        assert_eq!(status.degraded.unwrap().cause, TroubleCause::Missing);
        assert_eq!(
            rig.lister.list().unwrap().len(),
            2,
            "that it is gone for good nobody knows"
        );
        assert!(rig.hear().is_empty());
        let asked = server.requests("list").len();
        assert!((100..200).contains(&asked), "{asked}");
        rig.fresh().await;
        assert_eq!(rig.hear(), ["vanished default/goes@2"]);
        assert_eq!(
            rig.core.status(rig.clock.now()).state,
            InformerState::Watching
        );
        rig.stop().await;
    });
}

#[test]
fn where_lists_queue_a_beginner_steps_aside_first_and_one_that_is_alone_does_not_wait() {
    run(|options| async {
        let server = Server::default();
        let gate = Arc::new(tokio::sync::Semaphore::new(1));
        let held = gate.clone().acquire_owned().await.unwrap();
        let crowded = InformerOptions {
            lists: Some(gate),
            ..paged()
        };
        let rig = Rig::with(&server, options.clone(), crowded).await;
        rig.clock.sleep(Duration::from_millis(1)).await;
        drop(held);
        rig.clock.sleep(Duration::from_millis(1)).await;
        assert!(server.requests("list").is_empty());
        rig.pass(1).await;
        assert!(rig.core.fresh());
        rig.stop().await;
        let alone = Rig::start(&server, options).await;
        alone.clock.sleep(Duration::from_millis(1)).await;
        assert!(alone.core.fresh());
        alone.stop().await;
    });
}

#[test]
fn options_that_mean_never_are_written_as_the_longest_times_there_are() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.fault("watch", Fault::Mute);
        let never = InformerOptions {
            answer: Duration::MAX,
            silence: Duration::MAX,
            spread: Duration::MAX,
            ..paged()
        };
        let mut rig = Rig::with(&server, options, never).await;
        rig.fresh().await;
        rig.pass(7200).await;
        assert!(rig.core.fresh() && rig.core.degraded().is_none());
        assert_eq!(rig.hear(), ["created default/a@1"]);
        rig.stop().await;
    });
}

#[test]
fn pages_that_go_round_in_circles_are_given_up_and_the_list_is_read_as_one() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let page = |next: &str| {
            json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": []}).to_string()
        };
        for next in ["x", "y", "x"] {
            server.fault("list", Fault::Answer(page(next)));
        }
        let rig = Rig::start(&server, options).await;
        rig.until("trouble", |rig| rig.core.degraded().is_some())
            .await;
        let text = rig.core.degraded().unwrap().to_string();
        assert!(text.contains("lead back"), "{text}");
        rig.fresh().await;
        let lists = server.requests("list");
        assert_eq!(lists.len(), 4);
        assert!(!lists[3].contains("limit"), "{}", lists[3]);
        rig.stop().await;
    });
}

#[test]
fn a_list_of_another_kind_is_refused_and_deletes_nothing() {
    // servers write the kind of a list first where its items do not say theirs
    let says = r#"{"items":[{"kind":"Secret","metadata":{"name":"stranger","resourceVersion":"1"}}],"kind":"SecretList","metadata":{"resourceVersion":"9"}}"#;
    let is_said = r#"{"kind":"SecretList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"stranger","resourceVersion":"1"}}]}"#;
    for strange in [says, is_said] {
        run(|options| async move {
            let server = Server::default();
            server.put("a", json!({}));
            server.fault("list", Fault::Answer(strange.to_string()));
            let mut rig = Rig::start(&server, options).await;
            rig.until("trouble", |rig| rig.core.degraded().is_some())
                .await;
            assert!(!rig.core.synced(), "nothing is known of its own kind");
            let text = rig.core.degraded().unwrap().to_string();
            assert!(text.contains("of another kind"), "{text}");
            rig.fresh().await;
            server.fault("list", Fault::Answer(strange.to_string()));
            rig.core.relist();
            rig.pass(60).await;
            assert!(rig.core.fresh());
            assert_eq!(rig.hear(), ["created default/a@1"]);
            rig.stop().await;
        });
    }
}

#[test]
fn a_watch_of_another_kind_brings_no_object_and_is_followed_by_a_list() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        for kind in ["ADDED", "DELETED"] {
            let event = json!({"type": kind, "object": {"kind": "Secret", "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"}}});
            server.say(&event.to_string());
            rig.pass(60).await;
            assert!(rig.core.fresh());
        }
        assert!(rig.hear().is_empty());
        assert_eq!(rig.lister.list().unwrap().len(), 1);
        assert_eq!(server.requests("list").len(), 3);
        rig.stop().await;
    });
}

#[test]
fn blank_lines_that_keep_a_connection_do_not_pass_for_words_of_the_server() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        server.silently(|server| {
            server.put("b", json!({}));
        });
        for _ in 0..8 {
            rig.pass(25).await;
            server.say("");
        }
        assert_eq!(rig.hear(), ["created default/b@2"]);
        assert_eq!(server.requests("list").len(), 2, "one of them the probe");
        rig.stop().await;
    });
}

#[test]
fn a_version_far_ahead_does_not_blind_a_watch_to_what_follows() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({}));
        server.put("b", json!({}));
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        let far = json!({"type": "MODIFIED", "object": {"metadata": {"name": "a", "namespace": "default", "uid": "uid-1", "resourceVersion": u64::MAX.to_string()}}});
        server.say(&far.to_string());
        rig.pass(1).await;
        server.put("b", json!({"replicas": 2}));
        rig.pass(60).await;
        assert!(rig.core.fresh());
        assert_eq!(rig.lister.list().unwrap().len(), 2);
        let versions: Vec<_> = rig
            .core
            .reader()
            .list(None)
            .iter()
            .map(|object| object.meta().resource_version.to_string())
            .collect();
        assert_eq!(versions, ["1", "3"], "as the server has them");
        server.put("a", json!({"replicas": 3}));
        rig.pass(1).await;
        assert!(
            rig.hear()
                .contains(&"updated default/a@4 from 1".to_owned())
        );
        rig.stop().await;
    });
}
