//! Reads past the cache.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use boatswain_supervision::Clock;
use futures::future::{Either, select};
use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::causes::chain;
use crate::framing::MAX_ITEM;
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::object::{DecodeError, Object};
use crate::opener::Opener;
use crate::transform::Transform;

#[cfg(test)]
mod tests;

/// How long a live read may take by default.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of a refusal this much is kept.
const MAX_REFUSAL: usize = 64 << 10;

/// Reads single objects of one kind from the API server itself: the newest state there is, at the cost of a request.
///
/// Its reads are called `get_live`, those of the cache ([`Lister`](crate::Lister)) `get`; neither ever does the other's work. The server answers by quorum, so
/// what was written before the read is in the answer. Nothing is retried here: a read that failed is for its caller to repeat.
pub struct Live<K> {
    client: kube::Client,
    kind: Kind,
    clock: Clock,
    patience: Duration,
    decoded: PhantomData<fn() -> K>,
}

/// A live read without an answer: which object was asked for, and what stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot get {resource} {key} from the server: {cause}")]
pub struct LiveError {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The object.
    pub key: Key,
    /// What stood in the way.
    #[source]
    pub cause: LiveCause,
}

/// What stood in the way of a live read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveCause {
    /// No object of the kind can have this key; nothing was asked.
    #[error("no object can be called so: {0}")]
    InvalidKey(&'static str),
    /// The credentials were not accepted (401).
    #[error("the credentials were not accepted; check that they are current ({0})")]
    Unauthorized(String),
    /// The verb is not allowed (403).
    #[error("not allowed; grant the verb get on it ({0})")]
    Forbidden(String),
    /// The server does not know the resource (404 of the kind, not of the object): its CRD or API is not installed.
    #[error("the server does not know the resource; its CRD or API is not installed ({0})")]
    NoSuchResource(String),
    /// The server asks to be left alone (429).
    #[error("the server is busy and asks to wait ({message})")]
    Throttled {
        /// How long, if it says so.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The server answered with another error.
    #[error("the server answered {code}: {message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// Its words.
        message: String,
    },
    /// There was no answer, or it broke off.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// There was no whole answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The answer is no object with an identity, or of another name.
    #[error("the answer cannot be used: {0}")]
    Unreadable(String),
    /// The object is no value of the type it was asked as; this quotes no value.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
}

impl LiveError {
    /// Whether asking again later may help although nobody changes anything: the server is busy, broken or out of reach.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match &self.cause {
            LiveCause::Throttled { .. } | LiveCause::Unreachable(_) | LiveCause::TimedOut(_) => {
                true
            }
            LiveCause::Refused { code, .. } => *code >= 500 || *code == 408,
            _ => false,
        }
    }
}

impl<K> Live<K> {
    /// Reads `kind` through `client`.
    #[must_use]
    pub fn new(client: kube::Client, kind: Kind, clock: Clock) -> Self {
        Self {
            client,
            kind,
            clock,
            patience: PATIENCE,
            decoded: PhantomData,
        }
    }

    /// Reads the kind that is known from `K`.
    #[must_use]
    pub fn of(client: kube::Client, clock: Clock) -> Self
    where
        K: kube::Resource<DynamicType = ()> + 'static,
    {
        Self::new(client, Kind::of::<K>(), clock)
    }

    /// How long a read may take from the request to the last byte, 10 s by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// The kind that is read.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The object as the server has it now, not decoded; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`LiveError`], never for an object that is merely absent.
    ///
    /// # Cancellation safety
    ///
    /// It only reads.
    pub async fn get_live_object(&self, key: &Key) -> Result<Option<Object>, LiveError> {
        let read = async {
            match select(pin!(self.read(key)), pin!(self.clock.sleep(self.patience))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(LiveCause::TimedOut(self.patience)),
            }
        };
        read.await.map_err(|cause| self.failed(key, cause))
    }

    fn failed(&self, key: &Key, cause: LiveCause) -> LiveError {
        LiveError {
            resource: self.kind.resource(),
            key: key.clone(),
            cause,
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<Object>, LiveCause> {
        let mut request = Request::get(self.path(key)?)
            .body(kube::client::Body::empty())
            .map_err(|_| LiveCause::InvalidKey("it does not fit into a URL"))?;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        // limiter and metrics of the client go by it
        request.extensions_mut().insert("get");
        let response = self
            .client
            .send(request)
            .await
            .map_err(|error| LiveCause::Unreachable(chain(&error)))?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let wait = head.headers.get(RETRY_AFTER);
            let wait = wait.and_then(|value| value.to_str().ok()?.parse().ok());
            // words are worth little: no failure is made of their absence
            let body = collect(body, MAX_REFUSAL).await.unwrap_or_default();
            return self.refused(
                key,
                head.status.as_u16(),
                wait.map(Duration::from_secs),
                &body,
            );
        }
        let body = collect(body, MAX_ITEM).await?;
        // whoever asks the server wants to know what it has, who wrote which field included
        let opener = Opener::new(None, Transform::none(), self.kind.holds_secrets(), None);
        let object = opener
            .open(&body)
            .map_err(|error| LiveCause::Unreadable(error.reason))?;
        if object.key() != key {
            return Err(LiveCause::Unreadable(
                "it is an object of another name".to_owned(),
            ));
        }
        Ok(Some(object))
    }

    /// The URL path of one object.
    fn path(&self, key: &Key) -> Result<String, LiveCause> {
        let scope = match (self.kind.namespaced, key.namespace()) {
            (true, None) => return Err(LiveCause::InvalidKey("its kind lives in namespaces")),
            (false, Some(_)) => {
                return Err(LiveCause::InvalidKey("its kind lives in no namespace"));
            }
            (true, Some(namespace)) => Scope::Namespace(segment(namespace)?.to_owned()),
            (false, None) => Scope::All,
        };
        Ok(format!(
            "{}/{}",
            self.kind.path(&scope),
            segment(key.name())?
        ))
    }

    fn refused(
        &self,
        key: &Key,
        code: u16,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> Result<Option<Object>, LiveCause> {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let message = status.message.unwrap_or_default();
        Err(match code {
            401 => LiveCause::Unauthorized(message),
            403 => LiveCause::Forbidden(message),
            // an unknown path is answered by the same code, but about no object
            404 if status.details.unwrap_or_default().name.as_deref() == Some(key.name()) => {
                return Ok(None);
            }
            404 => LiveCause::NoSuchResource(message),
            429 => LiveCause::Throttled {
                retry_after,
                message,
            },
            code => LiveCause::Refused { code, message },
        })
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Live<K> {
    /// The object as the server has it now; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`LiveError`], never for an object that is merely absent.
    ///
    /// # Cancellation safety
    ///
    /// It only reads.
    pub async fn get_live(&self, key: &Key) -> Result<Option<Arc<K>>, LiveError> {
        let Some(object) = self.get_live_object(key).await? else {
            return Ok(None);
        };
        object
            .decode()
            .map(Some)
            .map_err(|error| self.failed(key, error.into()))
    }
}

#[derive(Default, Deserialize)]
struct Status {
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
struct Details {
    name: Option<String>,
}

/// What a server takes for one part of a path.
fn segment(name: &str) -> Result<&str, LiveCause> {
    match name {
        "" => Err(LiveCause::InvalidKey("a part of it is empty")),
        "." | ".." => Err(LiveCause::InvalidKey("a part of it is . or ..")),
        _ if name.contains(['/', '%', '?', '#']) => {
            Err(LiveCause::InvalidKey("it contains /, %, ? or #"))
        }
        _ => Ok(name),
    }
}

async fn collect(mut body: kube::client::Body, limit: usize) -> Result<Vec<u8>, LiveCause> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| LiveCause::Unreachable(chain(&error)))?;
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() > limit {
            return Err(LiveCause::Unreadable(format!(
                "larger than the limit of {limit} bytes"
            )));
        }
    }
    Ok(read)
}

impl<K> Clone for Live<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            kind: self.kind.clone(),
            clock: self.clock.clone(),
            patience: self.patience,
            decoded: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Live<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "live reads of {}", self.kind)
    }
}
