//! A client that remembers what is written through it.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use boatswain_cache::{Key, Uid, Version, envelope};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde::Deserialize;
use tower::{BoxError, Service};

use super::again::patiently;
use crate::{context::Surroundings, dispatch::Target, explain::Trail};

/// Subresources whose requests write nothing to their object.
const NO_WRITES: [&str; 6] = ["token", "exec", "attach", "portforward", "proxy", "log"];

/// A client like that of `surroundings`, which remembers whatever is written through it for the next run of `key`.
///
/// Its queue is served on this thread. Where there is no runtime to serve it, it is the client of `surroundings` itself.
pub(crate) fn recording(
    surroundings: &Arc<Surroundings>,
    key: &Key,
    trail: &Arc<Trail>,
) -> kube::Client {
    let client = surroundings.client.clone();
    if tokio::runtime::Handle::try_current().is_err() {
        return client;
    }
    let namespace = client.default_namespace().to_owned();
    let recorder = Recorder(Arc::new(Inner {
        surroundings: surroundings.clone(),
        key: key.clone(),
        trail: Arc::downgrade(trail),
    }));
    kube::Client::new(recorder, namespace)
}

#[derive(Clone)]
struct Recorder(Arc<Inner>);

struct Inner {
    surroundings: Arc<Surroundings>,
    key: Key,
    /// It holds this client.
    trail: Weak<Trail>,
}

/// A request under way whose outcome is unknown until it is told; also if whoever waits for it is dropped.
struct Sent<'a> {
    by: &'a Inner,
    target: &'a Target,
    is_known: bool,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.is_known {
            let Surroundings { writes, clock, .. } = &*self.by.surroundings;
            writes.unknown(&self.by.key, self.target, clock.now());
        }
    }
}

impl Service<Request<Body>> for Recorder {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = self.0.clone();
        Box::pin(async move { inner.tell(request).await.map_err(BoxError::from) })
    }
}

impl Inner {
    /// Sends it, and tells the run's trail of it if it wrote.
    async fn tell(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let Some(target) = target(&request) else {
            return self.send(request).await;
        };
        let method = request.method().clone();
        let answer = self.send(request).await;
        if let Some(trail) = self.trail.upgrade() {
            trail.wrote(|| match &answer {
                Ok(answer) => format!("{method} {target}: {}", answer.status()),
                Err(error) => format!("{method} {target}: {error}"),
            });
        }
        answer
    }

    async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let Surroundings {
            client,
            writes,
            clock,
            ..
        } = &*self.surroundings;
        let written = target(&request).filter(|target| writes.concern(target));
        let Some(target) = written else {
            return patiently(client, clock, request).await;
        };
        let method = request.method().clone();
        let echoes = self.surroundings.echoes.concern(&self.key, &target);
        let (request, said) = if method == Method::DELETE || echoes {
            look_into(request).await?
        } else {
            (request, Said::default())
        };
        if !said.dry_run.is_empty() {
            return patiently(client, clock, request).await;
        }
        let mut sent = Sent {
            by: self,
            target: &target,
            is_known: false,
        };
        let (head, body) = patiently(client, clock, request).await?.into_parts();
        let code = head.status;
        if code.is_server_error() || code == StatusCode::REQUEST_TIMEOUT {
            return Ok(Response::from_parts(head, body));
        }
        if !code.is_success() && code != StatusCode::CONFLICT {
            sent.is_known = true;
            return Ok(Response::from_parts(head, body));
        }
        let bytes = body.collect_bytes().await?;
        sent.is_known = true;
        self.note(&target, &method, code, &bytes);
        if echoes
            && let Some(from) = said.replaces()
            && let Ok(now) = envelope::open(&bytes)
        {
            let to = now.meta().resource_version.clone();
            self.surroundings.echoes.made(&self.key, from, to);
        }
        Ok(Response::from_parts(head, Body::from(bytes)))
    }

    /// Remembers what the server said it did.
    fn note(&self, target: &Target, method: &Method, code: StatusCode, answer: &Bytes) {
        let Surroundings { writes, clock, .. } = &*self.surroundings;
        let now = clock.now();
        if code == StatusCode::CONFLICT {
            // the cache is behind, or of another opinion: whatever is there is what the next run should see
            let mut target = target.clone();
            target.name = target.name.or_else(|| Status::read(answer).details.name);
            if target.name.is_some() {
                writes.unknown(&self.key, &target, now);
            }
            return;
        }
        let object = envelope::open(answer).ok();
        match object {
            Some(object) if *method == Method::DELETE => {
                let grace = object.path("metadata.deletionGracePeriodSeconds");
                let waits =
                    !object.finalizers().is_empty() || grace.is_some_and(|grace| grace != "0");
                if waits {
                    // it was marked for deletion, which is a write like others
                    writes.wrote(&self.key, target, &object, true, now);
                } else {
                    let meta = object.meta();
                    let last = (Some(meta.uid.clone()), Some(meta.resource_version.clone()));
                    writes.removed(&self.key, target, last, now);
                }
            }
            Some(object) => {
                // what a subresource is answered with may be of another kind than what it belongs to
                let whole = matches!(target.subresource.as_deref(), None | Some("status"));
                let same = target
                    .name
                    .as_deref()
                    .is_none_or(|name| name == object.key().name());
                if same {
                    writes.wrote(&self.key, target, &object, whole, now);
                }
            }
            None if *method == Method::DELETE && target.name.is_some() => {
                let uid = Status::read(answer).details.uid;
                writes.removed(
                    &self.key,
                    target,
                    (uid.as_deref().map(Uid::from), None),
                    now,
                );
            }
            None => writes.unknown(&self.key, target, now),
        }
    }
}

/// What the body of a request says.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Said {
    /// Of a deletion, whose options it is.
    dry_run: Vec<String>,
    /// Of a write.
    metadata: SaidMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SaidMeta {
    resource_version: Option<String>,
}

impl Said {
    /// The state that the request is to replace, and no other.
    fn replaces(&self) -> Option<Version> {
        let version = self.metadata.resource_version.as_deref();
        version
            .filter(|version| !version.is_empty())
            .map(Version::new)
    }
}

/// The request again, and what its body says.
async fn look_into(request: Request<Body>) -> kube::Result<(Request<Body>, Said)> {
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().await?;
    let said = serde_json::from_slice(&bytes).unwrap_or_default();
    Ok((Request::from_parts(head, Body::from(bytes)), said))
}

/// What a request writes to; `None` for one that writes nothing, or to nothing that has a name in the API.
fn target(request: &Request<Body>) -> Option<Target> {
    let method = request.method();
    if ![Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method) {
        return None;
    }
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|part| part.starts_with("dryRun=")) {
        return None;
    }
    let mut parts = request.uri().path().trim_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let _version = parts.next()?;
    let mut rest: Vec<&str> = parts.collect();
    let mut namespace = None;
    if let ["namespaces", name, resource, ..] = rest[..]
        && !matches!(resource, "status" | "finalize")
    {
        namespace = Some(name.to_owned());
        rest.drain(..2);
    }
    let (plural, name, subresource) = match rest[..] {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource, ..] => (plural, Some(name), Some(subresource)),
        [] => return None,
    };
    if subresource.is_some_and(|subresource| NO_WRITES.contains(&subresource)) {
        return None;
    }
    Some(Target {
        group: group.to_owned(),
        plural: plural.to_owned(),
        namespace,
        name: name.map(ToOwned::to_owned),
        subresource: subresource.map(ToOwned::to_owned),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    name: Option<String>,
    uid: Option<String>,
}

impl Status {
    fn read(answer: &Bytes) -> Self {
        serde_json::from_slice(answer).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
