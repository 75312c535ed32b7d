//! The server as a tower service.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ::http::{Method, Request, Response, header};
use bytes::Bytes;
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use tokio::sync::watch;

use super::{
    answer::Answer,
    discovery, media, reading, review,
    route::{self, Query, Route},
    stream, writing,
};
use crate::{
    attributes::Attributes,
    auth::{self, Anonymous},
    failure::Failure,
    fault::Fate,
    sim::Inner,
};

/// The body of an answer; it fails only when a fault breaks the connection.
pub type SimBody = UnsyncBoxBody<Bytes, io::Error>;

/// Larger bodies are refused, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The server as a tower service, always ready; see [`ApiSim::service`](crate::ApiSim::service).
///
/// # Errors
/// A call fails, as a broken connection does, only when a fault says so.
///
/// # Cancellation safety
/// A request whose future is dropped before it is first polled has no effect; from then on it is carried out in one
/// step, unless a fault holds or delays it, and then it has no effect when dropped meanwhile.
#[derive(Clone, Debug)]
pub struct SimService {
    inner: Arc<Inner>,
    /// Turns true when the listener closes; watches end then.
    closing: Option<watch::Receiver<bool>>,
}

impl SimService {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            closing: None,
        }
    }

    pub(crate) fn closing(mut self, closing: watch::Receiver<bool>) -> Self {
        self.closing = Some(closing);
        self
    }

    async fn answer(self, request: Request<Bytes>) -> io::Result<Response<SimBody>> {
        let faults = &self.inner.faults;
        if faults.is_unreachable() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the simulated API server is unreachable",
            ));
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let query = Query::parse(&parts.uri);
        let text = |name: header::HeaderName| {
            parts
                .headers
                .get(name)
                .and_then(|v| v.to_str().ok())
                .unwrap_or_default()
        };
        let user = self.user(text(header::AUTHORIZATION));
        let other = text(header::HeaderName::from_static("impersonate-user"));
        let user = match other {
            "" => user,
            // the real server forbids it with 403
            other => user
                .filter(|user| self.inner.users.may_impersonate(user))
                .map(|_| other.to_owned()),
        };
        let route = self.inner.with(|state| route::find(path, &state.registry));
        let who = user.as_deref().unwrap_or_default();
        let Some(mut attributes) = route::attributes(&parts.method, path, &route, &query, who)
        else {
            return Ok(Answer::from(Failure::method_not_allowed()).response);
        };
        if attributes.verb == "create" {
            attributes.name = review::name_in(text(header::CONTENT_TYPE), &body);
        }
        let mut refused = match user {
            None => Some(Answer::from(Failure::unauthorized())),
            Some(_) if body.len() > BODY_LIMIT => {
                Some(Answer::from(Failure::too_large(BODY_LIMIT)))
            }
            Some(_) => None,
        };
        let mut lost = false;
        let mut passed = 0;
        while refused.is_none() {
            let mut changes = faults.changes();
            match faults.judge(&attributes, &mut passed) {
                Fate::Pass => break,
                Fate::Refuse(failure, retry_after) => {
                    refused = Some(Answer::failure(&failure, retry_after))
                }
                Fate::Wait(delay) => self.inner.options.time.sleep(delay).await,
                Fate::Lose => {
                    lost = true;
                    break;
                }
                Fate::Hang => {
                    changes.rung().await;
                    if faults.is_unreachable() {
                        return Err(io::Error::new(
                            io::ErrorKind::ConnectionReset,
                            "the simulated API server went away",
                        ));
                    }
                }
            }
        }
        let asked = Asked {
            inner: &self.inner,
            method: &parts.method,
            query: &query,
            attributes: &attributes,
            accept: text(header::ACCEPT),
            content_type: text(header::CONTENT_TYPE),
            user_agent: text(header::USER_AGENT),
            body: &body,
            closing: self.closing.as_ref(),
        };
        let answer = match refused {
            Some(answer) => answer,
            None => asked.carry_out(&route).unwrap_or_else(Answer::from),
        };
        let logged = parts.uri.query().unwrap_or_default().to_owned();
        self.inner
            .log()
            .push(attributes.clone(), logged, body.clone(), answer.outcome);
        match lost {
            true => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the answer was lost by a scripted fault",
            )),
            false => Ok(answer.response),
        }
    }

    fn user(&self, authorization: &str) -> Option<String> {
        match authorization.strip_prefix("Bearer ") {
            Some(token) => self.inner.users.of_token(token.trim()),
            None if authorization.is_empty()
                && self.inner.options.anonymous == Anonymous::Admin =>
            {
                Some("admin".into())
            }
            None => None,
        }
    }
}

/// A request, taken apart.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) method: &'a Method,
    pub(super) query: &'a Query,
    pub(super) attributes: &'a Attributes,
    pub(super) accept: &'a str,
    pub(super) content_type: &'a str,
    pub(super) user_agent: &'a str,
    pub(super) body: &'a Bytes,
    pub(super) closing: Option<&'a watch::Receiver<bool>>,
}

impl Asked<'_> {
    fn carry_out(&self, route: &Route) -> Result<Answer, Failure> {
        let target = match route {
            Route::Nothing => return Ok(Answer::text(404, "404 page not found\n")),
            Route::Meta(segments) => return discovery::answer(self, segments),
            Route::Resource(target) => target,
        };
        if !self.inner.may(self.attributes) {
            return Err(Failure::forbidden(
                &target.served,
                &target.name,
                &auth::refusal(self.attributes),
            ));
        }
        let form = media::form(self.accept)?;
        if review::is_review(&target.served) {
            return review::answer(self, target);
        }
        match self.attributes.verb {
            "watch" => stream::open(self, target, form),
            "get" | "list" => reading::answer(self, target, &form),
            _ => writing::answer(self, target, &form),
        }
    }
}

impl<B> tower::Service<Request<B>> for SimService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<SimBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<SimBody>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| io::Error::other(error.into()))?
                .to_bytes();
            service.answer(Request::from_parts(parts, body)).await
        })
    }
}
