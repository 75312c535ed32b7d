//! How lists are merged: as one value, as a set, or entry by entry.

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// How the entries of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields of theirs.
    Keyed(Vec<String>),
}

/// The rule for the list `name` inside the field or list `parent` of a built-in kind.
pub(crate) fn builtin_list(parent: &str, name: &str) -> List {
    let keys: &[&str] = match name {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets" => &["name"],
        "secrets" if parent.is_empty() => &["name"],
        "ports" if parent == "spec" => &["port"],
        "ports" => &["containerPort"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "conditions" => &["type"],
        "ownerReferences" => &["uid"],
        "hostAliases" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey"],
        "finalizers" => return List::Set,
        _ => return List::Atomic,
    };
    List::Keyed(keys.iter().map(|key| (*key).to_owned()).collect())
}

/// What tells an entry apart under a rule.
pub(crate) fn identity(item: &Value, rule: &List) -> Vec<Value> {
    match rule {
        List::Atomic | List::Set => vec![item.clone()],
        List::Keyed(keys) => keys
            .iter()
            .map(|key| item.get(key).cloned().unwrap_or(Value::Null))
            .collect(),
    }
}

/// The shape of a field: from a CRD's schema, or by the names that built-in kinds use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    Builtin(&'a str),
    Custom(Option<&'a Schema>),
}

impl<'a> Shape<'a> {
    pub(crate) fn root(schema: Option<&'a Schema>) -> Self {
        schema.map_or(Self::Builtin(""), |schema| Self::Custom(Some(schema)))
    }

    /// The shape of a child and, if that is a list, how it is merged.
    pub(crate) fn child(self, name: &'a str) -> (Self, List) {
        match self {
            // metadata has the same shape in all kinds
            Self::Custom(_) if name == "metadata" => (Self::Builtin(name), List::Atomic),
            Self::Builtin(parent) => (Self::Builtin(name), builtin_list(parent, name)),
            Self::Custom(schema) => {
                let child = schema.and_then(|s| s.properties.get(name).or(s.additional.as_deref()));
                let list = match child.map(|child| &child.list) {
                    Some(ListType::Set) => List::Set,
                    Some(ListType::Map(keys)) => List::Keyed(keys.clone()),
                    _ => List::Atomic,
                };
                (Self::Custom(child), list)
            }
        }
    }

    /// The shape of the entries of a list of this shape.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Builtin(name) => Self::Builtin(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(|s| s.items.as_deref())),
        }
    }

    /// Whether an object of this shape is one value.
    pub(crate) fn is_atomic(self) -> bool {
        match self {
            Self::Builtin(name) => matches!(
                name,
                "selector" | "nodeSelector" | "resourceFieldRef" | "fieldRef"
            ),
            Self::Custom(schema) => schema.is_some_and(|schema| schema.atomic_map),
        }
    }
}
