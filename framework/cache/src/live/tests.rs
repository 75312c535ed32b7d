use super::{Live, LiveCause};
use crate::key::Key;
use crate::kind::Kind;
use boatswain_apisim::{ApiSim, Matcher, Rejection};
use boatswain_supervision::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use std::time::{Duration, SystemTime};

fn server() -> (ApiSim, Live<ConfigMap>) {
    let sim = ApiSim::default();
    let live = live(&sim, Kind::of::<ConfigMap>());
    (sim, live)
}

fn live(sim: &ApiSim, kind: Kind) -> Live<ConfigMap> {
    let client = kube::Client::new(sim.service(), "default");
    Live::new(client, kind, Clock::paused(SystemTime::UNIX_EPOCH))
}

fn key() -> Key {
    Key::new(Some("default"), "tides")
}

fn tides(high: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tides", "namespace": "default"}, "data": {"high": high}})
}

async fn cause(live: &Live<ConfigMap>, key: &Key) -> LiveCause {
    live.get_live(key).await.unwrap_err().cause
}

#[tokio::test(start_paused = true)]
async fn a_live_read_sees_what_was_written_before_it_and_absence_is_no_error() {
    let (sim, live) = server();
    assert_eq!(live.get_live(&key()).await, Ok(None));
    let written = sim.create(tides("noon")).unwrap();
    let object = live.get_live(&key()).await.unwrap().unwrap();
    assert_eq!(object.data.as_ref().unwrap()["high"], "noon");
    let object = live.get_live_object(&key()).await.unwrap().unwrap();
    assert_eq!(
        object.meta().resource_version.to_string(),
        written["metadata"]["resourceVersion"]
    );
    let managed = object.path("metadata.managedFields[*].manager");
    assert!(managed.is_some(), "a live read leaves nothing out");
    // by quorum: no version is offered that a cache of the server's could answer
    assert!(sim.audit().iter().all(|audit| audit.query.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_is_not_taken_for_an_absent_object() {
    let (sim, _) = server();
    let kind = Kind {
        group: "harbour.example".into(),
        version: "v1".into(),
        kind: "Buoy".into(),
        plural: "buoys".into(),
        namespaced: true,
    };
    let cause = cause(&live(&sim, kind), &key()).await;
    assert!(matches!(cause, LiveCause::NoSuchResource(_)), "{cause:?}");
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_way_of_a_live_read_is_told_apart() {
    let (sim, live) = server();
    let get = || Matcher::any().verb("get").resource("configmaps");
    let reject = |rejection| sim.faults().reject(get(), rejection);
    reject(Rejection::new(401));
    assert!(matches!(
        cause(&live, &key()).await,
        LiveCause::Unauthorized(_)
    ));
    reject(Rejection::new(403));
    let error = live.get_live(&key()).await.unwrap_err();
    assert!(matches!(error.cause, LiveCause::Forbidden(_)) && !error.is_transient());
    assert!(error.to_string().contains("configmaps default/tides"));
    reject(Rejection::new(429).retry_after(7));
    let error = live.get_live(&key()).await.unwrap_err();
    assert!(error.is_transient());
    assert!(
        matches!(error.cause, LiveCause::Throttled { retry_after, .. } if retry_after == Some(Duration::from_secs(7)))
    );
    reject(Rejection::new(503));
    let error = live.get_live(&key()).await.unwrap_err();
    assert!(
        error.is_transient() && matches!(error.cause, LiveCause::Refused { code: 503, .. }),
        "{error}"
    );
    sim.faults().unreachable(true);
    let error = live.get_live(&key()).await.unwrap_err();
    assert!(error.is_transient() && matches!(error.cause, LiveCause::Unreachable(_)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_a_live_read_its_timeout_and_no_more() {
    let (sim, live) = server();
    let _held = sim.faults().hang(Matcher::any());
    let begun = live.clock.now();
    let live = live.timeout(Duration::from_secs(3));
    assert_eq!(
        cause(&live, &key()).await,
        LiveCause::TimedOut(Duration::from_secs(3))
    );
    assert_eq!(live.clock.now() - begun, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_no_object_can_have_is_not_asked_for() {
    let (sim, live) = server();
    for key in [
        Key::new(Some("default"), ".."),
        Key::new(Some("default"), "a/../b"),
        Key::new(Some("default"), "a?watch=1"),
        Key::new(Some("default"), ""),
        Key::new(Some("de%66ault"), "a"),
        Key::new(Some("default"), "a b\n"),
        Key::new(None, "a"),
    ] {
        let cause = cause(&live, &key).await;
        assert!(
            matches!(cause, LiveCause::InvalidKey(_)),
            "{key}: {cause:?}"
        );
    }
    assert!(sim.audit().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_an_error_that_quotes_no_value() {
    let (sim, live) = server();
    sim.create(tides("noon")).unwrap();
    sim.faults().corrupt(
        "",
        "configmaps",
        "default",
        "tides",
        json!({"data": "hunter2"}),
    );
    let error = live.get_live(&key()).await.unwrap_err();
    assert!(matches!(error.cause, LiveCause::Undecodable(_)));
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(
        live.get_live_object(&key()).await.unwrap().is_some(),
        "its bytes can be had"
    );
}
