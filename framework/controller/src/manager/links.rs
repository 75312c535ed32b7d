//! How a manager reaches the API server.

use std::sync::Arc;

use boatswain_cache::ConnectOptions;
use boatswain_supervision::Clock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Handle;
use tower::{BoxError, service_fn};

use crate::{
    client::{self, ClientLimits, Fencing, LimitLayer, Requests},
    error::StartError,
    leader::Fence,
    options::Options,
};

/// How a manager reaches the API server: makes its clients. A clone shares limits with it.
#[derive(Clone)]
pub(super) struct Links {
    way: Way,
    clock: Clock,
    pub(super) address: String,
    /// What these clients ask, without those for leases; nothing where they were made elsewhere.
    pub(super) requests: Requests,
}

#[derive(Clone)]
enum Way {
    /// Over a client made elsewhere; what others need lives on the runtime.
    Over(kube::Client, Handle),
    To(Arc<Cluster>),
}

struct Cluster {
    config: kube::Config,
    connections: ConnectOptions,
    limit: LimitLayer,
    events: LimitLayer,
    /// Connections live here.
    io: Handle,
    /// Those of leases live here.
    own: Handle,
}

impl Links {
    /// Over a client made elsewhere. Must be called where a runtime is.
    pub(super) fn over(client: kube::Client, clock: &Clock) -> Self {
        let address = "in process".to_owned();
        Self {
            requests: Requests::to(&address),
            way: Way::Over(client, Handle::current()),
            clock: clock.clone(),
            address,
        }
    }

    /// To the cluster that `options` name; connections live on the first of `runtimes`, those of leases on the second.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future leaves nothing behind.
    pub(super) async fn to_cluster(
        options: &Options,
        clock: Clock,
        [io, own]: [Handle; 2],
    ) -> Result<Self, StartError> {
        let named = options.clone();
        let config = io.spawn(async move { cluster_config(&named).await });
        let config = config.await.map_err(died)??;
        let address = config.cluster_url.to_string();
        let limit = |limits| LimitLayer::new(limits, clock.clone());
        let cluster = Cluster {
            config,
            connections: options.connections.clone(),
            limit: limit(options.limits),
            events: limit(ClientLimits::for_events()),
            io,
            own,
        };
        Ok(Self {
            way: Way::To(Arc::new(cluster)),
            requests: Requests::to(&address),
            address,
            clock,
        })
    }

    /// A client for everything but leases and Events. With a `fence` nothing but reads passes while that is closed.
    ///
    /// A program that is to give credentials may block a thread for as long as it likes: nothing else waits for that.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future does not wait for such a program.
    pub(super) async fn client(&self, fence: Option<Fence>) -> Result<kube::Client, StartError> {
        self.fenced(fence, |cluster| &cluster.limit).await
    }

    /// A client for Events, with limits of its own. Else as [`Links::client`].
    pub(super) async fn for_events(
        &self,
        fence: Option<Fence>,
    ) -> Result<kube::Client, StartError> {
        self.fenced(fence, |cluster| &cluster.events).await
    }

    /// A client for leases: no limit, no queue and no other's connection can make them late.
    pub(super) async fn for_leases(&self) -> Result<kube::Client, StartError> {
        match &self.way {
            Way::Over(client, _) => Ok(client.clone()),
            Way::To(cluster) => {
                self.made(cluster, |_, cluster| {
                    let Cluster {
                        config,
                        connections,
                        own,
                        ..
                    } = cluster;
                    boatswain_cache::connect(config.clone(), connections, own)
                })
                .await
            }
        }
    }

    async fn fenced(
        &self,
        fence: Option<Fence>,
        limit: fn(&Cluster) -> &LimitLayer,
    ) -> Result<kube::Client, StartError> {
        match (&self.way, fence) {
            (Way::Over(client, _), None) => Ok(client.clone()),
            (Way::Over(client, io), Some(fence)) => {
                let through = client.clone();
                let way = service_fn(move |request| {
                    let client = through.clone();
                    async move { client.send(request).await.map_err(BoxError::from) }
                });
                let namespace = client.default_namespace().to_owned();
                let fencing = Fencing::new(fence, self.clock.clone(), way.clone(), way);
                // a client keeps a task of its own
                let _entered = io.enter();
                Ok(kube::Client::new(fencing, namespace))
            }
            (Way::To(cluster), fence) => {
                self.made(cluster, move |links, cluster| {
                    let Cluster {
                        config,
                        connections,
                        io,
                        ..
                    } = cluster;
                    let (clock, requests) = (links.clock.clone(), &links.requests);
                    client::connect(
                        config.clone(),
                        connections,
                        limit(cluster),
                        clock,
                        fence,
                        requests,
                        io,
                    )
                })
                .await
            }
        }
    }

    /// What `make` makes, away from all that must not wait.
    async fn made(
        &self,
        cluster: &Arc<Cluster>,
        make: impl FnOnce(&Self, &Cluster) -> Result<kube::Client, kube::Error> + Send + 'static,
    ) -> Result<kube::Client, StartError> {
        let (links, made_for) = (self.clone(), cluster.clone());
        let made = cluster.io.spawn_blocking(move || make(&links, &made_for));
        let made = made.await.map_err(died)?;
        made.map_err(|error| StartError::Client {
            address: self.address.clone(),
            cause: client::root_cause(&error),
        })
    }
}

fn died(error: tokio::task::JoinError) -> StartError {
    StartError::Threads(std::io::Error::other(error))
}

async fn cluster_config(options: &Options) -> Result<kube::Config, StartError> {
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    // the first line only: the rest quotes the file, and with it credentials
    let error = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        StartError::Config(text.lines().next().unwrap_or_default().to_owned())
    };
    match &options.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|e| error(&e))?;
            kube::Config::from_custom_kubeconfig(file, &chosen)
                .await
                .map_err(|e| error(&e))
        }
        None if options.context.is_some() => kube::Config::from_kubeconfig(&chosen)
            .await
            .map_err(|e| error(&e)),
        None => kube::Config::infer().await.map_err(|e| error(&e)),
    }
}
