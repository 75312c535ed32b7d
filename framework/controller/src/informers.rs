//! The informers of a manager: one per selection and namespace, however many controllers use it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain_cache::{
    InformerCore, Scope, Selection, SharedInformers, StoreOptions, Transform, View,
};
use boatswain_supervision::Clock;

use crate::{error::StartError, sync::lock};

pub(crate) struct Informers {
    shared: SharedInformers,
    namespaces: Vec<String>,
    declared: HashMap<Selection, Declared>,
    used: BTreeMap<Selection, Used>,
}

/// What controllers read.
struct Used {
    view: View,
    controllers: HashSet<String>,
}

/// How a controller wants objects to be kept.
struct Declared {
    options: StoreOptions,
    controllers: Vec<String>,
}

impl Informers {
    /// `namespaces` bounds what namespaced kinds are read from, unless a selection names one itself; empty means all.
    pub(crate) fn new(shared: SharedInformers, mut namespaces: Vec<String>) -> Self {
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            shared,
            namespaces,
            declared: HashMap::new(),
            used: BTreeMap::new(),
        }
    }

    /// Notes that `controller` wants what it selects to be kept as `options` say; before any view is made, so that the order of controllers does not
    /// matter.
    ///
    /// # Errors
    ///
    /// When another wants it otherwise.
    pub(crate) fn declare(
        &mut self,
        controller: &str,
        selection: &Selection,
        options: &StoreOptions,
    ) -> Result<(), StartError> {
        let declared = self
            .declared
            .entry(selection.clone())
            .or_insert_with(|| Declared {
                options: options.clone(),
                controllers: Vec::new(),
            });
        if declared.options != *options {
            return Err(StartError::KeptInTwoWays {
                one: declared.controllers.join(", "),
                other: controller.to_owned(),
                selection: selection.to_string(),
            });
        }
        // one may be asked again
        if !declared.controllers.iter().any(|other| other == controller) {
            declared.controllers.push(controller.to_owned());
        }
        Ok(())
    }

    /// What is selected, for `controller`; the informers are made at the first call.
    ///
    /// # Errors
    ///
    /// When others keep it in a way this controller did not ask for and would see.
    pub(crate) fn of(
        &mut self,
        controller: &str,
        selection: &Selection,
    ) -> Result<View, StartError> {
        let declared = self.declared.get(selection);
        if let Some(Declared {
            options,
            controllers,
        }) = declared
            && options.transform != Transform::default()
            && !controllers.iter().any(|other| other == controller)
        {
            return Err(StartError::KeptInTwoWays {
                one: controllers.join(", "),
                other: controller.to_owned(),
                selection: selection.to_string(),
            });
        }
        if let Some(used) = self.used.get_mut(selection) {
            used.controllers.insert(controller.to_owned());
            return Ok(used.view.clone());
        }
        let options = declared.map_or_else(StoreOptions::default, |d| d.options.clone());
        let scopes = match selection.scope() {
            Scope::All if selection.kind().namespaced && !self.namespaces.is_empty() => {
                let namespaces = self.namespaces.iter().cloned();
                namespaces.map(Scope::Namespace).collect()
            }
            scope => vec![scope.clone()],
        };
        let view = self.shared.view_with(selection, scopes, &options)?;
        let used = Used {
            view: view.clone(),
            controllers: HashSet::from([controller.to_owned()]),
        };
        self.used.insert(selection.clone(), used);
        Ok(view)
    }

    pub(crate) fn shared(&self) -> SharedInformers {
        self.shared.clone()
    }

    /// Forgets what `controller` declared and reads: an informer runs as long as anybody reads it.
    pub(crate) fn release(&mut self, controller: &str) {
        self.declared.retain(|_, declared| {
            declared.controllers.retain(|other| other != controller);
            !declared.controllers.is_empty()
        });
        self.used.retain(|_, used| {
            used.controllers.remove(controller);
            !used.controllers.is_empty()
        });
    }
}

/// What a selection is called in the tree: `pods`, `deployments.apps.shop;labels:tier=front`.
pub(crate) fn name(selection: &Selection) -> String {
    let mut name = selection.kind().resource();
    if let Scope::Namespace(namespace) = selection.scope() {
        name.push('.');
        name.push_str(namespace);
    }
    let qualifier = selection.qualifier();
    if !qualifier.is_empty() {
        name.push(';');
        name.push_str(&qualifier);
    }
    // it becomes part of paths
    name.replace('/', "%2F")
}

/// What informers are called in checks: their names, and their versions before them where two of a kind would be called the same.
fn names(cores: &[Arc<InformerCore>]) -> Vec<String> {
    let names: Vec<_> = cores.iter().map(|core| name(core.selection())).collect();
    let mut counts = HashMap::new();
    for name in &names {
        *counts.entry(name.as_str()).or_insert(0) += 1;
    }
    let full = names.iter().zip(cores).map(|(name, core)| {
        if counts.get(name.as_str()).is_some_and(|count| *count > 1) {
            format!("{}/{name}", core.kind().version)
        } else {
            name.clone()
        }
    });
    full.collect()
}

/// How long a cache may lag behind, as a watch that is opened again does, before the informer is not ready.
const LAG: Duration = Duration::from_secs(20);

/// Checks, of the informers that there are when it is asked, whether each holds the whole state and keeps it current. They fail with the reason, naming
/// verb and resource.
pub(crate) fn checks(
    cores: impl Fn() -> Vec<Arc<InformerCore>> + Send + Sync,
    clock: Clock,
) -> impl Fn() -> Vec<(String, Result<(), String>)> + Send + Sync {
    let lagging = Mutex::new(HashMap::<String, Instant>::new());
    move || {
        let (cores, now) = (cores(), clock.now());
        let mut before = lock(&lagging);
        let mut lagging = HashMap::new();
        let checked = names(&cores).into_iter().zip(&cores).map(|(name, core)| {
            let id = core.selection().id();
            let since = before.get(&id).copied().unwrap_or(now);
            if !(core.synced() && core.fresh()) {
                lagging.insert(id, since);
            }
            (format!("informer/{name}"), check(core, now - since))
        });
        let checked = checked.collect();
        *before = lagging;
        checked
    }
}

fn check(core: &InformerCore, lag: Duration) -> Result<(), String> {
    if let Some(degraded) = core.degraded() {
        Err(degraded.to_string())
    } else if !core.synced() {
        Err("not synced yet".to_owned())
    } else if core.fresh() || lag < LAG {
        Ok(())
    } else {
        Err(format!("no watch is open, for {lag:.0?} at least"))
    }
}

#[cfg(test)]
mod tests {
    use boatswain_cache::Kind;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::{Expression, PartialObjectMeta};

    use super::*;

    #[test]
    fn an_informer_that_has_not_synced_is_not_ready() {
        let core = InformerCore::new(Kind::of::<ConfigMap>(), Scope::All);
        let checks = checks(move || vec![core.clone()], Clock::system());
        let failed = Err("not synced yet".to_owned());
        assert_eq!(checks(), [("informer/configmaps".to_owned(), failed)]);
    }

    #[test]
    fn informers_of_one_kind_have_names_of_their_own_and_short_ones_where_nothing_is_selected() {
        let maps = Selection::of::<ConfigMap>;
        let app = |value: &str| Expression::Equal("example.com/app".into(), value.into());
        let version = |version| Selection::new(Kind::new("autoscaling", version, "H", "hs"));
        let selections = [
            maps(),
            maps().within(Scope::Namespace("shop".into())),
            maps().labels(app("a")).expect("a selector"),
            maps().labels(app("b")).expect("a selector"),
            Selection::of::<PartialObjectMeta<ConfigMap>>(),
            version("v1"),
            version("v2"),
        ];
        let names = names(&selections.map(InformerCore::select));
        assert_eq!(
            names,
            [
                "configmaps",
                "configmaps.shop",
                "configmaps;labels:example.com%2Fapp=a",
                "configmaps;labels:example.com%2Fapp=b",
                "configmaps;metadata",
                "v1/hs.autoscaling",
                "v2/hs.autoscaling",
            ]
        );
    }
}
