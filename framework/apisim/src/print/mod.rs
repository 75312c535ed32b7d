//! Tables, as `kubectl get` prints them, and views of metadata only.

mod age;
mod builtin;
mod jsonpath;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::served::{Column, Served};

pub(crate) use jsonpath::find;

fn name_column() -> Column {
    column("Name", "string", 0, "")
}

fn column(name: &str, kind: &str, priority: i64, path: &str) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: if name == "Name" {
            "name".into()
        } else {
            String::new()
        },
        description: String::new(),
        priority,
        path: path.into(),
    }
}

/// The objects, already rendered, as a table. `include` is the `includeObject` parameter.
pub(crate) fn table(
    served: &Served,
    version: &str,
    meta: Value,
    objects: &[Value],
    include: Option<&str>,
    now: Timestamp,
    with_columns: bool,
) -> Value {
    let own = builtin::columns(served);
    let columns = own.as_ref().map_or_else(
        || {
            std::iter::once(name_column())
                .chain(served.columns.iter().cloned())
                .collect()
        },
        Clone::clone,
    );
    let rows = objects.iter().map(|object| {
        let cells = match &own {
            Some(_) => builtin::cells(served, object, now),
            None => {
                let name = object
                    .pointer("/metadata/name")
                    .cloned()
                    .unwrap_or_default();
                std::iter::once(name)
                    .chain(
                        served
                            .columns
                            .iter()
                            .map(|column| cell(column, object, now)),
                    )
                    .collect()
            }
        };
        let mut row = json!({"cells": cells});
        match include {
            Some("None") => {}
            Some("Object") => row["object"] = object.clone(),
            _ => row["object"] = metadata(object, version),
        }
        row
    });
    let rows: Vec<Value> = rows.collect();
    let definitions = columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format, "description": column.description,
            "priority": column.priority,
        })
    });
    let definitions = if with_columns {
        Value::Array(definitions.collect())
    } else {
        Value::Null
    };
    json!({"kind": "Table", "apiVersion": version, "metadata": meta, "columnDefinitions": definitions, "rows": rows})
}

/// An object's metadata alone, as `meta.k8s.io` of this version.
pub(crate) fn metadata(object: &Value, version: &str) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": object.get("metadata")})
}

/// What a custom column shows of an object; null when there is nothing or it is of another type.
fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let found = find(&column.path, object);
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match column.kind.as_str() {
        "integer" => first
            .as_i64()
            .map(Value::from)
            .or_else(|| first.as_f64().map(|n| Value::from(n.trunc())))
            .unwrap_or_default(),
        "number" => {
            if first.is_number() {
                (*first).clone()
            } else {
                Value::Null
            }
        }
        "boolean" => {
            if first.is_boolean() {
                (*first).clone()
            } else {
                Value::Null
            }
        }
        "date" => first
            .as_str()
            .map_or(Value::Null, |text| age::since(text, now).into()),
        _ => {
            let texts: Vec<String> = found
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            texts.join(" ").into()
        }
    }
}

#[cfg(test)]
mod tests;
