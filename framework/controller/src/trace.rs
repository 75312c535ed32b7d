//! Spans of reconciles and of what they ask the API server, told to an OpenTelemetry collector and named in the requests (W3C trace context).
//!
//! Spans that no subscriber keeps cost next to nothing, and a request outside of every span carries nothing.

use std::{env, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use opentelemetry::{propagation::TextMapPropagator as _, trace::TracerProvider as _};
use opentelemetry_http::{HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::runtime::{Builder, Handle, Runtime};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, registry::LookupSpan};

/// Where the collector is, as every OpenTelemetry program is told.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
const SERVICE: &str = "OTEL_SERVICE_NAME";
/// How long the collector may take for a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends spans to a collector; what waits is sent when it is dropped, which takes as long as the collector does, ten seconds at most.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    /// Outlives the provider's last batch.
    runtime: Option<Runtime>,
}

/// Why traces are not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    #[error("cannot send traces: {0}; check OTEL_EXPORTER_OTLP_ENDPOINT")]
    Exporter(#[from] ExporterBuildError),
    #[error("cannot send traces: {0}")]
    Thread(#[from] std::io::Error),
}

impl Traces {
    /// To the collector that the environment names (`OTEL_EXPORTER_OTLP_ENDPOINT`, such as `http://localhost:4318`), if it names one.
    pub(crate) fn of_environment(service: &str) -> Result<Option<Self>, TraceError> {
        let named = ENDPOINTS.iter().any(|name| env::var_os(name).is_some());
        let service = env::var(SERVICE).unwrap_or_else(|_| service.to_owned());
        named.then(|| Self::to(None, &service)).transpose()
    }

    /// To `endpoint`, or to where the environment says.
    fn to(endpoint: Option<String>, service: &str) -> Result<Self, TraceError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("traces")
            .enable_all()
            .build()?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::on(runtime.handle().clone()))
            .with_timeout(PATIENCE);
        let exporter = match endpoint {
            Some(endpoint) => exporter.with_endpoint(endpoint),
            None => exporter,
        };
        let resource = Resource::builder().with_service_name(service.to_owned());
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter.build()?)
            .with_resource(resource.build())
            .build();
        Ok(Self {
            provider,
            runtime: Some(runtime),
        })
    }

    /// What keeps spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("boatswain"))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!("the last traces were not sent: {error}");
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lets a request carry the trace it belongs to, if any.
pub(crate) fn carry(headers: &mut HeaderMap) {
    let context = Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut HeaderInjector(headers));
}

/// Speaks HTTP without TLS, as to a collector in the same pod or node.
#[derive(Debug)]
struct Collector {
    client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
    /// The exporter's own thread has no reactor.
    on: Handle,
}

impl Collector {
    fn on(on: Handle) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, on }
    }
}

impl HttpClient for Collector {
    // what `async_trait` makes of an async fn
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        let client = self.client.clone();
        let sent = self.on.spawn(async move {
            let exchange = async {
                let answer = client.request(request.map(Full::new)).await?;
                let (head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(head, body))
            };
            tokio::time::timeout(PATIENCE, exchange).await?
        });
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::{Router, routing::post};
    use boatswain_supervision::Clock;
    use kube::client::Body;
    use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};
    use tracing::{Instrument as _, instrument::WithSubscriber as _};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::client::{MeasureLayer, Requests};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reconcile_and_its_requests_are_one_trace_that_the_server_and_the_collector_are_told()
    {
        let (tell, told) = mpsc::channel();
        let collector = Router::new().route(
            "/v1/traces",
            post(async move |body: Bytes| drop(tell.send(body))),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, collector).await });

        let endpoint = format!("http://{address}/v1/traces");
        let traces = Traces::to(Some(endpoint), "the-service").expect("an exporter");
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
        let ["00", trace, _, "01"] = parts[..] else {
            panic!("no traceparent: {parts:?}")
        };
        let trace = u128::from_str_radix(trace, 16)
            .expect("hexadecimal")
            .to_be_bytes();
        tokio::task::spawn_blocking(move || drop(traces))
            .await
            .expect("sent");
        let batch = told.try_recv().expect("a batch");
        let has = |bytes: &[u8]| batch.windows(bytes.len()).filter(|w| *w == bytes).count();
        for word in [
            "the-service",
            "reconcile",
            "shop/web",
            "request",
            "/api/v1/pods",
        ] {
            assert!(has(word.as_bytes()) > 0, "{word} is not told");
        }
        assert_eq!(has(&trace), 2, "two spans of one trace");
    }

    #[test]
    fn a_request_outside_of_every_span_carries_nothing() {
        let mut headers = HeaderMap::new();
        carry(&mut headers);
        assert!(headers.is_empty(), "{headers:?}");
    }
}
