//! `metadata.managedFields`: who last set what.

use serde_json::{Map, Value, json};

use super::{set::FieldSet, shape::Shape};
use crate::model::object::{Body, at, meta_mut};

/// A write as it enters `managedFields`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author<'a> {
    pub(crate) manager: &'a str,
    /// `Update` or `Apply`.
    pub(crate) operation: &'static str,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
}

/// One entry: a manager in one role, and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) operation: String,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: String,
    pub(crate) fields: FieldSet,
}

impl Entry {
    pub(crate) fn is_of(&self, author: &Author<'_>) -> bool {
        self.manager == author.manager
            && self.operation == author.operation
            && self.subresource == author.subresource
    }

    fn render(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": self.fields.render(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.clone().into();
        }
        entry
    }
}

/// The entries of an object.
pub(crate) fn read(body: &Body) -> Vec<Entry> {
    let list = at(body, &["metadata", "managedFields"]).and_then(Value::as_array);
    let entry = |entry: &Value| {
        let part = |name: &str| {
            entry
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Entry {
            manager: part("manager"),
            operation: part("operation"),
            api_version: part("apiVersion"),
            subresource: part("subresource"),
            time: part("time"),
            fields: FieldSet::parse(entry.get("fieldsV1").unwrap_or(&Value::Null)),
        }
    };
    list.into_iter().flatten().map(entry).collect()
}

/// Writes the entries that still own something.
pub(crate) fn write(body: &mut Body, entries: &[Entry]) {
    let list: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.fields.is_empty())
        .map(Entry::render)
        .collect();
    match list.is_empty() {
        true => meta_mut(body).remove("managedFields"),
        false => meta_mut(body).insert("managedFields".into(), Value::Array(list)),
    };
}

/// Makes the author the manager of what differs between `old` and `new`, and writes the outcome into `new`.
///
/// A write that changes nothing changes no entry, not even its time.
pub(crate) fn record(old: &Body, new: &mut Body, shape: Shape<'_>, author: &Author<'_>) {
    let asked_to_reset = at(new, &["metadata", "managedFields"]).is_some_and(|v| *v == json!([{}]));
    let mut entries = if asked_to_reset {
        Vec::new()
    } else {
        read(old)
    };
    let changed = FieldSet::changed(old, new, shape);
    let mut removed = FieldSet::of(old, shape);
    removed.subtract(&FieldSet::of(new, shape));
    if changed.is_empty() && removed.is_empty() {
        write(new, &entries);
        return;
    }
    for entry in &mut entries {
        entry.fields.subtract(&removed);
        if !entry.is_of(author) {
            entry.fields.subtract_with_parts(&changed);
        }
    }
    match entries.iter_mut().find(|entry| entry.is_of(author)) {
        Some(entry) => {
            entry.fields.unite(&changed);
            entry.time = author.now.into();
        }
        None => entries.push(Entry {
            manager: author.manager.into(),
            operation: author.operation.into(),
            api_version: author.api_version.into(),
            subresource: author.subresource.into(),
            time: author.now.into(),
            fields: changed,
        }),
    }
    write(new, &entries);
}

pub(crate) fn empty() -> Body {
    Map::new()
}
