//! Deleting objects: at once, or marked until their finalizers are gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{State, Write, place, write};
use crate::{
    failure::Failure,
    gc::{FOREGROUND, ORPHAN},
    model::{
        crd,
        object::{Collection, Object, meta_mut, put},
        served::Served,
    },
    store::Precondition,
};

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are collected after the owner has gone.
    #[default]
    Background,
    /// The owner stays until they have gone.
    Foreground,
    /// They stay, without an owner.
    Orphan,
}

/// A deletion as asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) propagation: Propagation,
    pub(crate) require: Precondition,
}

impl Deletion {
    /// Reads `DeleteOptions`; values in the query stand where the body has none.
    ///
    /// # Errors
    /// A bad request for an unknown policy.
    pub(crate) fn parse(options: &Value, policy_in_query: Option<&str>) -> Result<Self, Failure> {
        let part = |pointer: &str| {
            options
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|v| !v.is_empty())
        };
        let orphan = options.get("orphanDependents").and_then(Value::as_bool);
        let propagation = match (part("/propagationPolicy").or(policy_in_query), orphan) {
            (Some("Background"), _) | (None, None | Some(false)) => Propagation::Background,
            (Some("Foreground"), _) => Propagation::Foreground,
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
            (Some(other), _) => {
                let expected = "\"Background\", \"Foreground\", \"Orphan\"";
                return Err(Failure::new(
                    422,
                    "Invalid",
                    format!(
                        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"{other}\": supported values: {expected}"
                    ),
                ));
            }
        };
        let require = Precondition {
            uid: part("/preconditions/uid").map(str::to_owned),
            version: part("/preconditions/resourceVersion").map(str::to_owned),
        };
        Ok(Self {
            propagation,
            require,
        })
    }
}

/// How a deletion went.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object has gone; this is its last state.
    Gone(Arc<Object>),
    /// The object is marked and waits for its finalizers.
    Marked(Arc<Object>),
}

impl State {
    /// Deletes an object.
    ///
    /// # Errors
    /// An absent object, or a precondition that does not hold.
    pub(crate) fn delete(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
        how: &Write,
    ) -> Result<Deleted, Failure> {
        let key = place(served, namespace, name);
        let required = self
            .store
            .require(&served.collection, &key, &deletion.require);
        let old = required.map_err(|refusal| match refusal {
            // unlike an update, a deletion tells which version it found
            refusal @ crate::store::Refusal::OtherVersion { .. } => {
                Failure::conflict(served, name, refusal.to_string())
            }
            refusal => write::refused(served, name, &refusal),
        })?;
        let protected = ["default", "kube-system", "kube-public"].contains(&name);
        if served.group.is_empty() && served.plural == "namespaces" && protected {
            return Err(Failure::forbidden(
                served,
                name,
                "this namespace may not be deleted",
            ));
        }
        if how.dry_run {
            return Ok(Deleted::Gone(old));
        }
        let mut body = old.body.clone();
        match deletion.propagation {
            Propagation::Background => {}
            Propagation::Foreground if old.terminating() => {}
            Propagation::Foreground => write::add_finalizer(&mut body, FOREGROUND),
            Propagation::Orphan => write::add_finalizer(&mut body, ORPHAN),
        }
        if !old.terminating() {
            meta_mut(&mut body).insert("deletionTimestamp".into(), how.now.clone().into());
            meta_mut(&mut body).insert("deletionGracePeriodSeconds".into(), 0.into());
            if served.group.is_empty() && served.plural == "namespaces" {
                put(&mut body, &["status", "phase"], "Terminating".into());
            }
            if served.collection == write::crds() {
                terminating_condition(&mut body, &how.now);
            }
        }
        if write::released(&body) {
            // an object that goes at once is never seen with a deletion timestamp
            return self
                .remove_now(served, &key, old.body.clone())
                .map(Deleted::Gone);
        }
        let stored = self
            .store
            .replace(&served.collection, &key, &Precondition::default(), body);
        let object = stored.map_err(|refusal| write::refused(served, name, &refusal))?;
        if served.collection == write::crds() {
            self.delete_custom(&crd::collection(&object.body), how);
            if self.store.get(&served.collection, &key).is_none() {
                return Ok(Deleted::Gone(object));
            }
        }
        Ok(Deleted::Marked(object))
    }

    /// Deletes all objects of a definition that is being deleted.
    fn delete_custom(&mut self, collection: &Collection, how: &Write) {
        let keys: Vec<_> = self
            .store
            .scan(collection, "")
            .map(|object| object.key.clone())
            .collect();
        if let Some(served) = self.registry.of_collection(collection).cloned() {
            for key in keys {
                // absent by now is as good as deleted
                let _ = self.delete(
                    &served,
                    &key.namespace,
                    &key.name,
                    &Deletion::default(),
                    how,
                );
            }
        }
        self.finish_definition(collection);
    }
}

fn terminating_condition(body: &mut crate::model::object::Body, now: &str) {
    let condition = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now, "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let status = crate::model::object::child_mut(body, "status");
    match status.get_mut("conditions") {
        Some(Value::Array(list)) => list.push(condition),
        _ => {
            status.insert("conditions".into(), json!([condition]));
        }
    }
}
