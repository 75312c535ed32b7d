//! What a server says in the header of a refusal, put where a client looks for it.
//!
//! `Retry-After` of a server that sheds load (429, 503) comes as a header, often beside a plain text, and the client keeps only the body: what the
//! header asks for is written into the body.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, Full};
use kube::{
    client::{Body, DynBody},
    core::{Status, response::StatusDetails},
};
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::BoxFuture;

/// Bytes of a refusal that are read.
const ENOUGH: usize = 64 * 1024;

#[derive(Clone, Copy)]
pub(crate) struct RefusalLayer;

impl<S> Layer<S> for RefusalLayer {
    type Service = Refusals<S>;

    fn layer(&self, inner: S) -> Refusals<S> {
        Refusals(Arc::new(tokio::sync::Mutex::new(inner)))
    }
}

pub(crate) struct Refusals<S>(Arc<tokio::sync::Mutex<S>>);

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
        let inner = self.0.clone();
        Box::pin(async move {
            let mut inner = inner.lock().await;
            let answer = inner.ready().await?.call(request);
            drop(inner);
            let answer = answer.await?;
            match asked_for(&answer) {
                Some(seconds) => Ok(told(answer, seconds).await),
                None => Ok(answer),
            }
        })
    }
}

/// The seconds a refusal asks for in its header.
fn asked_for(answer: &Response<Box<DynBody>>) -> Option<u32> {
    let sheds_load = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let header = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds = header.trim().parse().ok()?;
    (sheds_load.contains(&answer.status()) && seconds > 0).then_some(seconds)
}

/// `answer` with a body that says what its header asks for.
async fn told(answer: Response<Box<DynBody>>, seconds: u32) -> Response<Box<DynBody>> {
    let (mut head, mut body) = answer.into_parts();
    let mut bytes = Vec::new();
    while bytes.len() <= ENOUGH
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes.extend(frame.into_data().unwrap_or_default());
    }
    bytes.truncate(ENOUGH);
    let mut status = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&bytes);
        let reason = match head.status {
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            _ => "ServiceUnavailable",
        };
        Status::failure(text.trim(), reason).with_code(head.status.as_u16())
    });
    let details = status.details.get_or_insert_with(|| StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    });
    details.retry_after_seconds = details.retry_after_seconds.max(seconds);
    let bytes = serde_json::to_vec(&status).unwrap_or(bytes);
    head.headers.remove(http::header::CONTENT_LENGTH);
    let body = Full::from(bytes).map_err(|never: Infallible| match never {});
    Response::from_parts(head, Box::new(body))
}

#[cfg(test)]
mod tests;
