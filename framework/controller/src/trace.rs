//! Reconciles and their requests, told to an OpenTelemetry collector as spans and named in the requests (W3C trace context).
//!
//! A collector that is slow, away or broken costs spans and nothing else: they are dropped when the queue of the exporter's own thread is full.

use std::{
    env,
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{
    propagation::TextMapPropagator as _,
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::runtime::{Builder, Handle, Runtime};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::LevelFilter, registry::LookupSpan};

/// Where the collector is, as every OpenTelemetry program is told; the first that says something holds.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
const SERVICE: &str = "OTEL_SERVICE_NAME";
/// How long the collector may take for a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of the process waits for the last batch.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// Of an answer this much is read.
const MAX_ANSWER: usize = 64 << 10;

/// Sends spans to a collector; what waits is sent when it is dropped, which takes two seconds at most.
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
    #[error(
        "cannot send traces to {0}: they are sent over plain HTTP only, as to a collector in the same pod or node; name it as http://HOST:PORT"
    )]
    Encrypted(String),
    #[error("cannot send traces: {0}")]
    Thread(#[from] std::io::Error),
}

impl Traces {
    /// To the collector that the environment names (`OTEL_EXPORTER_OTLP_ENDPOINT`, such as `http://localhost:4318`), if it names one.
    pub(crate) fn of_environment(service: &str) -> Result<Option<Self>, TraceError> {
        let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if !is_wanted(said)? {
            return Ok(None);
        }
        let service = said(SERVICE).unwrap_or_else(|| service.to_owned());
        Self::to(None, service).map(Some)
    }

    /// To `endpoint`, or to where the environment says.
    fn to(endpoint: Option<String>, service: String) -> Result<Self, TraceError> {
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
        let resource = Resource::builder().with_service_name(service);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter.build()?)
            .with_resource(resource.build())
            .build();
        Ok(Self {
            provider,
            runtime: Some(runtime),
        })
    }

    /// What keeps spans, and what is logged in them, whatever is logged otherwise.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracer(self.provider.tracer("boatswain"))
            .with_filter(LevelFilter::INFO)
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_PATIENCE) {
            tracing::warn!("the last traces may not have been sent: {error}");
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether the environment names a collector.
fn is_wanted(said: impl Fn(&str) -> Option<String>) -> Result<bool, TraceError> {
    match ENDPOINTS.into_iter().find_map(said) {
        Some(endpoint) if endpoint.to_ascii_lowercase().starts_with("https:") => {
            Err(TraceError::Encrypted(endpoint))
        }
        endpoint => Ok(endpoint.is_some()),
    }
}

/// The part of the current trace that `request` is; the request says so to the server. Outside of every trace it is none, and says nothing.
pub(crate) fn of_request<B>(request: &mut Request<B>) -> Span {
    let parent = Span::current().context();
    if !parent.span().span_context().is_valid() {
        return Span::none();
    }
    let span = tracing::info_span!(
        "request",
        otel.kind = "client",
        http.request.method = %request.method(),
        url.path = request.uri().path(),
        http.response.status_code = tracing::field::Empty,
    );
    let mut headers = HeaderInjector(request.headers_mut());
    TraceContextPropagator::new().inject_context(&span.context(), &mut headers);
    span
}

/// Speaks HTTP without TLS, as to a collector in the same pod or node.
#[derive(Debug)]
struct Collector {
    client: Client<HttpConnector, Full<Bytes>>,
    /// The exporter's own thread has no reactor.
    on: Handle,
    /// Whether it failed last: one is told when that changes.
    failed: AtomicBool,
}

impl Collector {
    fn on(on: Handle) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            on,
            failed: AtomicBool::new(false),
        }
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.on.spawn(async move {
            let exchange = async {
                let answer = client.request(request.map(Full::new)).await?;
                let (head, body) = answer.into_parts();
                let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(head, body))
            };
            tokio::time::timeout(PATIENCE, exchange).await?
        });
        sent.await?
    }

    fn tell(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let trouble = match answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(crate::client::root_cause(error.as_ref())),
        };
        let before = self.failed.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(trouble) if !before => {
                tracing::warn!("the collector takes no traces, they are dropped: {trouble}");
            }
            None if before => tracing::info!("the collector takes traces again"),
            _ => {}
        }
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
        Box::pin(async move {
            let answer = self.send(request).await;
            self.tell(&answer);
            answer
        })
    }
}

#[cfg(test)]
mod tests;
