//! Patching: read, change, replace.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{State, Write, body::accept, place};
use crate::{
    failure::{Cause, Failure},
    fields::{apply, managers, shape::Shape},
    model::{
        object::{Object, at, meta_mut, text},
        served::{Generation, Served, View},
    },
    patch::{PatchError, json_patch, merge_patch, strategic_merge},
};

/// The language a patch is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Json,
    Merge,
    Strategic,
    Apply { force: bool },
}

impl State {
    /// Changes an object, or the part of it that a subresource shows. Server-side apply creates an absent one.
    ///
    /// # Errors
    /// What the server answers: absent object, a patch that does not fit, conflicts, invalid fields.
    pub(crate) fn patch(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        dialect: Dialect,
        patch: &Value,
        write: &mut Write,
    ) -> Result<(Arc<Object>, bool), Failure> {
        if let Dialect::Apply { force } = dialect {
            return self.apply(served, namespace, name, patch, force, write);
        }
        let old = self
            .store
            .get(&served.collection, &place(served, namespace, name))
            .cloned();
        let old = old.ok_or_else(|| Failure::not_found(served, name))?;
        let mut patched = served.render(&old.body);
        change(served, &mut patched, dialect, patch)?;
        if let Some(uid) = patched
            .pointer("/metadata/uid")
            .filter(|uid| *uid != old.uid())
        {
            let cause = Cause::invalid("metadata.uid", uid, "field is immutable");
            return Err(Failure::invalid(served, name, &[cause]));
        }
        self.update(served, namespace, name, patched, write)
            .map(|object| (object, false))
    }

    fn apply(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        config: &Value,
        force: bool,
        write: &mut Write,
    ) -> Result<(Arc<Object>, bool), Failure> {
        if write.manager.is_empty() {
            let message = "Required value: is required for apply patch";
            let cause = Cause::new("FieldValueRequired", "fieldManager", message);
            return Err(Failure::invalid_options("PatchOptions", cause));
        }
        if at(
            config.as_object().unwrap_or(&managers::empty()),
            &["metadata", "managedFields"],
        )
        .is_some_and(|v| *v != json!([]))
        {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        let mut config = accept(served, config.clone())?;
        if served.view != View::Same {
            return Err(Failure::unsupported_media_type(
                "application/apply-patch+yaml",
            ));
        }
        if let Some(given) = text(&config, &["metadata", "name"]).filter(|given| *given != name) {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        meta_mut(&mut config).insert("name".into(), name.into());
        if served.namespaced {
            meta_mut(&mut config).insert("namespace".into(), namespace.into());
        }
        let shape = Shape::root(served.schema.as_deref());
        let api_version = served.api_version();
        let key = place(served, namespace, name);
        let Some(old) = self.store.get(&served.collection, &key).cloned() else {
            if !write.subresource.is_empty() {
                return Err(Failure::not_found(served, name));
            }
            return self
                .create_applied(served, namespace, config, write)
                .map(|object| (object, true));
        };
        for (given, found) in [
            ("uid", old.uid().to_owned()),
            ("resourceVersion", old.version.to_string()),
        ] {
            if text(&config, &["metadata", given]).is_some_and(|given| given != found) {
                return Err(Failure::stale(served, name));
            }
            meta_mut(&mut config).remove(given);
        }
        // a manager answers only for the part that it applies to
        match write.subresource {
            "status" => config.retain(|field, _| field == "status"),
            _ if served.status => drop(config.remove("status")),
            _ => {}
        }
        let author = write.author(&api_version, "Apply");
        let merged = apply::apply(&old.body, &config, shape, &author, force)?;
        let entries = at(&merged, &["metadata", "managedFields"]).cloned();
        let object = self.replace(served, &old, merged, write, |new, _| {
            // merging has recorded the author already
            match entries {
                Some(entries) => meta_mut(new).insert("managedFields".into(), entries),
                None => meta_mut(new).remove("managedFields"),
            };
            Ok(())
        })?;
        Ok((object, false))
    }

    fn create_applied(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        config: crate::model::object::Body,
        write: &mut Write,
    ) -> Result<Arc<Object>, Failure> {
        let object = self.create(
            served,
            namespace,
            served.render(&config),
            &mut Write {
                dry_run: true,
                ..write.clone()
            },
        )?;
        let mut body = object.body.clone();
        let shape = Shape::root(served.schema.as_deref());
        let api_version = served.api_version();
        let signed = apply::apply(
            &managers::empty(),
            &config,
            shape,
            &write.author(&api_version, "Apply"),
            true,
        )?;
        let entries = at(&signed, &["metadata", "managedFields"]).cloned();
        if let Some(entries) = entries {
            meta_mut(&mut body).insert("managedFields".into(), entries);
        }
        if served.generation != Generation::Never {
            meta_mut(&mut body).insert("generation".into(), 1.into());
        }
        self.insert(served, object.key.clone(), body, write)
    }
}

/// Applies a patch to the form that a client sees.
pub(super) fn change(
    served: &Served,
    target: &mut Value,
    dialect: Dialect,
    patch: &Value,
) -> Result<(), Failure> {
    let outcome = match dialect {
        Dialect::Json => json_patch(target, patch),
        Dialect::Strategic if served.custom => {
            return Err(Failure::unsupported_media_type(
                "application/strategic-merge-patch+json",
            ));
        }
        Dialect::Strategic => strategic_merge(target, patch),
        Dialect::Merge | Dialect::Apply { .. } => {
            if !patch.is_object() {
                return Err(Failure::bad_request("a merge patch must be an object"));
            }
            merge_patch(target, patch);
            Ok(())
        }
    };
    outcome.map_err(|error| match error {
        PatchError::Malformed(why) => Failure::bad_request(why),
        // the real server does not tell its clients why
        PatchError::Unfit(_) => {
            let mut failure = Failure::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            );
            failure.details = json!({});
            failure
        }
    })
}
