//! Requests with the credentials of a configuration, which are read anew when the server does not know them (any more).
//!
//! kube reads a token file once a minute, and runs an exec plugin when what that gave expires. A token that is revoked before that costs every request until
//! then: so the first answer 401 makes us look whether there are others by now.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use boatswain_supervision::Clock;
use http::{Request, Response, StatusCode};
use kube::client::{Body, ConfigExt as _, DynBody};
use tokio::sync::Mutex;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _, util::BoxCloneSyncService};

use super::copy_request;

/// Credentials are not read anew more often: those that were just read are refused, too.
const REST: Duration = Duration::from_secs(10);

type Way = BoxCloneSyncService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Sends requests with credentials.
#[derive(Clone)]
pub(super) struct Signing {
    inner: Arc<Inner>,
}

struct Inner {
    config: kube::Config,
    /// Without credentials.
    bare: Way,
    clock: Clock,
    signed: Mutex<Signed>,
}

struct Signed {
    way: Way,
    /// How often credentials were read anew.
    generation: u64,
    read_at: Option<Instant>,
}

impl Signing {
    /// # Errors
    ///
    /// When there are no credentials where the configuration says.
    pub(super) fn new(config: kube::Config, bare: Way, clock: Clock) -> Result<Self, kube::Error> {
        let signed = Signed {
            way: sign(&config, &bare)?,
            generation: 0,
            read_at: None,
        };
        let inner = Arc::new(Inner {
            config,
            bare,
            clock,
            signed: Mutex::new(signed),
        });
        Ok(Self { inner })
    }
}

/// Reads the credentials of `config`.
fn sign(config: &kube::Config, bare: &Way) -> Result<Way, kube::Error> {
    let signed = ServiceBuilder::new()
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(bare.clone());
    Ok(BoxCloneSyncService::new(signed))
}

impl Inner {
    async fn send(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<Box<DynBody>>, BoxError> {
        let again = self
            .are_elsewhere()
            .then(|| copy_request(&request))
            .flatten();
        let (way, generation) = {
            let signed = self.signed.lock().await;
            (signed.way.clone(), signed.generation)
        };
        let answer = way.oneshot(request).await?;
        let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        match self.renewed(generation).await {
            Some(way) => way.oneshot(again).await,
            None => Ok(answer),
        }
    }

    /// Whether the configuration only says where credentials are.
    fn are_elsewhere(&self) -> bool {
        let auth = &self.config.auth_info;
        let plugin = auth.exec.is_some() || auth.auth_provider.is_some();
        auth.token.is_none() && (auth.token_file.is_some() || plugin)
    }

    /// A way with newer credentials than those of `generation`, if it is worth trying.
    async fn renewed(self: &Arc<Self>, generation: u64) -> Option<Way> {
        // held while they are read: others wait for the same
        let mut signed = self.signed.lock().await;
        if signed.generation != generation {
            return Some(signed.way.clone());
        }
        let now = self.clock.now();
        if signed.read_at.is_some_and(|at| now < at + REST) {
            return None;
        }
        signed.read_at = Some(now);
        let this = self.clone();
        // a plugin is another process, which takes its time
        let read = tokio::task::spawn_blocking(move || sign(&this.config, &this.bare));
        match read.await {
            Ok(Ok(way)) => {
                tracing::info!(
                    "the server refused our credentials (401): they have been read anew"
                );
                signed.generation += 1;
                signed.way = way;
                Some(signed.way.clone())
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    "the server refused our credentials (401), and there are no others: {error}"
                );
                None
            }
            Err(_) => None,
        }
    }
}

impl Service<Request<Body>> for Signing {
    type Response = Response<Box<DynBody>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.inner.clone().send(request))
    }
}

#[cfg(test)]
mod tests;
