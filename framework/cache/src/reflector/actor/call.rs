//! Requests and their bodies. Bytes come as the server sends them: nothing of kube's decodes them.

use std::borrow::Cow;
use std::pin::pin;
use std::time::{Duration, Instant};

use boatswain_supervision::Clock;
use bytes::Bytes;
use form_urlencoded::Serializer;
use futures::future::{Either, FutureExt, select};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use serde::Deserialize;

use crate::causes::chain;
use crate::reflector::answer::{Failure, Status};
use crate::reflector::plan::{At, List, StreamList};
use crate::selection::Selection;
use crate::version::Version;

/// Of a refusal this much is read, and as much of other small answers.
const MAX_REFUSAL: usize = 64 << 10;
/// All waits for the parts of a body together may be this many times as long as one of them.
const MAX_WAITS: u32 = 10;

/// Asks for one resource.
pub(super) struct Caller {
    client: kube::Client,
    selection: Selection,
    path: String,
    clock: Clock,
    patience: Duration,
}

/// A body that is still arriving.
pub(super) struct Body {
    body: kube::client::Body,
    /// What came while its reader was busy with the part before it.
    ahead: Option<Result<Option<Bytes>, Failure>>,
}

impl Body {
    fn new(body: kube::client::Body) -> Self {
        Self { body, ahead: None }
    }

    /// The next bytes, or `None` at the end. Asks for those behind them already: while the reader is busy with the one part, the connection reads the other.
    ///
    /// Nothing is lost if this is given up.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let part = match self.ahead.take() {
            Some(part) => part,
            None => self.read().await,
        };
        if let Ok(Some(_)) = part {
            self.has_more();
        }
        part
    }

    /// Whether the next bytes, or the end, have come already. Asks for them.
    pub(super) fn has_more(&mut self) -> bool {
        if self.ahead.is_none() {
            self.ahead = self.read().now_or_never();
        }
        self.ahead.is_some()
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.body.frame().await {
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
        patience: &mut Patience,
    ) -> Result<Option<Bytes>, Failure> {
        let began = clock.now();
        let allowed = patience.allows();
        let next = within(clock, allowed, self.next()).await;
        patience.waited(clock.now().saturating_duration_since(began));
        next?
    }

    /// As much as there is of a small answer that comes soon enough.
    async fn small(&mut self, clock: &Clock, patience: Duration) -> Vec<u8> {
        let mut read = Vec::new();
        let all = async {
            while let Ok(Some(chunk)) = self.next().await {
                read.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL - read.len())]);
                if read.len() >= MAX_REFUSAL {
                    break;
                }
            }
        };
        // what came until then has to do
        let _ = within(clock, patience, all).await;
        read
    }
}

/// How long a body may keep its reader waiting: for one part, and for all of them, lest a trickle goes on for ever. Only waiting counts: a
/// reader that is held up itself costs the server nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    once: Duration,
    left: Duration,
}

impl Patience {
    pub(super) fn new(once: Duration) -> Self {
        Self {
            once,
            left: once * MAX_WAITS,
        }
    }

    pub(super) fn allows(&self) -> Duration {
        self.once.min(self.left)
    }

    pub(super) fn waited(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
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

    /// A list as the first events of a watch.
    pub(super) async fn stream(&self, list: &StreamList) -> Result<Body, Failure> {
        let mut query = Serializer::new(String::new());
        query.append_pair("watch", "true");
        query.append_pair("allowWatchBookmarks", "true");
        query.append_pair("sendInitialEvents", "true");
        // servers before 1.27 refuse it, which is welcome: without it they would begin a watch whose list never ends
        query.append_pair("resourceVersionMatch", "NotOlderThan");
        if let At::NotOlderThan(version) = &list.at {
            query.append_pair("resourceVersion", &version.to_string());
        }
        query.append_pair("timeoutSeconds", &list.timeout.as_secs().to_string());
        self.call("watch", &query.finish()).await
    }

    /// What the server calls its version; empty if it does not say.
    pub(super) async fn server(&self) -> String {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Info {
            git_version: String,
        }
        let Ok(mut body) = self.send("get", "/version".to_owned()).await else {
            return String::new();
        };
        let read = body.small(&self.clock, self.patience).await;
        let info: Info = serde_json::from_slice(&read).unwrap_or_default();
        info.git_version
    }

    /// The smallest list there is, by quorum.
    pub(super) async fn probe(&self) -> Result<Body, Failure> {
        self.call("list", "limit=1").await
    }

    async fn call(&self, verb: &'static str, query: &str) -> Result<Body, Failure> {
        // every page of a list, every watch and every probe is of the same selection
        let mut query = Serializer::new(query.to_owned());
        self.selection.narrow(&mut query);
        let uri = format!("{}?{}", self.path, query.finish());
        self.send(verb, uri).await
    }

    async fn send(&self, verb: &'static str, uri: String) -> Result<Body, Failure> {
        let mut request = Request::get(&uri)
            .body(kube::client::Body::empty())
            .map_err(|error| Failure::Transport(format!("{uri} is no path: {error}")))?;
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
            return match foreign(response.headers()) {
                Some(what) => Err(Failure::Foreign(what)),
                None => Ok(Body::new(response.into_body())),
            };
        }
        Err(Failure::Refused(self.refusal(response).await))
    }

    async fn refusal(&self, response: Response<kube::client::Body>) -> Status {
        let code = response.status().as_u16();
        let seconds = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Body::new(response.into_body());
        // words are worth little: no failure is made of their absence
        let read = body.small(&self.clock, self.patience).await;
        Status::parse(code, seconds.map(Duration::from_secs), &read)
    }
}

/// What a body is that is not JSON. One that does not say is taken at its word.
fn foreign(headers: &HeaderMap) -> Option<String> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
    };
    // the client has taken off what it understands
    let packed = text(CONTENT_ENCODING).filter(|packed| packed != "identity");
    let kind = text(CONTENT_TYPE).filter(|kind| !kind.to_ascii_lowercase().contains("json"));
    packed.or(kind).map(Cow::into_owned)
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
