//! Whether the API server is there, as the probes and the tree say it.

use std::{convert::Infallible, sync::Arc};

use boatswain::{Context, Controller, Outcome, Reconciler, Running};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Stage, end, retries::secs};

struct Idler;

impl Reconciler<ConfigMap> for Idler {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }
}

async fn start(stage: &Stage) -> Running {
    let controller = Controller::<ConfigMap>::named("idler");
    let running = stage.start(controller.reconciler(|_| Idler)).await;
    stage.clock.sleep(secs(5)).await;
    running
}

/// What asks for no resource, such as `/version`.
fn version() -> Matcher {
    Matcher::any().resource("")
}

/// Why the actor that looks after the connection does not work as it should.
fn degraded(running: &Running) -> Option<String> {
    let tree = running.observer().snapshot();
    let root = tree.root.expect("a tree");
    let mut children = root.children.into_iter();
    let node = children.find(|node| node.id == "connection");
    node.expect("an actor").degraded
}

#[test]
fn a_server_that_hangs_is_found_out_though_every_stream_stays_open_and_one_that_wakes_too() {
    Stage::play(71, |stage| async move {
        let running = start(&stage).await;
        assert_eq!(
            (running.observer().ready().0, degraded(&running)),
            (true, None)
        );

        let frozen = [
            stage.sim.faults().hang(Matcher::any()),
            stage.sim.faults().stall_watches(Matcher::any()),
        ];
        stage.clock.sleep(secs(21)).await;
        let (ready, page) = running.observer().ready();
        assert!(!ready, "{page}");
        assert!(
            page.contains("[-]api-server failed: cannot reach"),
            "{page}"
        );
        assert!(page.contains("no answer within 10s"), "{page}");
        let why = degraded(&running).expect("degraded");
        assert!(why.contains("no answer within 10s"), "{why}");

        drop(frozen);
        stage.clock.sleep(secs(31)).await;
        let (ready, page) = running.observer().ready();
        assert!(ready, "{page}");
        assert_eq!(degraded(&running), None);
        end(running).await;
    });
}

#[test]
fn a_server_that_refuses_to_tell_its_version_is_there_and_one_that_fails_is_not() {
    for (code, there) in [
        (403, true),
        (404, true),
        (429, true),
        (401, false),
        (503, false),
    ] {
        Stage::play(72, |stage| async move {
            let refusal = Rejection::new(code).times(u32::MAX);
            stage.sim.faults().reject(version(), refusal);
            let running = start(&stage).await;
            let (_, page) = running.observer().ready();
            let ok = page.contains("[+]api-server ok");
            assert_eq!(ok, there, "{code}: {page}");
            end(running).await;
        });
    }
}
