//! Requests and their bodies. Bytes come as the server sends them: nothing of kube's decodes them.

use std::error::Error;
use std::pin::pin;
use std::time::{Duration, Instant};

use boatswain_supervision::Clock;
use bytes::Bytes;
use form_urlencoded::Serializer;
use futures::future::{Either, select};
use http::header::{ACCEPT, ACCEPT_ENCODING, RETRY_AFTER};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;

use crate::reflector::answer::{Failure, Status};
use crate::reflector::state::{At, List};
use crate::selection::Selection;
use crate::version::Version;

/// Of a refusal this much is read.
const MAX_REFUSAL: usize = 64 << 10;

/// Asks for one resource.
pub(super) struct Caller {
    client: kube::Client,
    selection: Selection,
    path: String,
    clock: Clock,
    patience: Duration,
}

/// A body that is still arriving.
pub(super) struct Body(kube::client::Body);

impl Body {
    /// The next bytes, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.0.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Failure::Transport(chain(&error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The next bytes, if they come soon enough.
    pub(super) async fn within(
        &mut self,
        clock: &Clock,
        patience: Duration,
    ) -> Result<Option<Bytes>, Failure> {
        within(clock, patience, self.next()).await?
    }
}

impl Caller {
    pub(super) fn new(
        client: kube::Client,
        selection: Selection,
        clock: Clock,
        patience: Duration,
    ) -> Self {
        Self {
            client,
            path: selection.kind().path(selection.scope()),
            selection,
            clock,
            patience,
        }
    }

    pub(super) async fn list(&self, list: &List) -> Result<Body, Failure> {
        let mut query = Serializer::new(String::new());
        if let Some(limit) = list.limit {
            query.append_pair("limit", &limit.to_string());
        }
        match (&list.token, &list.at) {
            // the token says which state the pages are cut from
            (Some(token), _) => drop(query.append_pair("continue", token)),
            (None, At::Any) => drop(query.append_pair("resourceVersion", "0")),
            (None, At::NotOlderThan(version)) => {
                query.append_pair("resourceVersion", &version.to_string());
                query.append_pair("resourceVersionMatch", "NotOlderThan");
            }
            (None, At::Now) => {}
        }
        self.call("list", &query.finish()).await
    }

    pub(super) async fn watch(
        &self,
        version: &Version,
        timeout: Duration,
    ) -> Result<Body, Failure> {
        let mut query = Serializer::new(String::new());
        query.append_pair("watch", "true");
        query.append_pair("allowWatchBookmarks", "true");
        query.append_pair("resourceVersion", &version.to_string());
        query.append_pair("timeoutSeconds", &timeout.as_secs().to_string());
        self.call("watch", &query.finish()).await
    }

    /// The smallest list there is, by quorum.
    pub(super) async fn probe(&self) -> Result<Body, Failure> {
        self.call("list", "limit=1").await
    }

    async fn call(&self, verb: &'static str, query: &str) -> Result<Body, Failure> {
        // every page of a list, every watch and every probe is of the same selection
        let mut query = Serializer::new(query.to_owned());
        self.selection.narrow(&mut query);
        let mut request = Request::get(format!("{}?{}", self.path, query.finish()))
            .body(kube::client::Body::empty())
            .map_err(|error| Failure::Transport(format!("{} is no path: {error}", self.path)))?;
        request.headers_mut().insert(
            ACCEPT,
            HeaderValue::from_static(self.selection.accept(verb)),
        );
        if verb == "watch" {
            // servers compress every event for itself, which clients take for the end of the stream
            request
                .headers_mut()
                .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        // limiter and metrics of the client go by it
        request.extensions_mut().insert(verb);
        let answer = within(&self.clock, self.patience, self.client.send(request)).await?;
        let response = answer.map_err(|error| Failure::Transport(chain(&error)))?;
        if response.status().is_success() {
            return Ok(Body(response.into_body()));
        }
        Err(Failure::Refused(self.refusal(response).await))
    }

    async fn refusal(&self, response: Response<kube::client::Body>) -> Status {
        let code = response.status().as_u16();
        let seconds = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Body(response.into_body());
        let mut read = Vec::new();
        // words are worth little: no failure is made of their absence
        while let Ok(Some(chunk)) = body.within(&self.clock, self.patience).await {
            read.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL - read.len())]);
            if read.len() >= MAX_REFUSAL {
                break;
            }
        }
        Status::parse(code, seconds.map(Duration::from_secs), &read)
    }
}

async fn within<T>(
    clock: &Clock,
    patience: Duration,
    future: impl Future<Output = T>,
) -> Result<T, Failure> {
    let deadline: Instant = clock.now() + patience;
    match select(pin!(future), pin!(clock.sleep_until(deadline))).await {
        Either::Left((value, _)) => Ok(value),
        Either::Right(_) => Err(Failure::Timeout(patience)),
    }
}

/// An error with its causes: the outer ones of HTTP clients say only that something failed.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = cause.source();
    }
    text
}
