//! kube-rs' reflector with its defaults, as its documentation shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use boatswain_supervision::Clock;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Config, ResourceExt as _};

use crate::contestant::{Cache, obey};

struct Peer {
    store: Store<Pod>,
    calls: Arc<AtomicU64>,
}

/// Fills a store from the server at `address` and obeys; `lean` leaves `managedFields` out of it.
pub(crate) fn run(address: &str, lean: bool) {
    let clock = Clock::system();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let begun = clock.now();
    let config = Config::new(address.parse().expect("an address"));
    let client = Client::try_from(config).expect("a client");
    let (store, writer) = reflector::store();
    let pods = watcher(Api::<Pod>::all(client), watcher::Config::default())
        .default_backoff()
        .modify(move |pod| {
            if lean {
                pod.metadata.managed_fields = None;
            }
        });
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    runtime.spawn(
        pods.reflect(writer)
            .applied_objects()
            .for_each(move |applied| {
                counted.fetch_add(u64::from(applied.is_ok()), Relaxed);
                std::future::ready(())
            }),
    );
    runtime
        .block_on(store.wait_until_ready())
        .expect("the writer lives");
    let seconds = (clock.now() - begun).as_secs_f64();
    obey(&Peer { store, calls }, seconds);
}

impl Cache for Peer {
    type Key = ObjectRef<Pod>;

    fn key(&self, namespace: &str, name: &str) -> ObjectRef<Pod> {
        ObjectRef::new(name).within(namespace)
    }

    fn version(&self, key: &ObjectRef<Pod>) -> Option<String> {
        self.store.get(key)?.resource_version()
    }

    fn read(&self, key: &ObjectRef<Pod>) -> bool {
        self.store
            .get(key)
            .is_some_and(|pod| crate::looked_at(&pod))
    }

    fn raw(&self, _: &ObjectRef<Pod>) -> bool {
        false
    }

    fn keys(&self) -> Vec<ObjectRef<Pod>> {
        let state = self.store.state();
        let mut keys: Vec<_> = state
            .iter()
            .map(|pod| ObjectRef::from_obj(&**pod))
            .collect();
        keys.sort_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        keys
    }

    fn objects(&self) -> u64 {
        self.store.len() as u64
    }

    fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }
}
