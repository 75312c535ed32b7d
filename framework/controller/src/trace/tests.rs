use std::{net::SocketAddr, sync::mpsc, time::Instant};

use axum::{Router, routing::post};
use boatswain_supervision::Clock;
use http::StatusCode;
use kube::client::Body;
use tokio::net::TcpListener;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};
use tracing::{Instrument as _, instrument::WithSubscriber as _};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::client::{MeasureLayer, Requests};

/// A collector that answers `code`; what it is told is received.
async fn collector(code: StatusCode) -> (Traces, mpsc::Receiver<Bytes>) {
    let (tell, told) = mpsc::channel();
    let take = async move |body: Bytes| {
        let _ = tell.send(body);
        code
    };
    let router = Router::new().route("/v1/traces", post(take));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (traces(address), told)
}

fn traces(address: SocketAddr) -> Traces {
    let endpoint = format!("http://{address}/v1/traces");
    Traces::to(Some(endpoint), "the-service".to_owned()).expect("an exporter")
}

/// Ends it as a process does, away from every runtime.
async fn end(traces: Traces) -> Duration {
    let begun = Clock::system().now();
    let ended = tokio::task::spawn_blocking(move || drop(traces)).await;
    ended.expect("ended");
    since(begun)
}

fn since(begun: Instant) -> Duration {
    Clock::system().now().saturating_duration_since(begun)
}

fn times(part: &[u8], of: &[u8]) -> usize {
    of.windows(part.len()).filter(|w| *w == part).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_and_its_requests_are_one_trace_that_the_server_and_the_collector_are_told() {
    let (traces, told) = collector(StatusCode::OK).await;
    let subscriber = tracing_subscriber::registry().with(traces.layer());
    let (say, said) = mpsc::channel();
    let server = service_fn(move |request: Request<Body>| {
        let _ = say.send(request.headers().get("traceparent").cloned());
        async { Ok::<_, BoxError>(Response::new(())) }
    });
    let requests = Requests::to("http://server");
    let client = MeasureLayer::new(requests, Clock::system()).layer(server);
    async {
        let request = Request::get("/api/v1/pods").body(Body::empty());
        let span = tracing::info_span!("reconcile", key = "shop/web");
        let sent = client.oneshot(request.expect("a request"));
        sent.instrument(span).await.expect("an answer");
    }
    .with_subscriber(subscriber)
    .await;

    let parent = said.recv().expect("a request").expect("a traceparent");
    let parts: Vec<_> = parent.to_str().expect("text").split('-').collect();
    let ["00", trace, span, "01"] = parts[..] else {
        panic!("no traceparent: {parts:?}")
    };
    let trace = u128::from_str_radix(trace, 16).expect("hexadecimal");
    let span = u64::from_str_radix(span, 16).expect("hexadecimal");
    end(traces).await;
    let batch = told.try_recv().expect("a batch");
    for word in [
        "the-service",
        "reconcile",
        "shop/web",
        "request",
        "/api/v1/pods",
    ] {
        assert!(times(word.as_bytes(), &batch) > 0, "{word} is not told");
    }
    let spans = times(&trace.to_be_bytes(), &batch);
    assert_eq!(spans, 2, "two spans of one trace");
    assert_eq!(times(&span.to_be_bytes(), &batch), 1, "the server's parent");
}

#[test]
fn a_request_outside_of_every_trace_says_nothing_and_is_no_trace_of_its_own() {
    let subscriber = tracing_subscriber::registry();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut request = Request::new(());
    assert!(of_request(&mut request).is_none());
    // there are spans, but nobody traces them
    let _span = tracing::info_span!("reconcile").entered();
    assert!(of_request(&mut request).is_none());
    assert!(request.headers().is_empty(), "{request:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_refuses_or_never_answers_holds_up_neither_spans_nor_the_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = (traces(silent.local_addr().expect("an address")), silent);
    let (refusing, _told) = collector(StatusCode::SERVICE_UNAVAILABLE).await;
    for (traces, _listener) in [(refusing, None), (silent.0, Some(silent.1))] {
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        let begun = Clock::system().now();
        tracing::subscriber::with_default(subscriber, || {
            // more than any queue takes
            for _ in 0..10_000 {
                tracing::info_span!("reconcile").in_scope(|| {});
            }
        });
        assert!(since(begun) < PATIENCE, "spans wait for the collector");
        let took = end(traces).await;
        assert!(took < PATIENCE, "the end took {took:?}");
    }
}

#[test]
fn traces_are_sent_where_an_address_is_said_and_never_where_they_would_need_tls() {
    let wanted = |of_all: Option<&str>, of_traces: Option<&str>| {
        is_wanted(|name| {
            let said = match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => of_all,
                _ => of_traces,
            };
            said.map(str::to_owned)
        })
    };
    let plain = Some("http://collector:4318");
    let encrypted = Some("HTTPS://collector:4318");
    assert!(matches!(wanted(None, None), Ok(false)));
    assert!(matches!(wanted(plain, None), Ok(true)));
    assert!(matches!(wanted(encrypted, plain), Ok(true)));
    for refused in [wanted(encrypted, None), wanted(plain, encrypted)] {
        let text = refused.expect_err("it needs TLS").to_string();
        assert!(text.contains("HTTPS://collector:4318"), "{text}");
    }
}
