//! Deleting objects: at once, or marked until their finalizers are gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    State, Write,
    body::{add_finalizer, drop_finalizer, refused, released},
    install::crds,
    place,
};
use crate::{
    failure::{Cause, Failure},
    gc::{FOREGROUND, ORPHAN},
    model::{
        crd,
        object::{Collection, Key, Object, meta_mut, put},
        served::Served,
    },
    store::{Precondition, Refusal},
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
                let supported = ["Foreground", "Background", "Orphan", "nil"].map(Value::from);
                let cause = Cause::unsupported("propagationPolicy", &other.into(), &supported);
                return Err(Failure::invalid_options("DeleteOptions", cause));
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
        let old = required.map_err(|refusal| unmet(served, &key, &refusal))?;
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
            Propagation::Foreground => {
                drop_finalizer(&mut body, ORPHAN);
                if !old.terminating() {
                    add_finalizer(&mut body, FOREGROUND);
                }
            }
            Propagation::Orphan => {
                drop_finalizer(&mut body, FOREGROUND);
                add_finalizer(&mut body, ORPHAN);
            }
        }
        if !old.terminating() {
            meta_mut(&mut body).insert("deletionTimestamp".into(), how.now.clone().into());
            if served.group.is_empty() && served.plural == "namespaces" {
                put(&mut body, &["status", "phase"], "Terminating".into());
            } else {
                meta_mut(&mut body).insert("deletionGracePeriodSeconds".into(), 0.into());
            }
            if served.collection == crds() {
                add_finalizer(&mut body, crd::CLEANUP);
                terminating_condition(&mut body, &how.now);
            }
        }
        if released(&body) {
            // an object that goes at once is never seen with a deletion timestamp
            return self
                .remove_now(served, &key, old.body.clone())
                .map(Deleted::Gone);
        }
        let stored = self
            .store
            .replace(&served.collection, &key, &Precondition::default(), body);
        let object = stored.map_err(|refusal| refused(served, &key, &refusal))?;
        if served.collection == crds() {
            self.delete_custom(&crd::collection(&object.body), how);
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

/// A precondition of a deletion that does not hold; unlike an update, a deletion names the kind.
fn unmet(served: &Served, key: &Key, refusal: &Refusal) -> Failure {
    let why = match refusal {
        Refusal::OtherUid { wanted, found } => format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
        ),
        Refusal::OtherVersion { wanted, found } => format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
        ),
        refusal => return refused(served, key, refusal),
    };
    let kind = if served.group.is_empty() {
        served.kind.clone()
    } else {
        format!("{}.{}", served.kind, served.group)
    };
    let mut failure = Failure::conflict(served, &key.name, "");
    failure.message = format!(
        "Operation cannot be fulfilled on {kind} \"{}\": {why}",
        key.name
    );
    failure.details["kind"] = served.kind.clone().into();
    failure
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
