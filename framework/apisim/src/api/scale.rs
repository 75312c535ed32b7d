//! The scale subresource: an autoscaling/v1 Scale that stands for the replicas of another object.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{State, Write, body::refused, patch, patch::Dialect, place};
use crate::{
    failure::{Cause, Failure},
    fields::{managers, shape::Shape},
    model::{
        object::{Object, at, meta_mut, put, text},
        served::{ScalePaths, Served},
    },
    store::Precondition,
};

/// An object's Scale. Its uid and version are the object's own.
pub(crate) fn view(paths: &ScalePaths, object: &Object) -> Value {
    let find = |path: &[String]| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        at(&object.body, &path)
    };
    let mut meta = Map::new();
    for name in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = at(&object.body, &["metadata", name]) {
            meta.insert(name.into(), value.clone());
        }
    }
    let replicas = |path: &[String]| find(path).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta,
        "spec": {"replicas": replicas(&paths.spec_replicas)}, "status": {"replicas": replicas(&paths.status_replicas)},
    });
    if let Some(selector) = paths.selector.as_ref().and_then(|path| find(path)) {
        let text = match selector {
            Value::String(text) => text.clone(),
            other => selector_text(other),
        };
        if !text.is_empty() {
            scale["status"]["selector"] = text.into();
        }
    }
    scale
}

fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        parts.push(format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let part = |name: &str| {
            expression
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let values = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let values = values
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(",");
        parts.push(match part("operator") {
            "In" => format!("{} in ({values})", part("key")),
            "NotIn" => format!("{} notin ({values})", part("key")),
            "DoesNotExist" => format!("!{}", part("key")),
            _ => part("key").to_owned(),
        });
    }
    parts.join(",")
}

impl State {
    /// The Scale of an object.
    ///
    /// # Errors
    /// An absent object or one whose kind has no scale.
    pub(crate) fn scale(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
    ) -> Result<Value, Failure> {
        let paths = served
            .scale
            .as_ref()
            .ok_or_else(Failure::method_not_allowed)?;
        let object = self
            .store
            .get(&served.collection, &place(served, namespace, name));
        object
            .map(|object| view(paths, object))
            .ok_or_else(|| Failure::not_found(served, name))
    }

    /// Replaces the Scale of an object: changes its replicas.
    ///
    /// A uid or resourceVersion in the Scale is a precondition on the object; a Scale that changes nothing is no write.
    ///
    /// # Errors
    /// An absent object, another uid or version, replicas that are not a whole number from 0.
    pub(crate) fn rescale(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        scale: &Value,
        write: &mut Write,
    ) -> Result<Value, Failure> {
        let paths = served
            .scale
            .clone()
            .ok_or_else(Failure::method_not_allowed)?;
        let key = place(served, namespace, name);
        let Some(scale) = scale.as_object() else {
            return Err(Failure::bad_request(
                "the body of the request is not a Scale",
            ));
        };
        for (field, expected) in [("kind", "Scale"), ("apiVersion", "autoscaling/v1")] {
            if let Some(given) = text(scale, &[field]).filter(|given| *given != expected) {
                return Err(Failure::bad_request(format!(
                    "expected {field} {expected}, got {given}"
                )));
            }
        }
        if let Some(given) = text(scale, &["metadata", "name"]).filter(|given| *given != name) {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        let require = Precondition {
            uid: text(scale, &["metadata", "uid"])
                .filter(|uid| !uid.is_empty())
                .map(str::to_owned),
            version: text(scale, &["metadata", "resourceVersion"])
                .filter(|v| !v.is_empty())
                .map(str::to_owned),
        };
        let required = self.store.require(&served.collection, &key, &require);
        let old = required.map_err(|refusal| refused(served, &key, &refusal))?;
        // an absent value is Go's zero
        let replicas = at(scale, &["spec", "replicas"])
            .cloned()
            .unwrap_or_else(|| 0.into());
        if replicas
            .as_i64()
            .is_none_or(|n| !(0..=i64::from(i32::MAX)).contains(&n))
        {
            let cause = Cause::invalid(
                "spec.replicas",
                &replicas,
                "must be greater than or equal to 0",
            );
            return Err(Failure::invalid_as("autoscaling", "Scale", name, &[cause]));
        }
        let path: Vec<&str> = paths.spec_replicas.iter().map(String::as_str).collect();
        let mut body = old.body.clone();
        put(&mut body, &path, replicas);
        let api_version = served.api_version();
        let object = self.replace(served, &old, body, write, |new, write| {
            managers::record(
                &old.body,
                new,
                Shape::root(served.schema.as_deref()),
                &write.author(&api_version, "Update"),
            );
            Ok(())
        })?;
        Ok(view(&paths, &object))
    }

    /// Patches the Scale of an object.
    ///
    /// # Errors
    /// As [`State::rescale`], or a patch that does not fit.
    pub(crate) fn patch_scale(
        &mut self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        dialect: Dialect,
        change: &Value,
        write: &mut Write,
    ) -> Result<Value, Failure> {
        let mut scale = self.scale(served, namespace, name)?;
        let dialect = match dialect {
            // a Scale has no lists, so that both merge alike
            Dialect::Strategic | Dialect::Apply { .. } => Dialect::Merge,
            other => other,
        };
        patch::change(served, &mut scale, dialect, change)?;
        if let Some(scale) = scale.as_object_mut() {
            meta_mut(scale).entry("name").or_insert_with(|| name.into());
        }
        self.rescale(served, namespace, name, &scale, write)
    }
}
