//! How a manager reaches the API server.

use boatswain_supervision::Clock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Handle;
use tower::{BoxError, service_fn};

use crate::{
    client::{self, ClientLimits, Fencing, Requests},
    error::StartError,
    leader::Leadership,
    options::Options,
};

/// The clients of a manager.
pub(super) struct Links {
    /// For everything but the lease. Where there is one, nothing but reads passes while it is not surely ours.
    pub(super) client: kube::Client,
    /// For Events alone: they neither wait for what reconcilers write nor keep it waiting. Fenced, too.
    pub(super) events: kube::Client,
    pub(super) address: String,
    /// What these clients ask, without that for the lease; nothing where they were made elsewhere.
    pub(super) requests: Requests,
    pub(super) leader: Option<Leader>,
}

/// A lease, and the client that it has for itself.
#[derive(Clone)]
pub(crate) struct Leader {
    pub(crate) leadership: Leadership,
    pub(crate) client: kube::Client,
}

impl Links {
    /// Over a client made elsewhere.
    pub(super) fn over(
        client: kube::Client,
        leadership: Option<Leadership>,
        clock: &Clock,
    ) -> Self {
        let address = "in process".to_owned();
        let requests = Requests::to(&address);
        let Some(leadership) = leadership else {
            return Self {
                events: client.clone(),
                client,
                address,
                requests,
                leader: None,
            };
        };
        let through = client.clone();
        let way = service_fn(move |request| {
            let client = through.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        let namespace = client.default_namespace().to_owned();
        let fencing = Fencing::new(leadership.fence(), clock.clone(), way.clone(), way);
        let fenced = kube::Client::new(fencing, namespace);
        Self {
            events: fenced.clone(),
            client: fenced,
            address,
            requests,
            leader: Some(Leader { leadership, client }),
        }
    }

    /// To the cluster that `options` name; connections live on the first of `runtimes`, those of the lease on the second.
    pub(super) async fn to_cluster(
        options: &Options,
        leadership: Option<Leadership>,
        clock: &Clock,
        runtimes: [&Handle; 2],
    ) -> Result<Self, StartError> {
        let config = cluster_config(options).await?;
        let address = config.cluster_url.to_string();
        let unusable = |error: kube::Error| StartError::Client {
            address: address.clone(),
            cause: client::root_cause(&error),
        };
        let [io, own] = runtimes;
        let connections = &options.connections;
        let leader = match leadership {
            Some(leadership) => {
                let client = boatswain_cache::connect(config.clone(), connections, own);
                let client = client.map_err(&unusable)?;
                Some(Leader { leadership, client })
            }
            None => None,
        };
        let fence = leader.as_ref().map(|leader| leader.leadership.fence());
        let requests = Requests::to(&address);
        let connect = |limits| {
            let (config, clock, fence) = (config.clone(), clock.clone(), fence.clone());
            client::connect(config, connections, limits, clock, fence, &requests, io)
        };
        Ok(Self {
            client: connect(options.limits).map_err(&unusable)?,
            events: connect(ClientLimits::for_events()).map_err(&unusable)?,
            address,
            requests,
            leader,
        })
    }
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
