//! Creating and replacing objects.

use std::sync::Arc;

use serde_json::Value;

use super::{
    State, Unknown, Write,
    body::{accept, content, keep_own, refused, released, settle_namespace},
    decode, defaults,
    install::crds,
    metadata, place, validate,
};
use crate::{
    failure::{Cause, Failure},
    fields::{managers, shape::Shape},
    model::{
        object::{Body, Collection, Key, Object, at, finalizers, meta_mut, number, put, text},
        served::{Generation, Served},
    },
    store::{Precondition, Refusal},
};

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
        decode::check(served, &body)?;
        if text(&body, &["metadata", "resourceVersion"])
            .is_some_and(|version| !version.is_empty() && version != "0")
        {
            // the real server calls this its own error
            return Err(Failure::new(
                500,
                "",
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
        if served.status
            && !served.custom
            && let Some(status) = defaults::status(served, &body, &write.now)
        {
            body.insert("status".into(), status);
        }
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
        let stored = self.store.insert(&served.collection, key.clone(), body);
        let object = stored.map_err(|refusal| refused(served, &key, &refusal))?;
        self.after(&served.collection, &object, false);
        Ok(object)
    }

    /// Replaces an object, or the part of it that a subresource shows. An absent Lease is created, as the real server
    /// does.
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
        let key = place(served, namespace, name);
        let leases = served.group == "coordination.k8s.io";
        if leases && self.store.get(&served.collection, &key).is_none() {
            return self.create(served, namespace, body, write);
        }
        let mut body = accept(served, body)?;
        decode::check(served, &body)?;
        settle_namespace(served, namespace, &mut body)?;
        let given = text(&body, &["metadata", "name"]).unwrap_or_default();
        if given != name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
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
            let why = "must be specified for an update";
            let cause = Cause::invalid("metadata.resourceVersion", &0.into(), why);
            return Err(Failure::invalid_as(
                &served.group,
                &served.plural,
                name,
                &[cause],
            ));
        }
        self.store
            .require(&served.collection, &key, &require)
            .map_err(|refusal| refused(served, &key, &refusal))?;
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
                let fresh = format!("{fresh:?}").replace('[', "{").replace(']', "}");
                let why = format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{fresh}"
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
        let object = stored.map_err(|refusal| refused(served, &old.key, &refusal))?;
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
        let refuse = |refusal: Refusal| refused(served, key, &refusal);
        let object = self
            .store
            .remove(&served.collection, key, &any, last)
            .map_err(refuse)?;
        self.after(&served.collection, &object, true);
        Ok(object)
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
            report_unknown(served, &dropped, write)?;
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

fn report_unknown(served: &Served, dropped: &[String], write: &mut Write) -> Result<(), Failure> {
    let (kind, version) = (&served.kind, &served.version);
    match write.unknown {
        Unknown::Refuse if !dropped.is_empty() => {
            let list = dropped
                .iter()
                .map(|path| format!("unknown field \"{path}\""))
                .collect::<Vec<_>>()
                .join(", ");
            Err(Failure::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {list}"
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
