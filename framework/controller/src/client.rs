//! The API client handed to controllers: its errors, its limits and the threads its connections live on.

use std::{
    fmt,
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use boatswain_cache::{ConnectOptions, Key, LiveCause, LiveError};
use boatswain_supervision::Clock;
use boatswain_workqueue::limit::Bucket;
use http::Request;
use kube::client::Body;
use tokio::runtime::Handle;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use crate::{leader::Fence, reconcile::Fault};

mod again;
mod fault;
mod fencing;
mod measured;
mod record;
mod refusal;

pub(crate) use fault::{fault_of, fault_of_read};
pub(crate) use fencing::Fencing;
pub(crate) use measured::{MeasureLayer, Measured, NO_ANSWER, REQUEST, Requests};
pub(crate) use record::recording;
use refusal::RefusalLayer;

/// A request that failed: what was tried, on which object, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {resource} {key}: {}", Reason(.source))]
pub struct ClientError {
    /// The verb as RBAC spells it, with the subresource where there is one (`update`, `patch`…).
    pub verb: &'static str,
    /// The resource as RBAC spells it, for example `deployments/scale`.
    pub resource: String,
    /// The object.
    pub key: Key,
    /// What the client or the server said.
    #[source]
    pub source: Box<kube::Error>,
}

impl ClientError {
    /// Whether the write met a newer version of the object (409 Conflict).
    pub fn is_conflict(&self) -> bool {
        status(&self.source).is_some_and(|s| s.code == 409 && s.reason != "AlreadyExists")
    }

    /// Whether the object, or its kind, does not exist (404).
    pub fn is_not_found(&self) -> bool {
        status(&self.source).is_some_and(|s| s.code == 404)
    }

    /// Whether an object of that name is there already (409 AlreadyExists).
    pub fn is_already_exists(&self) -> bool {
        status(&self.source).is_some_and(|s| s.reason == "AlreadyExists")
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        fault_of(&self.source)
    }
}

pub(crate) fn status(error: &kube::Error) -> Option<&kube::core::Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The innermost reason of a client error in one line: `connection refused` instead of three wrappers around it.
struct Reason<'a>(&'a kube::Error);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match status(self.0) {
            Some(status) => write!(f, "{} ({} {})", status.message, status.code, status.reason),
            None => write!(f, "{}", root_cause(self.0)),
        }
    }
}

/// The last error of a chain, which names the cause instead of the wrappers.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// As the client itself would have told it, so that whose fault it is follows by the same rules.
impl From<LiveError> for ClientError {
    fn from(error: LiveError) -> Self {
        let LiveError {
            resource,
            key,
            cause,
        } = error;
        let refused = |code, reason: &str, message: String| {
            let status = kube::core::Status::failure(&message, reason);
            kube::Error::Api(Box::new(status.with_code(code)))
        };
        let source = match cause {
            LiveCause::Unauthorized(message) => refused(401, "Unauthorized", message),
            LiveCause::Forbidden(message) => refused(403, "Forbidden", message),
            LiveCause::NoSuchResource(message) => refused(404, "NotFound", message),
            LiveCause::Throttled {
                retry_after,
                message,
            } => {
                let seconds = retry_after.map_or(0, |wait| wait.as_secs());
                let details = kube::core::response::StatusDetails {
                    name: key.name().to_owned(),
                    group: String::new(),
                    kind: String::new(),
                    uid: String::new(),
                    causes: Vec::new(),
                    retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
                };
                let status = kube::core::Status::failure(&message, "TooManyRequests");
                kube::Error::Api(Box::new(status.with_code(429).with_details(details)))
            }
            LiveCause::Refused { code, message } => refused(code, "", message),
            cause @ (LiveCause::InvalidKey(_) | LiveCause::Undecodable(_)) => {
                kube::Error::SerdeError(serde::ser::Error::custom(cause))
            }
            cause => kube::Error::Service(Box::new(cause)),
        };
        Self {
            verb: "get",
            resource,
            key,
            source: Box::new(source),
        }
    }
}

/// Limits of the client that all controllers of a manager share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLimits {
    /// Requests per second in the long run, default 50. Watches are never delayed.
    pub qps: NonZeroU32,
    /// Requests that may go out at once, default 100.
    pub burst: NonZeroU32,
    /// How long the answer to a request may take to begin until it is given up, default 30 s. Watches bring their own limit.
    pub timeout: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        let some = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            qps: some(50),
            burst: some(100),
            timeout: Duration::from_secs(30),
        }
    }
}

impl ClientLimits {
    /// Those of the event recorder, whatever the controllers use up of theirs: 20 a second, 100 at once.
    pub(crate) fn for_events() -> Self {
        let some = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            qps: some(20),
            ..Self::default()
        }
    }
}

/// Builds the client: every request is driven on `io`, a runtime that outlives every arbiter, so that no connection dies with
/// the thread that happened to open it. With a `fence` nothing but reads passes while it is closed. What is asked is counted in `requests`. Clients that
/// are given the same `limit` share it.
///
/// # Errors
///
/// When the configuration cannot be turned into a transport (certificates that do not parse, an unsupported proxy).
pub(crate) fn connect(
    config: kube::Config,
    options: &ConnectOptions,
    limit: &LimitLayer,
    clock: Clock,
    fence: Option<Fence>,
    requests: &Requests,
    io: &Handle,
) -> Result<kube::Client, kube::Error> {
    let namespace = config.default_namespace.clone();
    let reads = boatswain_cache::transport(config.clone(), options, None, io)?;
    let transport = match fence {
        Some(fence) => {
            let gate = fence.gate(clock.clone());
            let writes = boatswain_cache::transport(config, options, Some(gate), io)?;
            Fencing::new(fence, clock.clone(), reads, writes).boxed()
        }
        None => reads,
    };
    let _entered = io.enter();
    Ok(kube::client::ClientBuilder::new(transport, namespace)
        .with_layer(&MeasureLayer::new(requests.clone(), clock.clone()))
        .with_layer(&RefusalLayer::new(clock))
        .with_layer(&limit.clone().measured(requests))
        .build())
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Delays requests by a token bucket and bounds the time until their answer begins. Watches are exempt from both: they are
/// few, long and paced by their reflectors. So is the question whether the server is there, lest a full bucket be taken for a dead server.
#[derive(Clone)]
pub(crate) struct LimitLayer {
    /// The lock is the line to the bucket, first come, first served: its holder waits for the next token.
    bucket: Arc<tokio::sync::Mutex<Bucket>>,
    timeout: Duration,
    clock: Clock,
    requests: Option<Requests>,
}

impl LimitLayer {
    pub(crate) fn new(limits: ClientLimits, clock: Clock) -> Self {
        let bucket = Bucket::new(limits.qps, limits.burst);
        Self {
            bucket: Arc::new(tokio::sync::Mutex::new(bucket)),
            timeout: limits.timeout,
            clock,
            requests: None,
        }
    }

    /// Tells `requests` how long each waited.
    fn measured(self, requests: &Requests) -> Self {
        Self {
            requests: Some(requests.clone()),
            ..self
        }
    }

    /// Waits for a token. Nothing is reserved: who is cancelled while waiting has taken nothing.
    async fn admit(&self) {
        let mut bucket = self.bucket.lock().await;
        while let Err(wait) = bucket.take(self.clock.now()) {
            self.clock.sleep(wait).await;
        }
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limit<S>;

    fn layer(&self, inner: S) -> Limit<S> {
        Limit {
            limit: self.clone(),
            inner: Arc::new(tokio::sync::Mutex::new(inner)),
        }
    }
}

pub(crate) struct Limit<S> {
    limit: LimitLayer,
    inner: Arc<tokio::sync::Mutex<S>>,
}

impl<S, R> Service<Request<Body>> for Limit<S>
where
    S: Service<Request<Body>, Response = R, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = R;
    type Error = BoxError;
    type Future = BoxFuture<Result<R, BoxError>>;

    // always ready: waiting here would hold up every caller behind the client's one buffer
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, inner) = (self.limit.clone(), self.inner.clone());
        Box::pin(async move {
            let exempt = is_watch(&request) || is_probe(&request);
            let method = request.method().clone();
            let send = sent(inner, request);
            if exempt {
                return send.await;
            }
            let begun = limit.clock.now();
            limit.admit().await;
            if let Some(requests) = &limit.requests {
                let waited = limit.clock.now().saturating_duration_since(begun);
                requests.waited(&method, waited);
            }
            tokio::select! {
                biased;
                answer = send => answer,
                () = limit.clock.sleep(limit.timeout) => Err(Box::new(TimedOut(limit.timeout)) as BoxError),
            }
        })
    }
}

/// Sends a request by a service that others send by, too; the lock is held until the request is on its way.
async fn sent<S, A>(
    service: Arc<tokio::sync::Mutex<S>>,
    request: Request<Body>,
) -> Result<A, BoxError>
where
    S: Service<Request<Body>, Response = A, Error = BoxError>,
{
    let mut service = service.lock().await;
    let answer = service.ready().await?.call(request);
    drop(service);
    answer.await
}

/// No answer began within the client's time limit.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct TimedOut(Duration);

fn is_watch(request: &Request<Body>) -> bool {
    request
        .uri()
        .query()
        .is_some_and(|q| q.split('&').any(|p| p == "watch=true" || p == "watch=1"))
}

fn is_probe(request: &Request<Body>) -> bool {
    request.uri().path() == "/version"
}

#[cfg(test)]
mod tests;
