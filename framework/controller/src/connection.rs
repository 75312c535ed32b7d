//! The actor that looks whether the API server answers, now and later: says its version when it does, and in one clear line why it does not.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_supervision::{Context, Link, supervised};

use crate::sync::lock;

/// The oldest and the newest minor version of Kubernetes 1 that this is tested with.
const TESTED: RangeInclusive<u32> = 20..=36;

/// How often a server that answers is asked again, and one that does not at least.
const EVERY: Duration = Duration::from_secs(10);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a server that does not answer is asked for the second time; from then on half as often each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// What is to be said of a server of this version, if anything: `v1.36.2`, or with a vendor's suffix.
fn doubt(version: &str) -> Option<String> {
    let numbers = version.strip_prefix('v').unwrap_or(version);
    let mut numbers = numbers.split('.');
    let mut number = || -> Option<u32> { numbers.next()?.parse().ok() };
    let tested = format!("1.{} to 1.{}", TESTED.start(), TESTED.end());
    match (number(), number()) {
        (Some(1), Some(minor)) if TESTED.contains(&minor) => None,
        (Some(1), Some(minor)) if minor < *TESTED.start() => Some(format!(
            "this server is older than what is tested ({tested}): some of its answers may not be understood"
        )),
        (Some(_), Some(_)) => Some(format!(
            "this server is newer than what is tested ({tested})"
        )),
        _ => Some(format!(
            "the version of this server is not understood; tested are {tested}"
        )),
    }
}

/// What is known of the API server, for readiness and logs.
#[derive(Clone)]
pub(crate) struct Connection {
    address: Arc<str>,
    state: Arc<Mutex<State>>,
}

/// How the server did when it was asked last.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Failed(String),
    Reached(Version),
}

/// What the server calls its version, or why it does not say.
type Version = Result<String, String>;

impl Connection {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.into(),
            state: Arc::new(Mutex::new(State::Unknown)),
        }
    }

    fn version(&self) -> Option<String> {
        match &*lock(&self.state) {
            State::Reached(version) => version.clone().ok(),
            State::Unknown | State::Failed(_) => None,
        }
    }

    /// # Errors
    ///
    /// As long as the server has not answered yet, or does not any more: why.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &*lock(&self.state) {
            State::Unknown => Err(format!("no answer from {} yet", self.address)),
            State::Failed(cause) => Err(format!("cannot reach {}: {cause}", self.address)),
            State::Reached(_) => Ok(()),
        }
    }

    /// Takes in how the server did now; whether that is another than before.
    fn set(&self, state: State) -> bool {
        let mut known = lock(&self.state);
        let differs = *known != state;
        *known = state;
        differs
    }
}

pub(crate) struct ConnectionActor {
    connection: Connection,
    client: kube::Client,
    link: Link,
}

impl ConnectionActor {
    pub(crate) fn new(connection: Connection, client: kube::Client, link: &Link) -> Self {
        let seen = connection.clone();
        link.report("server version", move || seen.version().into());
        Self {
            connection,
            client,
            link: link.clone(),
        }
    }
}

supervised!(ConnectionActor);

impl Actor for ConnectionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let (connection, client) = (self.connection.clone(), self.client.clone());
        let watch = watch(connection, client, self.link.clone());
        ctx.spawn(watch.into_actor(self));
    }
}

/// Asks for ever: a server that hangs ends no stream, so that whoever only watches takes its silence for peace.
async fn watch(connection: Connection, client: kube::Client, link: Link) {
    let (clock, entropy) = (link.clock(), link.entropy());
    let mut delay = FIRST_RETRY;
    loop {
        let asked = tokio::select! {
            biased;
            asked = ask(&client) => asked,
            () = clock.sleep(PATIENCE) => Err(format!("no answer within {PATIENCE:?}")),
        };
        match asked {
            Ok(version) => {
                delay = FIRST_RETRY;
                if connection.set(State::Reached(version.clone())) {
                    reached(&connection.address, version);
                }
                link.degraded(None);
                clock.sleep(EVERY).await;
            }
            Err(cause) => {
                tracing::error!(address = %connection.address, %cause, retry_in = ?delay, "cannot reach the API server");
                connection.set(State::Failed(cause));
                link.degraded(connection.check().err());
                clock.sleep(entropy.jitter(delay, 0.2)).await;
                delay = (delay * 2).min(EVERY);
            }
        }
    }
}

fn reached(address: &str, version: Version) {
    match version {
        Ok(version) => {
            tracing::info!(%address, %version, "connected to the API server");
            if let Some(doubt) = doubt(&version) {
                tracing::warn!(%version, "{doubt}");
            }
        }
        Err(why) => {
            tracing::info!(%address, %why, "connected to the API server, which does not tell its version");
        }
    }
}

/// # Errors
///
/// Why there is no answer, or none that lets one hope for others.
async fn ask(client: &kube::Client) -> Result<Version, String> {
    match client.apiserver_version().await {
        Ok(version) => Ok(Ok(version.git_version)),
        // who refuses this is there: rights to it can be taken away, and those who ask too much are turned away by a server that works
        Err(kube::Error::Api(refused)) if matches!(refused.code, 403 | 404 | 429) => {
            Ok(Err(refused.message))
        }
        Err(error) => Err(crate::client::root_cause(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_outside_of_what_is_tested_is_doubted() {
        for version in [
            "v1.20.15",
            "v1.36.0",
            "1.31.4",
            "v1.28.9-gke.100",
            "v1.29.3+k3s1",
        ] {
            assert_eq!(doubt(version), None, "{version}");
        }
        for (version, word) in [
            ("v1.19.16", "older"),
            ("v1.99.0", "newer"),
            ("v2.0.0", "newer"),
            ("", "not understood"),
            ("unknown", "not understood"),
        ] {
            assert!(
                doubt(version).is_some_and(|doubt| doubt.contains(word)),
                "{version}"
            );
        }
    }
}
