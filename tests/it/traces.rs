//! A program that is told of a collector of traces.

use std::{
    net::SocketAddr,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use boatswain_tests::{Replica, Space, World};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message as _;
use tokio::net::TcpListener;

/// What a collector was told: where, and what.
type Told = Arc<Mutex<Vec<(String, Bytes)>>>;

async fn collector() -> (SocketAddr, Told) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let told = Told::default();
    let kept = told.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let kept = kept.clone();
            let take = service_fn(move |request: Request<Incoming>| {
                let kept = kept.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await?.to_bytes();
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push((path, body));
                    Ok::<_, hyper::Error>(Response::new(Empty::<Bytes>::new()))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), take));
        }
    });
    (address, told)
}

fn attribute(of: &[KeyValue], name: &str) -> Option<String> {
    let found = of.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

/// The spans of the service `name`.
fn spans(told: &Told, name: &str) -> Vec<Span> {
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    let mut spans = Vec::new();
    for (path, body) in told.iter() {
        assert_eq!(path, "/v1/traces");
        let batch = ExportTraceServiceRequest::decode(body.clone()).expect("a batch");
        for of in batch.resource_spans {
            let attributes = of.resource.expect("a resource").attributes;
            let service = attribute(&attributes, "service.name");
            assert_eq!(service.as_deref(), Some(name));
            spans.extend(of.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

/// Lets the program do some work, with a collector at `address`; what it logs until it has ended in order.
async fn run(world: &World, address: SocketAddr) -> Vec<String> {
    let space = Space::create(&world.client().await, "traced").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_replica"));
    command
        .args(["run", "--namespace", &space.name, "--kubeconfig"])
        .arg(world.kubeconfig())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        // what is logged is another matter
        .env("RUST_LOG", "warn");
    let replica = Replica::spawn(command, "traced");
    space.has_replicas("web", 2).await;
    space.is_synced("web", 2).await;
    replica.terminate();
    let (status, log) = replica.ends().await;
    assert!(status.success(), "{status}: {log:#?}");
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_tells_a_collector_of_its_reconciles_and_their_requests_until_it_ends() {
    let world = World::sim().await;
    let (address, told) = collector().await;
    let log = run(&world, address).await;
    assert!(!log.iter().any(|line| line.contains("traces")), "{log:#?}");
    let spans = spans(&told, "podautoscaler");
    let scaled = spans.iter().find(|span| {
        let path = attribute(&span.attributes, "url.path").unwrap_or_default();
        span.name == "request" && path.ends_with("/deployments/web/scale")
    });
    let scaled = scaled.expect("a request");
    let of_it = |name| attribute(&scaled.attributes, name);
    assert_eq!(of_it("http.request.method").as_deref(), Some("PUT"));
    assert_eq!(of_it("http.response.status_code").as_deref(), Some("200"));
    let reconcile = spans
        .iter()
        .find(|span| span.span_id == scaled.parent_span_id);
    let reconcile = reconcile.expect("a parent");
    assert_eq!(reconcile.name, "reconcile");
    assert_eq!(reconcile.trace_id, scaled.trace_id);
    let key = attribute(&reconcile.attributes, "key").unwrap_or_default();
    assert!(key.ends_with("/web"), "{key}");
    // neither watches nor leases are traces of their own
    let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
    let mut others = roots.filter(|span| span.name != "reconcile");
    assert_eq!(others.next(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_whose_collector_is_away_works_ends_in_time_and_says_so_once() {
    let world = World::sim().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let log = run(&world, address).await;
    let said = log
        .iter()
        .filter(|line| line.contains("the collector takes no traces"));
    assert_eq!(said.count(), 1, "{log:#?}");
}
