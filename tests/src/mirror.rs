//! An informer by itself, without a manager.

use std::{
    collections::BTreeMap, net::SocketAddr, path::Path, sync::Arc, thread::JoinHandle,
    time::Duration,
};

use boatswain_cache::{
    Cause, Change, ConnectOptions, InformerCore, InformerOptions, InformerStatus, Object,
    Selection, Subscription, informer,
};
use boatswain_supervision::{Clock, Tree, TreeOptions};
use kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams},
    config::Kubeconfig,
};
use tokio::{runtime::Handle, sync::oneshot};

use crate::eventually;

/// A client of the server the kubeconfig names, or of what listens at `through` instead, whose connections live on this runtime.
pub async fn client(
    kubeconfig: &Path,
    through: Option<SocketAddr>,
    options: &ConnectOptions,
) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let mut config = Config::from_custom_kubeconfig(file, &Default::default())
        .await
        .expect("a configuration");
    if let Some(address) = through {
        let scheme = config.cluster_url.scheme_str().unwrap_or("https");
        config.cluster_url = format!("{scheme}://{address}").parse().expect("a URL");
    }
    boatswain_cache::connect(config, options, &Handle::current()).expect("a client")
}

/// An informer on a thread of its own, and a subscriber that notes what it is told.
pub struct Mirror {
    core: Arc<InformerCore>,
    subscription: Subscription,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    /// Starts one of `selection` against the server the kubeconfig names, or what listens at `through` instead.
    pub async fn start(
        kubeconfig: &Path,
        through: Option<SocketAddr>,
        selection: Selection,
        options: InformerOptions,
    ) -> Self {
        let client = client(kubeconfig, through, &ConnectOptions::default()).await;
        Self::with(client, selection, options)
    }

    /// Starts one of `selection` that asks by way of `client`.
    pub fn with(client: Client, selection: Selection, options: InformerOptions) -> Self {
        let core = InformerCore::select(selection);
        let spec = informer(core.clone(), client, options);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            actix::System::new().block_on(async move {
                let tree = Tree::start(spec, TreeOptions::default())
                    .await
                    .expect("an informer");
                let _ = stopped.await;
                tree.stop(Duration::from_secs(10))
                    .await
                    .expect("an orderly stop");
            });
        });
        Self {
            subscription: core.subscribe("test", || {}),
            core,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The informer's core.
    pub fn core(&self) -> &Arc<InformerCore> {
        &self.core
    }

    /// How the informer is.
    pub fn status(&self) -> InformerStatus {
        self.core.status(Clock::system().now())
    }

    /// Lists begun for `reason`.
    pub fn relists(&self, reason: &str) -> u64 {
        let relists = self.status().counters.relists;
        relists.get(reason).copied().unwrap_or_default()
    }

    /// What the store holds: versions by name.
    pub fn objects(&self) -> BTreeMap<String, String> {
        let objects = boatswain_cache::Lister::<DynamicObject>::new(self.core.clone())
            .list_objects()
            .unwrap_or_default();
        let versions = |object: &Object| {
            let version = object.meta().resource_version.to_string();
            (object.key().name().to_owned(), version)
        };
        objects.iter().map(versions).collect()
    }

    /// Waits until the store is what `api` lists, and a watch is open.
    pub async fn is_as<K>(&self, api: &Api<K>)
    where
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug + kube::Resource,
    {
        eventually("the mirror is as the server", async || {
            let list = api
                .list(&ListParams::default())
                .await
                .map_err(|e| e.to_string())?;
            let there: BTreeMap<_, _> = list
                .items
                .iter()
                .map(|object| {
                    let meta = object.meta().clone();
                    (
                        meta.name.unwrap_or_default(),
                        meta.resource_version.unwrap_or_default(),
                    )
                })
                .collect();
            let here = self.objects();
            if here == there && self.core.fresh() {
                Ok(())
            } else {
                Err(format!("{here:?}, not {there:?}: {:#?}", self.status()))
            }
        })
        .await;
    }

    /// What was told since the last call, in order: `created a`, `updated a`, `deleted a`, or `vanished a` where nobody saw the end of it.
    pub fn heard(&self) -> Vec<String> {
        let mut heard = Vec::new();
        while let Some(batch) = self.subscription.take(100) {
            // clusters put one into every namespace, sooner or later
            let ours = |change: &Change| change.key().name() != "kube-root-ca.crt";
            let changes = batch.changes().iter().filter(|(change, _)| ours(change));
            let told = changes.map(|(change, cause)| {
                let what = match change {
                    Change::Created(_) if *cause == Cause::Initial => "found",
                    Change::Created(_) => "created",
                    Change::Updated { .. } => "updated",
                    Change::Deleted { certain: true, .. } => "deleted",
                    Change::Deleted { certain: false, .. } => "vanished",
                };
                format!("{what} {}", change.key().name())
            });
            heard.extend(told);
            batch.ack();
        }
        heard
    }

    /// As [`Mirror::heard`], sorted: of several keys in one list none is first.
    pub fn heard_sorted(&self) -> Vec<String> {
        let mut heard = self.heard();
        heard.sort();
        heard
    }

    /// Stops in order.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            tokio::task::spawn_blocking(|| thread.join().expect("an informer that ends"))
                .await
                .expect("joined");
        }
    }
}
