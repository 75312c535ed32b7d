//! Structural schemas of custom resources: what they accept, what they fill in, what they drop.
//!
//! Not evaluated: `x-kubernetes-validations` (CEL), which servers before 1.25 drop without a word as well.

mod compile;
mod validate;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

/// The JSON type a schema asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// How the entries of a list are told apart when it is merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A compiled schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    kind: Option<Type>,
    nullable: bool,
    int_or_string: bool,
    preserve_unknown: bool,
    embedded: bool,
    pub(crate) atomic_map: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) list: ListType,
    required: Vec<String>,
    default: Option<Value>,
    allowed: Vec<Value>,
    format: Option<String>,
    pattern: Option<Regex>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    unique_items: bool,
    min_properties: Option<usize>,
    max_properties: Option<usize>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}

/// Fields of every object, whatever its schema says.
const IMPLIED: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Takes out of an object every field that the schema does not know, and tells their paths.
    pub(crate) fn prune(&self, object: &mut Map<String, Value>) -> Vec<String> {
        let mut dropped = Vec::new();
        self.prune_object(object, true, "", &mut dropped);
        dropped
    }

    fn prune_value(&self, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
        match value {
            Value::Object(map) => self.prune_object(map, self.embedded, path, dropped),
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    for (index, item) in list.iter_mut().enumerate() {
                        items.prune_value(item, &format!("{path}[{index}]"), dropped);
                    }
                }
            }
            _ => {}
        }
    }

    fn prune_object(
        &self,
        map: &mut Map<String, Value>,
        whole: bool,
        path: &str,
        dropped: &mut Vec<String>,
    ) {
        map.retain(|name, value| {
            let here = join(path, name);
            if whole && IMPLIED.contains(&name.as_str()) {
                return true;
            }
            match self.properties.get(name).or(self.additional.as_deref()) {
                Some(schema) => schema.prune_value(value, &here, dropped),
                None if self.preserve_unknown => {}
                None => {
                    dropped.push(here);
                    return false;
                }
            }
            true
        });
    }

    /// Fills in the defaults of absent fields.
    pub(crate) fn fill(&self, object: &mut Map<String, Value>) {
        for (name, schema) in &self.properties {
            // a null that is not allowed counts as absent
            if !schema.nullable && object.get(name) == Some(&Value::Null) {
                object.remove(name);
            }
            if let Some(default) = schema
                .default
                .as_ref()
                .filter(|_| !object.contains_key(name))
            {
                object.insert(name.clone(), default.clone());
            }
            if let Some(value) = object.get_mut(name) {
                schema.fill_value(value);
            }
        }
        if let Some(schema) = &self.additional {
            let known = &self.properties;
            object
                .iter_mut()
                .filter(|(name, _)| !known.contains_key(*name))
                .for_each(|(_, value)| schema.fill_value(value));
        }
    }

    fn fill_value(&self, value: &mut Value) {
        match value {
            Value::Object(map) => self.fill(map),
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    list.iter_mut().for_each(|item| items.fill_value(item));
                }
            }
            _ => {}
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests;
