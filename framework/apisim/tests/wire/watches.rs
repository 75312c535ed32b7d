use std::time::Duration;

use boatswain_apisim::{ApiSim, Matcher, Options};
use futures::{StreamExt, stream::BoxStream};
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::PostParams, client::Body};
use serde_json::{Value, json};

use crate::scene::{client, map, send, sim, sim_with};

#[allow(clippy::disallowed_methods, reason = "virtual time is read as it is")]
fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// The events of a watch, one per item; ends where the body ends.
async fn watch(client: &Client, query: &str) -> BoxStream<'static, Value> {
    let request = Request::get(format!("{PATH}?watch=true&{query}"))
        .body(Body::empty())
        .expect("a request");
    let response = client.send(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    let lines = response.into_body().into_data_stream().flat_map(|chunk| {
        let chunk = chunk.unwrap_or_default();
        let lines: Vec<Value> = chunk
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).expect("JSON"))
            .collect();
        futures::stream::iter(lines)
    });
    lines.boxed()
}

async fn put(client: &Client, name: &str, value: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut object = map(name, &[("k", value)]);
    object.metadata.labels = Some([("value".to_owned(), value.to_owned())].into());
    match maps.get_opt(name).await.expect("an answer") {
        None => drop(
            maps.create(&PostParams::default(), &object)
                .await
                .expect("created"),
        ),
        Some(_) => drop(
            maps.replace(name, &PostParams::default(), &object)
                .await
                .expect("replaced"),
        ),
    }
}

fn told(event: &Value) -> (String, String) {
    let part = |pointer: &str| {
        event
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (part("/type"), part("/object/metadata/name"))
}

async fn next(events: &mut BoxStream<'static, Value>) -> (String, String) {
    told(&events.next().await.expect("an event"))
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

async fn silent(events: &mut BoxStream<'static, Value>, seconds: u64) {
    let outcome = tokio::time::timeout(Duration::from_secs(seconds), events.next()).await;
    assert!(outcome.is_err(), "expected silence, got {outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_came_after_its_version_in_order() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    let version = sim.version();
    put(&client, "a", "2").await;
    let mut events = watch(&client, &format!("resourceVersion={version}")).await;
    put(&client, "b", "1").await;
    Api::<ConfigMap>::default_namespaced(client.clone())
        .delete("a", &Default::default())
        .await
        .expect("deleted");
    assert_eq!(next(&mut events).await, pair("MODIFIED", "a"));
    assert_eq!(next(&mut events).await, pair("ADDED", "b"));
    let deleted = events.next().await.expect("an event");
    assert_eq!(told(&deleted), pair("DELETED", "a"));
    assert_eq!(
        deleted["object"]["metadata"]["resourceVersion"],
        sim.version().to_string(),
        "at the version of the deletion"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_starts_with_what_is_there() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    let mut events = watch(&client, "").await;
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
    put(&client, "a", "2").await;
    assert_eq!(next(&mut events).await, pair("MODIFIED", "a"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_the_future_is_accepted_and_silent() {
    let sim = sim();
    let client = client(&sim);
    let mut events = watch(&client, &format!("resourceVersion={}", sim.version() + 100)).await;
    put(&client, "a", "1").await;
    silent(&mut events, 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_version_is_answered_with_expired_inside_the_stream() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    let old = sim.version();
    put(&client, "a", "2").await;
    sim.compact();
    let mut events = watch(&client, &format!("resourceVersion={old}")).await;
    let event = events.next().await.expect("an event");
    assert_eq!(
        (
            &event["type"],
            &event["object"]["code"],
            &event["object"]["reason"]
        ),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    assert!(events.next().await.is_none(), "and ends");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_overrun_expires_a_slow_watch() {
    let sim = sim_with(Options {
        watch_window: 3,
        ..Options::default()
    });
    let client = client(&sim);
    let mut events = watch(&client, &format!("resourceVersion={}", sim.version())).await;
    for value in 0..6 {
        put(&client, "a", &value.to_string()).await;
    }
    assert_eq!(
        events.next().await.expect("an event")["object"]["code"],
        410
    );
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_selection_is_deleted_for_its_watch() {
    let sim = sim();
    let client = client(&sim);
    let mut events = watch(
        &client,
        &format!("resourceVersion={}&labelSelector=value%3D1", sim.version()),
    )
    .await;
    for value in ["0", "1", "1", "2"] {
        put(&client, "a", value).await;
    }
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
    let gone = events.next().await.expect("an event");
    assert_eq!(told(&gone), pair("DELETED", "a"));
    assert_eq!(gone["object"]["data"]["k"], "1", "as it last was inside");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_at_their_interval_to_those_who_ask() {
    let sim = sim();
    let client = client(&sim);
    let from = sim.version();
    let mut asked = watch(
        &client,
        &format!("resourceVersion={from}&allowWatchBookmarks=true"),
    )
    .await;
    let mut unasked = watch(&client, &format!("resourceVersion={from}")).await;
    sim.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        .expect("created");
    let start = now();
    silent(&mut unasked, 1).await;
    let bookmark = asked.next().await.expect("a bookmark");
    assert_eq!(start.elapsed().as_secs(), 60);
    assert_eq!(
        (&bookmark["type"], &bookmark["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("ConfigMap"))
    );
    let told: u64 = bookmark["object"]["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .parse()
        .expect("a number");
    assert!(told >= from);
    silent(&mut unasked, 120).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout() {
    let client = client(&sim());
    let start = now();
    let mut events = watch(&client, "timeoutSeconds=7").await;
    assert!(events.next().await.is_none());
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_its_initial_events_with_a_marked_bookmark() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    put(&client, "b", "1").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = watch(&client, query).await;
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
    assert_eq!(next(&mut events).await, pair("ADDED", "b"));
    let mark = events.next().await.expect("a bookmark");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(
        mark["object"]["metadata"]["resourceVersion"],
        sim.version().to_string()
    );
    put(&client, "a", "2").await;
    assert_eq!(next(&mut events).await, pair("MODIFIED", "a"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_is_silent_even_of_bookmarks() {
    let sim = sim();
    let client = client(&sim);
    let future = sim.version() + 100;
    let query = format!("resourceVersion={future}&allowWatchBookmarks=true&timeoutSeconds=300");
    let mut events = watch(&client, &query).await;
    assert!(events.next().await.is_none());
}

const STREAM: &str =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[tokio::test(start_paused = true)]
async fn the_end_of_the_initial_events_can_be_withheld_while_changes_are_told() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    let hold = sim
        .faults()
        .withhold_initial_end(watches().resource("configmaps"));
    let mut events = watch(&client, STREAM).await;
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
    put(&client, "a", "2").await;
    assert_eq!(next(&mut events).await, pair("MODIFIED", "a"));
    silent(&mut events, 100).await;
    hold.release();
    let mark = events.next().await.expect("a bookmark");
    let meta = &mark["object"]["metadata"];
    assert_eq!(meta["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(meta["resourceVersion"], sim.version().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_cut_among_its_initial_events() {
    let sim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    put(&client, "b", "1").await;
    sim.faults().cut_initial_events(watches(), 1, 1);
    let mut cut = watch(&client, STREAM).await;
    assert_eq!(next(&mut cut).await, pair("ADDED", "a"));
    assert!(cut.next().await.is_none());
    let mut whole = watch(&client, STREAM).await;
    assert_eq!(next(&mut whole).await, pair("ADDED", "a"));
    assert_eq!(next(&mut whole).await, pair("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn an_older_server_refuses_streaming_lists() {
    let old = sim_with(Options {
        watch_list: false,
        ..Options::default()
    });
    let client = client(&old);
    let path = format!(
        "{PATH}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    assert_eq!(send(&client, "GET", &path, &[], Value::Null).await.0, 422);
}

fn watches() -> Matcher {
    Matcher::any().verb("watch")
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_catches_up_when_it_is_let_go() {
    let sim = sim();
    let client = client(&sim);
    let mut events = watch(&client, &format!("resourceVersion={}", sim.version())).await;
    let hold = sim.faults().stall_watches(watches().resource("configmaps"));
    put(&client, "a", "1").await;
    silent(&mut events, 100).await;
    hold.release();
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
}

#[tokio::test(start_paused = true)]
async fn dropped_watches_end_and_new_ones_do_not() {
    let sim = sim();
    let client = client(&sim);
    let mut old = watch(&client, &format!("resourceVersion={}", sim.version())).await;
    sim.faults().drop_watches();
    assert!(old.next().await.is_none());
    let mut new = watch(&client, &format!("resourceVersion={}", sim.version())).await;
    put(&client, "a", "1").await;
    assert_eq!(next(&mut new).await, pair("ADDED", "a"));
}

#[tokio::test(start_paused = true)]
async fn restoring_a_snapshot_goes_back_in_time() {
    let sim: ApiSim = sim();
    let client = client(&sim);
    put(&client, "a", "1").await;
    let (backup, then) = (sim.snapshot(), sim.version());
    put(&client, "b", "1").await;
    let mut events = watch(&client, &format!("resourceVersion={}", sim.version())).await;
    sim.restore(&backup);
    assert!(events.next().await.is_none(), "open watches end");
    assert_eq!(sim.version(), then);
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(maps.get_opt("b").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_missed_nothing_survives_a_compaction() {
    let sim = sim();
    let client = client(&sim);
    let start = sim.version();
    let mut events = watch(&client, &format!("resourceVersion={start}")).await;
    put(&client, "a", "1").await;
    assert_eq!(next(&mut events).await, pair("ADDED", "a"));
    sim.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        .expect("created");
    sim.compact();
    put(&client, "a", "2").await;
    assert_eq!(next(&mut events).await, pair("MODIFIED", "a"));
    let mut late = watch(&client, &format!("resourceVersion={start}")).await;
    let event = late.next().await.expect("an event");
    assert_eq!(
        event["object"]["code"], 410,
        "a new one may not start before it"
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whoever lists and then watches, with or without a selector, knows in the end what a new list tells.
    #[test]
    fn a_list_and_its_watch_add_up_to_a_later_list(
        before in proptest::collection::vec((0_u8..4, 0_u8..4), 0..10),
        after in proptest::collection::vec((0_u8..4, 0_u8..4), 0..20),
        selected in proptest::bool::ANY,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async move {
            let sim = sim();
            let client = client(&sim);
            let selector = if selected { "labelSelector=value%3D1" } else { "" };
            let step = async |(name, value): (u8, u8)| {
                let name = format!("m{name}");
                match value {
                    // absent already is as good as deleted
                    0 => drop(Api::<ConfigMap>::default_namespaced(client.clone()).delete(&name, &Default::default()).await),
                    value => put(&client, &name, &value.to_string()).await,
                }
            };
            let list = async || send(&client, "GET", &format!("{PATH}?{selector}"), &[], Value::Null).await.1;
            let known = |list: &Value| {
                let items = list["items"].as_array().cloned().unwrap_or_default();
                items.iter().map(|item| (item["metadata"]["name"].to_string(), item["data"]["k"].clone())).collect::<std::collections::BTreeMap<_, _>>()
            };
            for change in before {
                step(change).await;
            }
            let first = list().await;
            let (mut state, version) = (known(&first), first["metadata"]["resourceVersion"].as_str().unwrap_or_default());
            let mut events = watch(&client, &format!("{selector}&resourceVersion={version}&timeoutSeconds=5")).await;
            for change in after {
                step(change).await;
            }
            while let Some(event) = events.next().await {
                let (name, value) = (event["object"]["metadata"]["name"].to_string(), event["object"]["data"]["k"].clone());
                let known = match event["type"].as_str() {
                    Some("ADDED") => { assert_eq!(state.insert(name, value), None, "added once"); continue }
                    Some("MODIFIED") => state.insert(name, value),
                    Some("DELETED") => state.remove(&name),
                    other => panic!("unexpected {other:?}"),
                };
                assert!(known.is_some(), "only what is known changes or goes");
            }
            assert_eq!(state, known(&list().await));
        });
    }
}
