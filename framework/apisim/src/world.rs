//! What a cluster's own controllers do: rollouts, garbage collection, the end of namespaces.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    api::{
        State, Write,
        delete::{Deletion, Propagation},
    },
    gc::Action,
    model::object::{Collection, Key, Object, at, number, put, text},
    sim::Inner,
    store::Precondition,
};

/// How a Deployment's status follows its spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// How many replicas come or go in one step; `None` for all at once.
    pub replicas_per_step: Option<u32>,
    /// The pause between two steps of [`World::run`]. Default: 100 ms.
    pub pace: Duration,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            replicas_per_step: None,
            pace: Duration::from_millis(100),
        }
    }
}

/// Which controllers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldOptions {
    /// Writes the status of Deployments, as if their pods came up at once; no ReplicaSets or Pods are made.
    /// Default: yes, all replicas at once.
    pub deployments: Option<Rollout>,
    /// Deletes objects whose owners have gone, in the background, the foreground, or not at all if orphaned. Default: yes.
    pub garbage: bool,
    /// Empties and removes namespaces that are being deleted. Default: yes.
    pub namespaces: bool,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            deployments: Some(Rollout::default()),
            garbage: true,
            namespaces: true,
        }
    }
}

#[derive(Debug, Default)]
struct Progress {
    /// Deployments up to this version have been looked at.
    seen: u64,
    /// Deployments whose status does not follow their spec yet.
    due: BTreeSet<Key>,
    namespaces_seen: u64,
    ending: BTreeSet<Key>,
}

/// The controllers of a cluster, in one place; cheap to clone, all clones share their progress.
#[derive(Clone, Debug)]
pub struct World {
    inner: Arc<Inner>,
    options: WorldOptions,
    progress: Arc<Mutex<Progress>>,
}

fn deployments() -> Collection {
    Collection::new("apps", "deployments")
}

fn namespaces() -> Collection {
    Collection::new("", "namespaces")
}

impl World {
    pub(crate) fn new(inner: Arc<Inner>, options: WorldOptions) -> Self {
        Self {
            inner,
            options,
            progress: Arc::default(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets every controller do one step for every object that needs one; returns the number of writes.
    ///
    /// A Deployment takes as many steps as [`Rollout::replicas_per_step`] says; everything else settles in few. Call
    /// until it returns 0 to have a settled cluster, or use [`World::settle`].
    pub fn step(&self) -> usize {
        let mut written = 0;
        if let Some(rollout) = self.options.deployments {
            written += self.roll_out(rollout);
        }
        if self.options.namespaces {
            written += self.end_namespaces();
        }
        if self.options.garbage {
            written += self.collect();
        }
        written
    }

    /// Steps until there is nothing left to do; returns the number of writes.
    pub fn settle(&self) -> usize {
        let mut written = 0;
        loop {
            match self.step() {
                0 => return written,
                n => written += n,
            }
        }
    }

    /// Steps whenever something was written, and at the pace of the rollouts; never ends.
    ///
    /// # Cancellation safety
    /// Can be dropped at any time and run again.
    pub async fn run(&self) {
        let mut changes = self.inner.subscribe_all();
        let pace = self.options.deployments.unwrap_or_default().pace;
        loop {
            changes.hear();
            self.step();
            let due = !self.progress().due.is_empty();
            if due {
                self.inner.options.time.sleep(pace).await;
            } else {
                changes.rung().await;
            }
        }
    }

    fn roll_out(&self, rollout: Rollout) -> usize {
        let mut progress = self.progress();
        let write = self.inner.own_write("kube-controller-manager", "status");
        self.inner.with(|state| {
            let Progress { seen, due, .. } = &mut *progress;
            news(state, &deployments(), seen, |object| {
                due.insert(object.key.clone());
            });
            let mut written = 0;
            for key in std::mem::take(due) {
                let Some(object) = state.store.get(&deployments(), &key).cloned() else {
                    continue;
                };
                let Some((body, done)) = next_status(&object, rollout, &write.now) else {
                    continue;
                };
                if !done {
                    due.insert(key.clone());
                }
                written += usize::from(update(state, &deployments(), &key, body, &write));
            }
            // our own writes are no news, unless someone else wrote in between, which the lock rules out
            *seen = state.store.version();
            written
        })
    }

    fn end_namespaces(&self) -> usize {
        let mut progress = self.progress();
        let write = self.inner.own_write("kube-controller-manager", "finalize");
        self.inner.with(|state| {
            let Progress {
                namespaces_seen,
                ending,
                ..
            } = &mut *progress;
            news(state, &namespaces(), namespaces_seen, |object| {
                if object.terminating() {
                    ending.insert(object.key.clone());
                }
            });
            let mut written = 0;
            for key in std::mem::take(ending) {
                let Some(namespace) = state
                    .store
                    .get(&namespaces(), &key)
                    .filter(|n| n.terminating())
                    .cloned()
                else {
                    continue;
                };
                let (gone, left) = empty(state, &key.name, &write);
                written += gone;
                if left > 0 {
                    ending.insert(key);
                } else {
                    let mut body = namespace.body.clone();
                    put(&mut body, &["spec", "finalizers"], json!([]));
                    written += usize::from(update(state, &namespaces(), &key, body, &write));
                }
            }
            written
        })
    }

    fn collect(&self) -> usize {
        let write = self.inner.own_write("kube-controller-manager", "");
        self.inner.with(|state| {
            let mut written = 0;
            while let Some(place) = state.store.owners.suspect() {
                let actions = state.store.owners.judge(&place, |(collection, key)| {
                    state.store.get(collection, key).cloned()
                });
                for action in actions {
                    written += usize::from(act(state, &action, &write));
                }
            }
            written
        })
    }
}

/// Tells of every object of a collection written since `seen`: from the history, or all of them if that is forgotten.
fn news(state: &State, collection: &Collection, seen: &mut u64, mut tell: impl FnMut(&Object)) {
    let Some(table) = state.store.table(collection) else {
        return;
    };
    let known = (1..=state.store.version()).contains(seen);
    match table.history.since(*seen) {
        // a version from before a restored backup says nothing about what came after
        Ok(changes) if known => changes.for_each(|change| tell(&change.new)),
        _ => table.objects.values().for_each(|object| tell(object)),
    }
    *seen = state.store.version();
}

fn update(
    state: &mut State,
    collection: &Collection,
    key: &Key,
    body: crate::model::object::Body,
    write: &Write,
) -> bool {
    let Some(served) = state.registry.of_collection(collection).cloned() else {
        return false;
    };
    let before = state.store.version();
    // a refusal, for example of an object that is invalid by now, leaves it as it is
    let _ = state.update(
        &served,
        &key.namespace,
        &key.name,
        Value::Object(served.shown(&body)),
        &mut write.clone(),
    );
    state.store.version() != before
}

/// The next status on the way to the spec, and whether that is the last step; `None` when there is nothing to do.
fn next_status(
    object: &Object,
    rollout: Rollout,
    now: &str,
) -> Option<(crate::model::object::Body, bool)> {
    let wanted = number(&object.body, &["spec", "replicas"]).unwrap_or(1);
    let have = number(&object.body, &["status", "replicas"]).unwrap_or(0);
    let generation = number(&object.body, &["metadata", "generation"]).unwrap_or(0);
    let observed = number(&object.body, &["status", "observedGeneration"]).unwrap_or(0);
    let paused = at(&object.body, &["spec", "paused"]) == Some(&Value::Bool(true));
    let step = i64::from(rollout.replicas_per_step.unwrap_or(u32::MAX)).max(1);
    let next = if paused {
        have
    } else {
        have + (wanted - have).clamp(-step, step)
    };
    if object.terminating() || observed == generation && next == have {
        return None;
    }
    let ready = next.min(wanted);
    let available = ready == wanted;
    let condition = |kind: &str, ok: bool, reason: &str, message: &str| {
        let status = if ok { "True" } else { "False" };
        let conditions = at(&object.body, &["status", "conditions"]).and_then(Value::as_array);
        let old = conditions
            .into_iter()
            .flatten()
            .find(|c| c.get("type") == Some(&kind.into()));
        let since = old
            .filter(|c| c.get("status") == Some(&status.into()))
            .and_then(|c| c.get("lastTransitionTime"));
        let since = since.cloned().unwrap_or_else(|| now.into());
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastUpdateTime": now, "lastTransitionTime": since})
    };
    let (minimum, unavailable) = ("MinimumReplicasAvailable", "MinimumReplicasUnavailable");
    let mut status = json!({
        "observedGeneration": generation, "replicas": next, "updatedReplicas": next, "readyReplicas": ready, "availableReplicas": ready,
        "conditions": [
            condition("Available", available, if available { minimum } else { unavailable }, if available { "Deployment has minimum availability." } else { "Deployment does not have minimum availability." }),
            condition("Progressing", true, if available { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" }, "ReplicaSet has successfully progressed."),
        ],
    });
    if wanted > ready {
        status["unavailableReplicas"] = (wanted - ready).into();
    }
    let mut body = object.body.clone();
    body.insert("status".into(), status);
    Some((body, next == wanted || paused))
}

/// Deletes what is left in a namespace; returns how many deletions it took and how many objects wait for finalizers.
fn empty(state: &mut State, namespace: &str, write: &Write) -> (usize, usize) {
    let collections: Vec<Collection> = state.store.collections().cloned().collect();
    let (mut deleted, mut left) = (0, 0);
    for collection in collections {
        let Some(served) = state
            .registry
            .of_collection(&collection)
            .filter(|served| served.namespaced)
            .cloned()
        else {
            continue;
        };
        let found: Vec<Arc<Object>> = state.store.scan(&collection, namespace).cloned().collect();
        for object in found {
            if !object.terminating() {
                deleted += 1;
                // absent by now is as good as deleted
                let _ = state.delete(
                    &served,
                    namespace,
                    &object.key.name,
                    &Deletion::default(),
                    write,
                );
            }
        }
        left += state.store.scan(&collection, namespace).count();
    }
    (deleted, left)
}

fn act(state: &mut State, action: &Action, write: &Write) -> bool {
    let ((collection, key), before) = match action {
        Action::Delete { place, .. }
        | Action::Disown { place, .. }
        | Action::Release { place, .. } => (place, state.store.version()),
    };
    let Some(object) = state.store.get(collection, key).cloned() else {
        return false;
    };
    let mut body = object.body.clone();
    match action {
        Action::Delete {
            uid, foreground, ..
        } => {
            let Some(served) = state.registry.of_collection(collection).cloned() else {
                return false;
            };
            let propagation = if *foreground {
                Propagation::Foreground
            } else {
                Propagation::Background
            };
            let require = Precondition {
                uid: Some(uid.clone()),
                version: None,
            };
            let _ = state.delete(
                &served,
                &key.namespace,
                &key.name,
                &Deletion {
                    propagation,
                    require,
                },
                write,
            );
        }
        Action::Disown { owner, .. } => {
            let meta = crate::model::object::meta_mut(&mut body);
            if let Some(Value::Array(refs)) = meta.get_mut("ownerReferences") {
                refs.retain(|reference| {
                    text(
                        reference.as_object().unwrap_or(&serde_json::Map::new()),
                        &["uid"],
                    ) != Some(owner)
                });
            }
            update(state, collection, key, body, write);
        }
        Action::Release { finalizer, .. } => {
            crate::api::body::drop_finalizer(&mut body, finalizer);
            update(state, collection, key, body, write);
        }
    }
    state.store.version() != before
}

#[cfg(test)]
mod tests;
