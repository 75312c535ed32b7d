//! Boatswain's cache as a manager runs it: requests on a runtime of their own, reflector and indexer on a thread each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use actix_rt::Arbiter;
use boatswain_cache::{
    ConnectOptions, InformerCore, InformerOptions, Key, Kind, Layout, Lister, Selection,
    StoreOptions, Subscription, connect, informer,
};
use boatswain_supervision::{Clock, Thread, Tree, TreeOptions};
use k8s_openapi::api::core::v1::Pod;

use crate::contestant::{Cache, obey};

struct Ours {
    core: Arc<InformerCore>,
    lister: Lister<Pod>,
    calls: Arc<AtomicU64>,
}

/// Fills a cache from the server at `address` and obeys; `typed` keeps every pod decoded.
pub(crate) fn run(address: &str, typed: bool) {
    let clock = Clock::system();
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let begun = clock.now();
    let config = kube::Config::new(address.parse().expect("an address"));
    let client = connect(config, &ConnectOptions::default(), io.handle()).expect("a client");
    let mut store = StoreOptions::default();
    if typed {
        store.layout = Layout::typed::<Pod>();
    }
    let core = InformerCore::with(Selection::new(Kind::of::<Pod>()), store);
    let calls = Arc::new(AtomicU64::new(0));
    subscribe(&core, &calls);
    let shared = core.clone();
    std::thread::spawn(move || {
        actix_rt::System::new().block_on(async move {
            let (informers, indexers) = (Arbiter::new(), Arbiter::new());
            let options = InformerOptions {
                indexer: Some(Thread::arbiter("indexers", &indexers.handle())),
                ..InformerOptions::default()
            };
            let spec = informer(shared, client, options)
                .thread(Thread::arbiter("informers", &informers.handle()));
            let mut tree = Tree::start(spec, TreeOptions::default())
                .await
                .expect("started");
            tree.exited().await;
        });
    });
    io.block_on(core.wait_synced());
    let seconds = (clock.now() - begun).as_secs_f64();
    let cache = Ours {
        lister: Lister::new(core.clone()),
        core,
        calls,
    };
    obey(&cache, seconds);
}

/// Counts changes on a thread of its own, as a controller's trigger would hear of them.
fn subscribe(core: &Arc<InformerCore>, calls: &Arc<AtomicU64>) {
    let (wake, woken) = sync_channel(1);
    let subscription = core.subscribe("bench", move || {
        // full means that it is woken already
        let _ = wake.try_send(());
    });
    let calls = calls.clone();
    std::thread::spawn(move || hear(&subscription, &woken, &calls));
}

fn hear(subscription: &Subscription, woken: &Receiver<()>, calls: &AtomicU64) {
    while woken.recv_timeout(Duration::MAX).is_ok() {
        while let Some(batch) = subscription.take(512) {
            calls.fetch_add(batch.changes().len() as u64, Relaxed);
            batch.ack();
        }
    }
}

impl Cache for Ours {
    type Key = Key;

    fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(Some(namespace), name)
    }

    fn version(&self, key: &Key) -> Option<String> {
        let object = self.core.get(key)?;
        Some(object.meta().resource_version.to_string())
    }

    fn read(&self, key: &Key) -> bool {
        let pod = self.lister.get(key).expect("readable");
        pod.is_some_and(|pod| crate::looked_at(&pod))
    }

    fn raw(&self, key: &Key) -> bool {
        let object = self.lister.get_object(key).expect("readable");
        object.is_some_and(|object| object.path("spec.nodeName").is_some())
    }

    fn keys(&self) -> Vec<Key> {
        let objects = self.lister.list_objects().expect("synced");
        objects.iter().map(|object| object.key().clone()).collect()
    }

    fn objects(&self) -> u64 {
        self.core.status(Clock::system().now()).objects as u64
    }

    fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }
}
