//! What a server says in the head of a refusal, put where a client looks for it.
//!
//! The client keeps only the body, and takes any JSON object for a `Status`: one of a proxy or a gateway has no code, or one of its own. What the head says
//! counts, and is written into the body: the code, and `Retry-After` of a server that sheds load (429, 503), which comes as a header, often beside a plain
//! text.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use boatswain_supervision::Clock;
use http::{Request, Response, StatusCode, header::RETRY_AFTER, response};
use http_body_util::{BodyExt as _, Full};
use kube::{
    client::{Body, DynBody},
    core::{Status, response::StatusDetails},
};
use tower::{BoxError, Layer, Service};

use super::{BoxFuture, sent};

/// Bytes of a refusal that are read.
const ENOUGH: usize = 1024 * 1024;
/// How long they may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct RefusalLayer(Clock);

impl RefusalLayer {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(clock)
    }
}

impl<S> Layer<S> for RefusalLayer {
    type Service = Refusals<S>;

    fn layer(&self, inner: S) -> Refusals<S> {
        Refusals {
            inner: Arc::new(tokio::sync::Mutex::new(inner)),
            clock: self.0.clone(),
        }
    }
}

pub(crate) struct Refusals<S> {
    inner: Arc<tokio::sync::Mutex<S>>,
    clock: Clock,
}

impl<S> Service<Request<Body>> for Refusals<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Box<DynBody>>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, clock) = (self.inner.clone(), self.clock.clone());
        Box::pin(async move {
            let answer = sent(inner, request).await?;
            let code = answer.status();
            if code.is_client_error() || code.is_server_error() {
                return Ok(told(answer, &clock).await);
            }
            Ok(answer)
        })
    }
}

/// The seconds a refusal asks for in its header.
fn asked_for(answer: &response::Parts) -> Option<u32> {
    let sheds_load = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let header = answer.headers.get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = header.trim().parse().ok()?;
    (sheds_load.contains(&answer.status) && seconds > 0).then_some(seconds)
}

/// `answer` with a body that says what its head says.
async fn told(answer: Response<Box<DynBody>>, clock: &Clock) -> Response<Box<DynBody>> {
    let (mut head, body) = answer.into_parts();
    let bytes = read(body, clock).await;
    let bytes = in_words(&head, &bytes).unwrap_or(bytes);
    head.headers.remove(http::header::CONTENT_LENGTH);
    let body = Full::from(bytes).map_err(|never: Infallible| match never {});
    Response::from_parts(head, Box::new(body))
}

/// What comes of a body in time.
async fn read(mut body: Box<DynBody>, clock: &Clock) -> Vec<u8> {
    let mut bytes = Vec::new();
    let all = async {
        while bytes.len() <= ENOUGH
            && let Some(Ok(frame)) = body.frame().await
        {
            bytes.extend(frame.into_data().unwrap_or_default());
        }
    };
    tokio::select! {
        biased;
        () = all => {}
        () = clock.sleep(PATIENCE) => {}
    }
    bytes.truncate(ENOUGH);
    bytes
}

/// The `Status` a refusal stands for, where its body does not say it itself.
fn in_words(head: &response::Parts, body: &[u8]) -> Option<Vec<u8>> {
    let (code, seconds) = (head.status.as_u16(), asked_for(head));
    let parsed = serde_json::from_slice::<Status>(body);
    let is_right = parsed.as_ref().map_or(true, |status| status.code == code);
    if is_right && seconds.is_none() {
        // the client puts the code beside what is no `Status`
        return None;
    }
    let mut status = parsed.unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        let reason = match head.status {
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            _ => "ServiceUnavailable",
        };
        Status::failure(text.trim(), reason)
    });
    status.code = code;
    if let Some(seconds) = seconds {
        let details = status.details.get_or_insert_with(|| StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        });
        details.retry_after_seconds = details.retry_after_seconds.max(seconds);
    }
    serde_json::to_vec(&status).ok()
}

#[cfg(test)]
mod tests;
