//! From the JSON of an `openAPIV3Schema` to a [`Schema`].

use regex::Regex;
use serde_json::Value;

use super::{ListType, Schema, Type};
use crate::failure::Cause;

impl Schema {
    /// Compiles a schema that stands at `path` of its definition.
    ///
    /// # Errors
    /// The first part that is not a schema.
    pub(crate) fn compile(raw: &Value, path: &str) -> Result<Self, Cause> {
        let flag = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or(false);
        let float = |name: &str| raw.get(name).and_then(Value::as_f64);
        let size = |name: &str| {
            raw.get(name)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        let words = |name: &str| {
            let list = raw
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            list.filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let child = |name: &str| match raw.get(name) {
            Some(child @ Value::Object(_)) => {
                Self::compile(child, &format!("{path}.{name}")).map(|s| Some(Box::new(s)))
            }
            _ => Ok(None),
        };
        let children = |name: &str| {
            let list = raw
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .enumerate();
            list.map(|(index, child)| Self::compile(child, &format!("{path}.{name}[{index}]")))
                .collect::<Result<Vec<_>, _>>()
        };
        let kind = match raw.get("type") {
            None => None,
            Some(name) => Some(match name.as_str() {
                Some("object") => Type::Object,
                Some("array") => Type::Array,
                Some("string") => Type::String,
                Some("integer") => Type::Integer,
                Some("number") => Type::Number,
                Some("boolean") => Type::Boolean,
                _ => {
                    let types = ["array", "boolean", "integer", "number", "object", "string"]
                        .map(Value::from);
                    return Err(Cause::unsupported(format!("{path}.type"), name, &types));
                }
            }),
        };
        let pattern = match raw.get("pattern").and_then(Value::as_str) {
            None => None,
            Some(text) => {
                let compiled = Regex::new(text);
                Some(compiled.map_err(|e| {
                    Cause::invalid(format!("{path}.pattern"), &text.into(), e.to_string())
                })?)
            }
        };
        let mut properties = std::collections::BTreeMap::new();
        for (name, child) in raw
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let here = format!("{path}.properties[{name}]");
            properties.insert(name.clone(), Self::compile(child, &here)?);
        }
        let list = match raw.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(words("x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        };
        Ok(Self {
            kind,
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            // `additionalProperties: true` lets everything pass as well
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields")
                || flag("additionalProperties"),
            embedded: flag("x-kubernetes-embedded-resource"),
            atomic_map: raw.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            properties,
            additional: child("additionalProperties")?,
            items: child("items")?,
            list,
            required: words("required"),
            default: raw.get("default").cloned(),
            allowed: raw
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            format: raw.get("format").and_then(Value::as_str).map(str::to_owned),
            pattern,
            minimum: float("minimum"),
            maximum: float("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: float("multipleOf"),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            all_of: children("allOf")?,
            any_of: children("anyOf")?,
            one_of: children("oneOf")?,
            not: child("not")?,
        })
    }
}
