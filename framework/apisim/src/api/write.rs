//! Creating and replacing objects.

use std::sync::Arc;

use serde_json::Value;

use super::{State, Unknown, Write, defaults, metadata, place, validate};
use crate::{
    failure::{Cause, Failure},
    fields::{managers, shape::Shape},
    model::{
        crd,
        object::{
            Body, Collection, Key, Object, at, finalizers, meta_mut, number, put, terminating, text,
        },
        served::{Generation, Served},
    },
    store::{Precondition, Refusal},
};

/// Metadata that only the server writes.
const OWN: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generateName",
];

impl State {
    /// Creates an object.
    ///
    /// # Errors
    /// What the server answers: absent namespace, existing object, invalid fields.
    pub(crate) fn create(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        body: Value,
        write: &mut Write,
    ) -> Result<Arc<Object>, Failure> {
        let mut body = accept(served, body)?;
        metadata::decodes(served, &body)?;
        if text(&body, &["metadata", "resourceVersion"])
            .is_some_and(|version| !version.is_empty() && version != "0")
        {
            return Err(Failure::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        settle_namespace(served, namespace, &mut body)?;
        let meta = meta_mut(&mut body);
        for name in [
            "uid",
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
        ] {
            meta.remove(name);
        }
        let mut name = meta
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if name.is_empty() {
            let Some(prefix) = meta
                .get("generateName")
                .and_then(Value::as_str)
                .filter(|prefix| !prefix.is_empty())
            else {
                let cause = Cause {
                    message: "Required value: name or generateName is required".into(),
                    ..Cause::required("metadata.name")
                };
                return Err(Failure::invalid(served, "", &[cause]));
            };
            name = self.names.generate(prefix);
            meta.insert("name".into(), name.clone().into());
        }
        self.require_namespace(served, namespace, &name)?;
        let key = place(served, namespace, &name);
        meta_mut(&mut body).insert("uid".into(), self.names.uid().into());
        meta_mut(&mut body).insert("creationTimestamp".into(), write.now.clone().into());
        meta_mut(&mut body).remove("generation");
        if served.generation != Generation::Never {
            meta_mut(&mut body).insert("generation".into(), 1.into());
        }
        if served.status && served.custom {
            body.remove("status");
        }
        self.settle(served, None, &mut body, write)?;
        if served.status
            && !served.custom
            && let Some(status) = defaults::status(served, &body, &write.now)
        {
            body.insert("status".into(), status);
        }
        if served.collection == crds() {
            add_finalizer(&mut body, crd::CLEANUP);
        }
        if self.store.get(&served.collection, &key).is_some() {
            return Err(Failure::already_exists(served, &name));
        }
        let api_version = served.api_version();
        managers::record(
            &managers::empty(),
            &mut body,
            Shape::root(served.schema.as_deref()),
            &write.author(&api_version, "Update"),
        );
        self.insert(served, key, body, write)
    }

    /// Stores a finished body as a new object.
    pub(super) fn insert(
        &mut self,
        served: &Arc<Served>,
        key: Key,
        body: Body,
        write: &Write,
    ) -> Result<Arc<Object>, Failure> {
        if write.dry_run {
            return Ok(Arc::new(Object::new(key, 0, body)));
        }
        let name = key.name.clone();
        let stored = self.store.insert(&served.collection, key, body);
        let object = stored.map_err(|refusal| refused(served, &name, &refusal))?;
        self.after(&served.collection, &object, false);
        Ok(object)
    }

    /// Replaces an object, or the part of it that a subresource shows.
    ///
    /// # Errors
    /// What the server answers: absent object, another version or uid, invalid fields.
    pub(crate) fn update(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        body: Value,
        write: &mut Write,
    ) -> Result<Arc<Object>, Failure> {
        let mut body = accept(served, body)?;
        metadata::decodes(served, &body)?;
        settle_namespace(served, namespace, &mut body)?;
        let given = text(&body, &["metadata", "name"]).unwrap_or_default();
        if given != name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        let key = place(served, namespace, name);
        let old = self
            .store
            .get(&served.collection, &key)
            .cloned()
            .ok_or_else(|| Failure::not_found(served, name))?;
        let require = Precondition {
            uid: text(&body, &["metadata", "uid"])
                .filter(|uid| !uid.is_empty())
                .map(str::to_owned),
            version: text(&body, &["metadata", "resourceVersion"])
                .filter(|v| !v.is_empty() && *v != "0")
                .map(str::to_owned),
        };
        if require.version.is_none() && !served.unconditional {
            let cause = Cause {
                message: "Invalid value: 0: must be specified for an update".into(),
                ..Cause::required("metadata.resourceVersion")
            };
            return Err(Failure::invalid(
                served,
                name,
                &[Cause {
                    reason: "FieldValueInvalid",
                    ..cause
                }],
            ));
        }
        self.store
            .require(&served.collection, &key, &require)
            .map_err(|refusal| refused(served, name, &refusal))?;
        let author = served.api_version();
        self.replace(served, &old, body, write, |new, write| {
            managers::record(
                &old.body,
                new,
                Shape::root(served.schema.as_deref()),
                &write.author(&author, "Update"),
            );
            Ok(())
        })
    }

    /// Commits `body` in place of `old`, after giving back to the server what is the server's; `sign` records the author.
    pub(super) fn replace(
        &mut self,
        served: &Arc<Served>,
        old: &Arc<Object>,
        mut body: Body,
        write: &mut Write,
        sign: impl FnOnce(&mut Body, &Write) -> Result<(), Failure>,
    ) -> Result<Arc<Object>, Failure> {
        let name = old.key.name.clone();
        match write.subresource {
            "status" => {
                let status = body.remove("status");
                body = old.body.clone();
                match status {
                    Some(status) => body.insert("status".into(), status),
                    None => body.remove("status"),
                };
            }
            "finalize" => {
                let finalizers = at(&body, &["spec", "finalizers"]).cloned();
                body = old.body.clone();
                put(
                    &mut body,
                    &["spec", "finalizers"],
                    finalizers.unwrap_or_else(|| Value::Array(Vec::new())),
                );
            }
            _ => {
                if served.status {
                    match old.body.get("status") {
                        Some(status) => body.insert("status".into(), status.clone()),
                        None => body.remove("status"),
                    };
                }
                if served.plural == "namespaces" && served.group.is_empty() {
                    let own = at(&old.body, &["spec", "finalizers"])
                        .cloned()
                        .unwrap_or_default();
                    put(&mut body, &["spec", "finalizers"], own);
                }
            }
        }
        keep_own(&old.body, &mut body);
        if old.terminating() {
            let fresh: Vec<&str> = finalizers(&body)
                .filter(|f| !finalizers(&old.body).any(|had| had == *f))
                .collect();
            if !fresh.is_empty() {
                let why = format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers {fresh:?}"
                );
                return Err(Failure::invalid(
                    served,
                    &name,
                    &[Cause::forbidden("metadata.finalizers", why)],
                ));
            }
        }
        self.settle(served, Some(&old.body), &mut body, write)?;
        if served.collection == crds() {
            self.reestablish(old, &mut body, &write.now);
        }
        let moved = match served.generation {
            Generation::Never => false,
            Generation::Spec => old.body.get("spec") != body.get("spec"),
            Generation::AllButStatus => {
                content(&old.body, served.status) != content(&body, served.status)
            }
        };
        if moved {
            let generation = number(&old.body, &["metadata", "generation"]).unwrap_or(0) + 1;
            meta_mut(&mut body).insert("generation".into(), generation.into());
        }
        sign(&mut body, write)?;
        if write.dry_run {
            return Ok(Arc::new(Object::new(old.key.clone(), old.version, body)));
        }
        let require = Precondition {
            uid: None,
            version: Some(old.version.to_string()),
        };
        if released(&body) {
            return self.remove_now(served, &old.key, body);
        }
        let stored = self
            .store
            .replace(&served.collection, &old.key, &require, body);
        let object = stored.map_err(|refusal| refused(served, &name, &refusal))?;
        if object.version != old.version {
            self.after(&served.collection, &object, false);
        }
        Ok(object)
    }

    /// Removes an object that nothing holds any more; `last` is its last state.
    pub(super) fn remove_now(
        &mut self,
        served: &Served,
        key: &Key,
        last: Body,
    ) -> Result<Arc<Object>, Failure> {
        let any = Precondition::default();
        let refuse = |refusal: Refusal| refused(served, &key.name, &refusal);
        let object = self
            .store
            .remove(&served.collection, key, &any, last)
            .map_err(refuse)?;
        self.after(&served.collection, &object, true);
        Ok(object)
    }

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
                .map_err(|r| refused(&served, &key.name, &r)),
        };
    }

    fn reestablish(&self, old: &Object, body: &mut Body, now: &str) {
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

    /// Prunes, defaults and validates.
    pub(super) fn settle(
        &mut self,
        served: &Served,
        old: Option<&Body>,
        body: &mut Body,
        write: &mut Write,
    ) -> Result<(), Failure> {
        if let Some(schema) = &served.schema {
            let dropped = schema.prune(body);
            report_unknown(&dropped, write)?;
            schema.fill(body);
        } else {
            defaults::fill(served, body, &mut self.names);
        }
        let name = text(body, &["metadata", "name"])
            .unwrap_or_default()
            .to_owned();
        let mut causes = metadata::check(served, body);
        match &served.schema {
            Some(schema) => causes.extend(schema.check(body)),
            None => causes.extend(validate::check(served, old, body)),
        }
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid(served, &name, &causes))
        }
    }

    fn require_namespace(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
    ) -> Result<(), Failure> {
        if !served.namespaced {
            return Ok(());
        }
        let found = self
            .store
            .get(&Collection::new("", "namespaces"), &Key::new("", namespace));
        match found {
            None => Err(Failure::namespace_not_found(namespace)),
            Some(object) if object.terminating() => {
                Err(Failure::namespace_terminating(served, name, namespace))
            }
            Some(_) => Ok(()),
        }
    }
}

pub(super) fn crds() -> Collection {
    Collection::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// A refusal of the store as the client hears it.
pub(super) fn refused(served: &Served, name: &str, refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::Exists => Failure::already_exists(served, name),
        Refusal::Absent => Failure::not_found(served, name),
        Refusal::OtherVersion { .. } => Failure::stale(served, name),
        Refusal::OtherUid { .. } => Failure::conflict(served, name, refusal.to_string()),
    }
}

/// Whether an object is being deleted and nothing holds it any more.
pub(super) fn released(body: &Body) -> bool {
    let own = at(body, &["spec", "finalizers"]).and_then(Value::as_array);
    terminating(body) && finalizers(body).next().is_none() && own.is_none_or(Vec::is_empty)
}

/// Takes `kind` and `apiVersion` off a body, and converts it to what is stored.
pub(super) fn accept(served: &Served, body: Value) -> Result<Body, Failure> {
    let Value::Object(mut body) = body else {
        return Err(Failure::bad_request(
            "the body of the request is not an object",
        ));
    };
    let part = |body: &mut Body, name: &str| {
        body.remove(name)
            .and_then(|v| v.as_str().map(str::to_owned))
            .filter(|t| !t.is_empty())
    };
    let (kind, api_version) = (part(&mut body, "kind"), part(&mut body, "apiVersion"));
    let expected = served.api_version();
    if let Some(given) = api_version.filter(|given| *given != expected) {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({expected})"
        )));
    }
    if let Some(given) = kind.filter(|given| *given != served.kind) {
        return Err(Failure::bad_request(format!(
            "{expected}, Kind={given} in the data does not match the expected kind {}",
            served.kind
        )));
    }
    Ok(served.stored(body))
}

fn settle_namespace(served: &Served, namespace: &str, body: &mut Body) -> Result<(), Failure> {
    let given = text(body, &["metadata", "namespace"]).unwrap_or_default();
    if !served.namespaced {
        meta_mut(body).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta_mut(body).insert("namespace".into(), namespace.into());
    Ok(())
}

/// Restores what a client cannot change.
fn keep_own(old: &Body, body: &mut Body) {
    for name in OWN {
        let value = at(old, &["metadata", name]).cloned();
        let meta = meta_mut(body);
        match value {
            Some(value) => meta.insert(name.into(), value),
            None => meta.remove(name),
        };
    }
    // an empty list is no list
    for name in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let meta = meta_mut(body);
        if meta.get(name).is_some_and(|v| {
            v.is_null()
                || v.as_array().is_some_and(Vec::is_empty)
                || v.as_object().is_some_and(|m| m.is_empty())
        }) {
            meta.remove(name);
        }
    }
}

fn content(body: &Body, without_status: bool) -> impl PartialEq {
    let keep = |name: &str| name != "metadata" && !(without_status && name == "status");
    body.iter()
        .filter(|(name, _)| keep(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<Vec<_>>()
}

pub(super) fn add_finalizer(body: &mut Body, finalizer: &str) {
    if !finalizers(body).any(|f| f == finalizer) {
        let meta = meta_mut(body);
        let list = meta
            .entry("finalizers")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(finalizer.into());
        }
    }
}

pub(crate) fn drop_finalizer(body: &mut Body, finalizer: &str) {
    let meta = meta_mut(body);
    if let Some(Value::Array(list)) = meta.get_mut("finalizers") {
        list.retain(|f| f != finalizer);
        if list.is_empty() {
            meta.remove("finalizers");
        }
    }
}

fn report_unknown(dropped: &[String], write: &mut Write) -> Result<(), Failure> {
    match write.unknown {
        Unknown::Refuse if !dropped.is_empty() => {
            let list = dropped
                .iter()
                .map(|path| format!("unknown field \"{path}\""))
                .collect::<Vec<_>>()
                .join(", ");
            Err(Failure::bad_request(format!(
                "strict decoding error: {list}"
            )))
        }
        Unknown::Warn => {
            write.warnings.extend(
                dropped
                    .iter()
                    .map(|path| format!("unknown field \"{path}\"")),
            );
            Ok(())
        }
        _ => Ok(()),
    }
}
