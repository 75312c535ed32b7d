//! One version of one stored object.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value};

/// A JSON object without `kind` and `apiVersion`, which belong to the view and not to what is stored.
pub(crate) type Body = Map<String, Value>;

/// Namespace (empty for cluster-scoped objects) and name; ordered as lists are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// The collection an object is stored in: group and plural of the kind it was first served as.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Collection {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl Collection {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            plural: plural.into(),
        }
    }
}

/// An immutable version of an object; shared by the store, the history and every reader.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) version: u64,
    pub(crate) body: Body,
    /// The body as JSON without its opening brace, encoded once, when first asked for.
    tail: OnceLock<Bytes>,
}

impl Object {
    /// Stamps `version` into the body.
    pub(crate) fn new(key: Key, version: u64, mut body: Body) -> Self {
        meta_mut(&mut body).insert("resourceVersion".into(), version.to_string().into());
        Self {
            key,
            version,
            body,
            tail: OnceLock::new(),
        }
    }

    pub(crate) fn uid(&self) -> &str {
        text(&self.body, &["metadata", "uid"]).unwrap_or_default()
    }

    pub(crate) fn terminating(&self) -> bool {
        terminating(&self.body)
    }

    /// `"metadata":{..},..}`: everything after `kind` and `apiVersion`.
    pub(crate) fn tail(&self) -> &Bytes {
        self.tail.get_or_init(|| {
            let bytes = Bytes::from(Value::Object(self.body.clone()).to_string());
            bytes.slice(1..)
        })
    }
}

pub(crate) fn terminating(body: &Body) -> bool {
    text(body, &["metadata", "deletionTimestamp"]).is_some()
}

pub(crate) fn finalizers(body: &Body) -> impl Iterator<Item = &str> {
    at(body, &["metadata", "finalizers"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The value at a path of field names.
pub(crate) fn at<'a>(body: &'a Body, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(body.get(*first)?, |value, name| value.get(*name))
}

/// The string at a path of field names.
pub(crate) fn text<'a>(body: &'a Body, path: &[&str]) -> Option<&'a str> {
    at(body, path).and_then(Value::as_str)
}

/// The whole number at a path of field names.
pub(crate) fn number(body: &Body, path: &[&str]) -> Option<i64> {
    at(body, path).and_then(Value::as_i64)
}

/// `metadata`, made an object if it is missing or is not one.
pub(crate) fn meta_mut(body: &mut Body) -> &mut Body {
    child_mut(body, "metadata")
}

/// A child that is an object, made so if it is missing or is not one.
pub(crate) fn child_mut<'a>(body: &'a mut Body, name: &str) -> &'a mut Body {
    let slot = body
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Sets the value at a path, making the objects on the way.
pub(crate) fn put(body: &mut Body, path: &[&str], value: Value) {
    if let Some((last, parents)) = path.split_last() {
        let parent = parents.iter().fold(body, |map, name| child_mut(map, name));
        parent.insert((*last).into(), value);
    }
}

/// Sets the value at a path unless there is one already.
pub(crate) fn put_default(body: &mut Body, path: &[&str], value: Value) {
    if at(body, path).is_none_or(Value::is_null) {
        put(body, path, value);
    }
}
