//! The actor that finds the API server: says its version when it answers, and in one clear line why it does not.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_supervision::{Clock, Context, Entropy, Link, supervised};

use crate::sync::lock;

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
