//! The informers of a manager: one per kind and namespace, however many controllers use it.

use std::{collections::HashMap, sync::Arc};

use boatswain_cache::{InformerCore, Kind, Scope};

#[derive(Default)]
pub(crate) struct Informers {
    namespaces: Vec<String>,
    cores: HashMap<Kind, Vec<Arc<InformerCore>>>,
    order: Vec<Arc<InformerCore>>,
}

impl Informers {
    /// `namespaces` bounds what namespaced kinds are read from; empty means all.
    pub(crate) fn new(mut namespaces: Vec<String>) -> Self {
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            namespaces,
            ..Self::default()
        }
    }

    /// The informers of `kind`, made at the first call.
    pub(crate) fn of(&mut self, kind: &Kind) -> &[Arc<InformerCore>] {
        let Self {
            namespaces,
            cores,
            order,
        } = self;
        cores.entry(kind.clone()).or_insert_with(|| {
            let scopes = if kind.namespaced && !namespaces.is_empty() {
                namespaces.iter().cloned().map(Scope::Namespace).collect()
            } else {
                vec![Scope::All]
            };
            let made: Vec<_> = scopes
                .into_iter()
                .map(|scope| InformerCore::new(kind.clone(), scope))
                .collect();
            order.extend(made.iter().cloned());
            made
        })
    }

    /// All of them, in the order in which they were asked for.
    pub(crate) fn into_cores(self) -> Vec<Arc<InformerCore>> {
        self.order
    }
}

/// What an informer is called in the tree, in checks and in metrics.
pub(crate) fn name(core: &InformerCore) -> String {
    match core.scope() {
        Scope::All => core.kind().resource(),
        Scope::Namespace(namespace) => format!("{}.{namespace}", core.kind().resource()),
    }
}

/// Whether the informer holds the whole state and keeps it current.
///
/// # Errors
///
/// Why it does not, naming verb and resource.
pub(crate) fn check(core: &InformerCore) -> Result<(), String> {
    match (core.degraded(), core.synced()) {
        (Some(degraded), _) => Err(degraded.to_string()),
        (None, false) => Err("not synced yet".to_owned()),
        (None, true) => Ok(()),
    }
}
