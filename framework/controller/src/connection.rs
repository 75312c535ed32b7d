//! The actor that finds the API server: says its version when it answers, and in one clear line why it does not.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_supervision::{Clock, Context, Entropy, Link, supervised};

use crate::sync::lock;

/// The oldest and the newest minor version of Kubernetes 1 that this is tested with.
const TESTED: RangeInclusive<u32> = 20..=36;

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

enum State {
    Unknown,
    Failed(String),
    Reached(String),
}

impl Connection {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.into(),
            state: Arc::new(Mutex::new(State::Unknown)),
        }
    }

    fn version(&self) -> Option<String> {
        match &*lock(&self.state) {
            State::Reached(version) => Some(version.clone()),
            _ => None,
        }
    }

    /// # Errors
    ///
    /// As long as the server has not answered yet: why.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &*lock(&self.state) {
            State::Unknown => Err(format!("no answer from {} yet", self.address)),
            State::Failed(cause) => Err(format!("cannot reach {}: {cause}", self.address)),
            State::Reached(_) => Ok(()),
        }
    }

    fn set(&self, state: State) {
        *lock(&self.state) = state;
    }
}

pub(crate) struct ConnectionActor {
    connection: Connection,
    client: kube::Client,
    clock: Clock,
    entropy: Entropy,
}

impl ConnectionActor {
    pub(crate) fn new(connection: Connection, client: kube::Client, link: &Link) -> Self {
        let seen = connection.clone();
        link.report("server version", move || seen.version().into());
        Self {
            connection,
            client,
            clock: link.clock().clone(),
            entropy: link.entropy().clone(),
        }
    }
}

supervised!(ConnectionActor);

impl Actor for ConnectionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let (connection, client) = (self.connection.clone(), self.client.clone());
        let probe = probe(connection, client, self.clock.clone(), self.entropy.clone());
        ctx.spawn(probe.into_actor(self));
    }
}

async fn probe(connection: Connection, client: kube::Client, clock: Clock, entropy: Entropy) {
    let mut delay = Duration::from_secs(1);
    loop {
        let cause = tokio::select! {
            biased;
            answer = client.apiserver_version() => match answer {
                Ok(version) => {
                    let version = version.git_version;
                    tracing::info!(address = %connection.address, %version, "connected to the API server");
                    if let Some(doubt) = doubt(&version) {
                        tracing::warn!(%version, "{doubt}");
                    }
                    connection.set(State::Reached(version));
                    return;
                }
                Err(error) => crate::client::root_cause(&error),
            },
            () = clock.sleep(Duration::from_secs(10)) => "no answer within 10 s".to_owned(),
        };
        tracing::error!(address = %connection.address, %cause, retry_in = ?delay, "cannot reach the API server");
        connection.set(State::Failed(cause));
        clock.sleep(entropy.jitter(delay, 0.2)).await;
        delay = (delay * 2).min(Duration::from_secs(30));
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
