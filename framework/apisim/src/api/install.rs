//! Definitions come into force with their objects' collections, and leave after the last of them.

use std::sync::Arc;

use serde_json::Value;

use super::{
    State,
    body::{drop_finalizer, refused, released},
};
use crate::{
    model::{
        crd,
        object::{Body, Collection, Key, Object, at},
    },
    store::Precondition,
};

/// The collection of definitions.
pub(super) fn crds() -> Collection {
    Collection::new("apiextensions.k8s.io", "customresourcedefinitions")
}

impl State {
    /// What follows from a write: definitions are installed, and go when their last object has gone.
    pub(super) fn after(&mut self, collection: &Collection, object: &Arc<Object>, deleted: bool) {
        if *collection == crds() {
            let served = crd::collection(&object.body);
            self.registry.uninstall(&served);
            if !deleted && let Ok(resources) = crd::compile(&object.body) {
                self.registry.install(resources);
            }
        } else if deleted {
            self.finish_definition(collection);
        }
    }

    /// Lets a definition go that is being deleted and has no objects left.
    pub(super) fn finish_definition(&mut self, collection: &Collection) {
        let key = Key::new("", &format!("{}.{}", collection.plural, collection.group));
        let Some(definition) = self
            .store
            .get(&crds(), &key)
            .filter(|d| d.terminating())
            .cloned()
        else {
            return;
        };
        let Some(served) = self.registry.of_collection(&crds()).cloned() else {
            return;
        };
        if self.store.len(collection) > 0 {
            return;
        }
        let mut body = definition.body.clone();
        drop_finalizer(&mut body, crd::CLEANUP);
        // nothing else can have changed it: this is the same step under the same lock
        let _ = match released(&body) {
            true => self.remove_now(&served, &key, body),
            false => self
                .store
                .replace(&crds(), &key, &Precondition::default(), body)
                .map_err(|r| refused(&served, &key, &r)),
        };
    }

    pub(super) fn reestablish(&self, old: &Object, body: &mut Body, now: &str) {
        let mut status = crd::established(body, now);
        let stored = at(&old.body, &["status", "storedVersions"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mut all = stored;
        for version in status["storedVersions"].as_array().into_iter().flatten() {
            if !all.contains(version) {
                all.push(version.clone());
            }
        }
        status["storedVersions"] = Value::Array(all);
        if let Some(conditions) = at(&old.body, &["status", "conditions"]) {
            status["conditions"] = conditions.clone();
        }
        body.insert("status".into(), status);
    }
}
