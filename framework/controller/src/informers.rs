//! The informers of a manager: one per kind and namespace, however many controllers use it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use boatswain_cache::{InformerCore, Kind, Scope, Selection, SharedInformer, SharedInformers};
use boatswain_supervision::Clock;

pub(crate) struct Informers {
    shared: SharedInformers,
    namespaces: Vec<String>,
    cores: HashMap<Kind, Vec<Arc<InformerCore>>>,
    used: Vec<SharedInformer>,
}

impl Informers {
    /// `namespaces` bounds what namespaced kinds are read from; empty means all.
    pub(crate) fn new(shared: SharedInformers, mut namespaces: Vec<String>) -> Self {
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            shared,
            namespaces,
            cores: HashMap::new(),
            used: Vec::new(),
        }
    }

    /// The informers of `kind`, made at the first call.
    pub(crate) fn of(&mut self, kind: &Kind) -> &[Arc<InformerCore>] {
        let Self {
            shared,
            namespaces,
            cores,
            used,
        } = self;
        cores.entry(kind.clone()).or_insert_with(|| {
            let scopes = if kind.namespaced && !namespaces.is_empty() {
                namespaces.iter().cloned().map(Scope::Namespace).collect()
            } else {
                vec![Scope::All]
            };
            let select = |scope| shared.informer(Selection::new(kind.clone()).within(scope));
            let made: Vec<_> = scopes.into_iter().map(select).collect();
            let cores = made.iter().map(|informer| informer.core().clone());
            let cores = cores.collect();
            used.extend(made);
            cores
        })
    }

    /// All of them, in the order in which they were asked for; they run while these are kept.
    pub(crate) fn into_used(self) -> Vec<SharedInformer> {
        self.used
    }
}

/// What an informer is called in checks and by triggers.
pub(crate) fn name(core: &InformerCore) -> String {
    match core.scope() {
        Scope::All => core.kind().resource(),
        Scope::Namespace(namespace) => format!("{}.{namespace}", core.kind().resource()),
    }
}

/// How long a cache may lag behind, as a watch that is opened again does, before the informer is not ready.
const LAG: Duration = Duration::from_secs(20);

/// A check of whether the informer holds the whole state and keeps it current. It fails with the reason, naming verb and resource.
pub(crate) fn checker(
    core: Arc<InformerCore>,
    clock: Clock,
) -> impl Fn() -> Result<(), String> + Send + Sync {
    let lagging = Mutex::new(None);
    move || {
        let mut lagging = lagging.lock().unwrap_or_else(PoisonError::into_inner);
        if core.synced() && core.fresh() {
            *lagging = None;
        }
        if let Some(degraded) = core.degraded() {
            return Err(degraded.to_string());
        }
        if !core.synced() {
            return Err("not synced yet".to_owned());
        }
        if core.fresh() {
            return Ok(());
        }
        let lag = clock.now() - *lagging.get_or_insert(clock.now());
        if lag < LAG {
            Ok(())
        } else {
            Err(format!("no watch is open, for {lag:.0?} at least"))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn an_informer_that_has_not_synced_is_not_ready() {
        let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::All);
        assert_eq!(
            checker(core, Clock::system())(),
            Err("not synced yet".to_owned())
        );
    }
}
