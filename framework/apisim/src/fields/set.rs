//! Sets of fields, in the form of `managedFields.fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{List, Shape, identity};

/// A tree of path elements (`f:name`, `k:{"name":"x"}`, `v:"x"`); a node without children, or with `own`, is a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    own: bool,
    children: BTreeMap<String, FieldSet>,
}

/// Fields that no manager owns.
const SYSTEM: [&str; 11] = [
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

fn element(item: &Value, list: &List) -> String {
    match list {
        List::Keyed(keys) => {
            let values: Map<String, Value> =
                keys.iter().cloned().zip(identity(item, list)).collect();
            format!("k:{}", Value::Object(values))
        }
        List::Atomic | List::Set => format!("v:{item}"),
    }
}

impl FieldSet {
    fn leaf() -> Self {
        Self {
            own: true,
            children: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.own && self.children.is_empty()
    }

    /// All fields of an object.
    pub(crate) fn of(body: &Map<String, Value>, shape: Shape<'_>) -> Self {
        Self::changed(&Map::new(), body, shape)
    }

    /// The fields of `new` that `old` has not, or has with another value.
    pub(crate) fn changed(
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        shape: Shape<'_>,
    ) -> Self {
        let mut set = Self::default();
        for (name, value) in new {
            if name == "kind" || name == "apiVersion" {
                continue;
            }
            let (child, list) = shape.child(name);
            let before = old.get(name);
            let mut below = match (name.as_str(), before, value) {
                // only of the metadata at the root are some fields the server's own
                ("metadata", before, Value::Object(new)) => {
                    let keep = |map: &Map<String, Value>| -> Map<String, Value> {
                        map.iter()
                            .filter(|(name, _)| !SYSTEM.contains(&name.as_str()))
                            .map(|(n, v)| (n.clone(), v.clone()))
                            .collect()
                    };
                    let empty = Map::new();
                    let old = before.and_then(Value::as_object).unwrap_or(&empty);
                    Self::changed(&keep(old), &keep(new), child)
                }
                _ => Self::value(before, value, child, &list),
            };
            if name == "metadata" {
                below.own = false;
            }
            if !below.is_empty() {
                set.children.insert(format!("f:{name}"), below);
            }
        }
        set
    }

    fn value(old: Option<&Value>, new: &Value, shape: Shape<'_>, list: &List) -> Self {
        if old == Some(new) {
            return Self::default();
        }
        match new {
            Value::Object(map) if !shape.is_atomic() && !map.is_empty() => {
                let empty = Map::new();
                Self::changed(old.and_then(Value::as_object).unwrap_or(&empty), map, shape)
            }
            Value::Array(items) if *list != List::Atomic => {
                let empty = Vec::new();
                let olds = old.and_then(Value::as_array).unwrap_or(&empty);
                let mut set = Self::default();
                for item in items {
                    let wanted = identity(item, list);
                    let before = olds.iter().find(|old| identity(old, list) == wanted);
                    let mut below = match (list, before) {
                        (List::Set, Some(_)) => continue,
                        (List::Set, None) => Self::leaf(),
                        (_, before) => Self::value(before, item, shape.item(), &List::Atomic),
                    };
                    below.own |= before.is_none();
                    if !below.is_empty() {
                        set.children.insert(element(item, list), below);
                    }
                }
                set
            }
            _ => Self::leaf(),
        }
    }

    /// Adds the members of another set.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.own |= other.own;
        for (element, theirs) in &other.children {
            self.children
                .entry(element.clone())
                .or_default()
                .unite(theirs);
        }
    }

    /// Takes out the members of another set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.own &= !other.own;
        self.children.retain(|element, ours| {
            if let Some(theirs) = other.children.get(element) {
                ours.subtract(theirs);
            }
            !ours.is_empty()
        });
    }

    /// Takes out the members of another set and everything below them: a value that was replaced takes its parts along.
    pub(crate) fn subtract_with_parts(&mut self, other: &Self) {
        if other.own && other.children.is_empty() {
            *self = Self::default();
            return;
        }
        self.own &= !other.own;
        self.children.retain(|element, ours| {
            if let Some(theirs) = other.children.get(element) {
                ours.subtract_with_parts(theirs);
            }
            !ours.is_empty()
        });
    }

    /// The members that both sets have.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let mut set = Self {
            own: self.own && other.own,
            children: BTreeMap::new(),
        };
        for (element, ours) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                let below = ours.common(theirs);
                if !below.is_empty() {
                    set.children.insert(element.clone(), below);
                }
            }
        }
        set
    }

    /// The members as paths, as messages write them: `.spec.replicas`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, at: &str, paths: &mut Vec<String>) {
        if self.own {
            paths.push(at.to_owned());
        }
        for (element, below) in &self.children {
            let here = match element.split_once(':') {
                Some(("f", name)) => format!("{at}.{name}"),
                Some((_, value)) => format!("{at}[{value}]"),
                None => at.to_owned(),
            };
            below.collect(&here, paths);
        }
    }

    /// Takes the members out of an object.
    pub(crate) fn erase(&self, body: &mut Map<String, Value>, shape: Shape<'_>) {
        for (element, below) in &self.children {
            let Some(name) = element.strip_prefix("f:") else {
                continue;
            };
            let (child, list) = shape.child(name);
            if below.own {
                body.remove(name);
                continue;
            }
            match body.get_mut(name) {
                Some(Value::Object(map)) => {
                    below.erase(map, child);
                    if map.is_empty() {
                        body.remove(name);
                    }
                }
                Some(Value::Array(items)) => {
                    items.retain_mut(|item| {
                        match (below.children.get(&self::element(item, &list)), item) {
                            (Some(gone), _) if gone.own => false,
                            (Some(gone), Value::Object(map)) => {
                                gone.erase(map, child.item());
                                true
                            }
                            _ => true,
                        }
                    });
                    if items.is_empty() {
                        body.remove(name);
                    }
                }
                _ => {}
            }
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn parse(fields: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                set.own = true;
            } else {
                let mut below = Self::parse(below);
                below.own |= below.children.is_empty();
                set.children.insert(element.clone(), below);
            }
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(crate) fn render(&self) -> Value {
        let mut map = Map::new();
        if self.own && !self.children.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        map.extend(
            self.children
                .iter()
                .map(|(element, below)| (element.clone(), below.render())),
        );
        Value::Object(map)
    }
}
