//! What is bounded, contained and repeatable.

use super::*;
use crate::store::IndexSpec;

#[test]
fn a_slow_indexer_coalesces_instead_of_queueing() {
    run(|options| async {
        let server = Server::default();
        for number in 0..10 {
            server.put(&format!("web-{number}"), json!({}));
        }
        let mut rig = Rig::start(&server, options).await;
        rig.fresh().await;
        rig.hear();
        rig.core.stall(true);
        for round in 0..500 {
            server.put(&format!("web-{}", round % 10), json!({"round": round}));
            server.put(&format!("brief-{round}"), json!({}));
            server.delete(&format!("brief-{round}"));
            rig.clock.sleep(Duration::from_millis(1)).await;
        }
        rig.pass(30).await;
        let before = rig.core.status(rig.clock.now());
        assert!(before.pending.0 <= 10 + 500, "{before:?}");
        let snapshot = rig.tree.snapshot().root.unwrap();
        assert!(
            snapshot.children.iter().all(|child| child.inbox < 3),
            "{snapshot:#?}"
        );
        rig.core.stall(false);
        rig.actors
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .1
            .tell(crate::indexer::actor::HandFull);
        rig.caught_up().await;
        let heard = rig.hear();
        assert_eq!(
            heard.len(),
            10,
            "one update per key, and nothing of what came and went: {heard:?}"
        );
        rig.stop().await;
    });
}

#[test]
fn a_stalled_indexer_makes_the_server_wait_before_memory_grows() {
    run(|options| async {
        let server = Server::default();
        server.fill(5000);
        let rig = Rig::stalled(&server, options).await;
        rig.pass(5).await;
        let (pending, _) = rig.core.status(rig.clock.now()).pending;
        assert!(pending <= 1024 + 64, "{pending} keys of 5000 are pending");
        assert!(
            server.requests("list").len() < 5,
            "later pages are not even asked for"
        );
        rig.core.stall(false);
        rig.actors
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .1
            .tell(crate::indexer::actor::HandFull);
        rig.fresh().await;
        assert_eq!(rig.lister.list_objects().unwrap().len(), 5000);
        rig.stop().await;
    });
}

#[test]
fn an_index_that_panics_costs_no_actor_its_life() {
    run(|options| async {
        let server = Server::default();
        server.put("a", json!({"on": "n1"}));
        let rig = Rig::start(&server, options).await;
        rig.core
            .add_index(IndexSpec::closure("bad", |_| panic!("as asked")));
        rig.core.add_index(IndexSpec::path("spec.on"));
        rig.fresh().await;
        server.put("b", json!({"on": "n1"}));
        rig.caught_up().await;
        assert_eq!(
            rig.lister.keys_by_index("spec.on", "n1").unwrap(),
            [key("a"), key("b")]
        );
        assert_eq!(rig.restarts(), 0);
        assert!(rig.core.status(rig.clock.now()).counters.unindexed >= 2);
        rig.stop().await;
    });
}

#[test]
fn lists_take_turns_at_a_shared_gate() {
    run(|options| async {
        let server = Server::default();
        let gate = Arc::new(tokio::sync::Semaphore::new(1));
        let held = gate.clone().acquire_owned().await.unwrap();
        let rig = Rig::with(
            &server,
            options,
            InformerOptions {
                lists: Some(gate.clone()),
                ..paged()
            },
        )
        .await;
        rig.pass(60).await;
        assert!(server.requests("list").is_empty());
        drop(held);
        rig.fresh().await;
        assert_eq!(gate.available_permits(), 1);
        rig.stop().await;
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = || {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let out = lines.clone();
        testing::run(11, |options| async move {
            let server = Server::default();
            for _ in 0..5 {
                server.fault("watch", Fault::Answer(String::new()));
            }
            let rig = Rig::start(&server, options).await;
            let start = rig.clock.now();
            for _ in 0..4000 {
                rig.clock.sleep(Duration::from_millis(10)).await;
                let watches = server.requests("watch").len();
                let mut lines = out.lock().unwrap();
                if lines.last().is_none_or(|(count, _)| *count != watches) {
                    lines.push((watches, rig.clock.now() - start));
                }
            }
            rig.stop().await;
        });
        Arc::try_unwrap(lines).unwrap().into_inner().unwrap()
    };
    let first = trace();
    assert!(first.len() > 3);
    assert_eq!(first, trace());
}
