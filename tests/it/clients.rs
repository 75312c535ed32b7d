//! The clients of a manager: their credentials and their limits.

use std::{fs, num::NonZeroU32, sync::Arc, time::Duration};

use boatswain::{
    ClientLimits, Context, Controller, Options as BoatswainOptions, Outcome, ReconcileError,
    Reconciler,
};
use boatswain_apisim::{ApiSim, Options};
use boatswain_tests::{Crew, World, eventually};
use k8s_openapi::api::core::v1::Namespace;

/// Reads its object from the server, and tells of it, ten times a second.
struct Busy;

impl Reconciler<Namespace> for Busy {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        space: Arc<Namespace>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        cx.get_live::<Namespace>(cx.key()).await?;
        cx.event(space.as_ref(), "Read", "it is there");
        Ok(Outcome::RequeueAfter(Duration::from_millis(100)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_rotated_and_revoked_while_a_controller_runs_fails_no_run() {
    let sim = ApiSim::new(Options::default());
    let server = sim.serve(("127.0.0.1", 0)).await.expect("a free port");
    let folder = tempfile::tempdir().expect("a folder");
    let (config, token) = (
        folder.path().join("kubeconfig"),
        folder.path().join("token"),
    );
    let text = server.kubeconfig("-");
    let from_file = format!("tokenFile: {}", token.display());
    fs::write(&config, text.replace("token: -", &from_file)).expect("written");
    sim.users().add_token("old", "admin");
    fs::write(&token, "old").expect("written");

    let busy = Controller::<Namespace>::named("busy").reconciler(|_| Busy);
    let crew = Crew::start(&config, None, vec![busy]).await;
    crew.ready().await;
    let runs = || crew.metric("controller_reconcile_total", &[r#"result="requeue_after""#]);
    let before = runs();
    sim.users().add_token("new", "admin");
    fs::write(&token, "new").expect("written");
    sim.users().revoke_token("old");
    sim.faults().drop_watches();
    eventually("it goes on", async || {
        let (ready, page) = crew.observer().ready();
        if runs() > before + 20.0 && ready {
            Ok(())
        } else {
            Err((runs(), page))
        }
    })
    .await;
    assert_eq!(
        crew.metric("controller_reconcile_total", &[r#"result="error""#]),
        0.0
    );
    assert_eq!(crew.metric("event_recorder_dropped_total", &[]), 0.0);
    let refused = sim.audit().iter().filter(|entry| entry.code == 401).count();
    assert!(refused > 0, "the old token was never refused");
    crew.stop().await;
    server.stop().await;
}

/// Tells of its object, and then asks for it for as long as it may.
struct Greedy;

impl Reconciler<Namespace> for Greedy {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        space: Arc<Namespace>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        cx.event(space.as_ref(), "Read", "again and again");
        loop {
            cx.get_live::<Namespace>(cx.key()).await?;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_uses_up_its_requests_does_not_keep_its_events_waiting() {
    let world = World::sim().await;
    let one = NonZeroU32::MIN;
    let options = BoatswainOptions {
        limits: ClientLimits {
            qps: one,
            burst: one,
            ..ClientLimits::default()
        },
        grace: Duration::ZERO,
        ..BoatswainOptions::default()
    };
    let greedy = Controller::<Namespace>::named("greedy").reconciler(|_| Greedy);
    let crew = Crew::start_with(options, world.kubeconfig(), None, vec![greedy]).await;
    eventually("what all of them tell is written", async || {
        let written = crew.metric("event_recorder_written_total", &[r#"verb="create""#]);
        if written >= 3.0 { Ok(()) } else { Err(written) }
    })
    .await;
    let requests = world.requests().await;
    let told = requests
        .iter()
        .rposition(|request| request.resource == "events");
    let before = &requests[..told.expect("they were told")];
    let reads = before
        .iter()
        .filter(|request| request.verb == "get" && request.resource == "namespaces");
    assert!(reads.count() < 5, "they waited for reads");
    crew.stop().await;
}
