//! Strategic merge patch, as kubectl sends it for built-in kinds.

use serde_json::{Map, Value};

use super::PatchError;
use crate::fields::shape::{List, builtin_list, identity};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges `patch` into `target`: like a merge patch, but lists whose entries have names are merged entry by entry.
///
/// # Errors
/// [`PatchError::Malformed`] when a directive is not understood.
pub(crate) fn strategic_merge(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_map(target, patch, ""),
        (target, patch) => {
            *target = patch.clone();
            Ok(())
        }
    }
}

fn merge_map(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    at: &str,
) -> Result<(), PatchError> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            *target = patch.clone();
            target.remove(DIRECTIVE);
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some(other) => {
            return Err(PatchError::Malformed(format!(
                "Unknown patch type found: {other}"
            )));
        }
    }
    if let Some(keep) = patch.get(RETAIN).and_then(Value::as_array) {
        target.retain(|name, _| keep.iter().any(|k| k == name));
    }
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            let gone = change.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(list)) = target.get_mut(list) {
                list.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        match (target.get_mut(name), change) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new, name)?,
            (None, Value::Object(new)) => {
                let mut fresh = Map::new();
                merge_map(&mut fresh, new, name)?;
                if new.get(DIRECTIVE).and_then(Value::as_str) != Some("delete") {
                    target.insert(name.clone(), Value::Object(fresh));
                }
            }
            (old, Value::Array(new)) => {
                let old = match old {
                    Some(Value::Array(old)) => std::mem::take(old),
                    _ => Vec::new(),
                };
                let order = patch
                    .get(&format!("{ORDER}{name}"))
                    .and_then(Value::as_array);
                target.insert(
                    name.clone(),
                    Value::Array(merge_list(old, new, at, name, order)?),
                );
            }
            (_, value) => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
    // an order may be given for a list whose entries do not change
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix(ORDER)
            && !patch.contains_key(list)
            && let (Some(Value::Array(items)), Some(order)) =
                (target.get_mut(list), order.as_array())
        {
            arrange(items, order, &builtin_list(at, list));
        }
    }
    Ok(())
}

fn merge_list(
    mut old: Vec<Value>,
    new: &[Value],
    parent: &str,
    name: &str,
    order: Option<&Vec<Value>>,
) -> Result<Vec<Value>, PatchError> {
    let rule = builtin_list(parent, name);
    let directive = |item: &Value| {
        item.get(DIRECTIVE)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    if rule == List::Atomic
        || new
            .iter()
            .any(|item| directive(item).as_deref() == Some("replace"))
    {
        return Ok(new
            .iter()
            .filter(|item| directive(item).is_none())
            .cloned()
            .collect());
    }
    for item in new {
        let wanted = identity(item, &rule);
        let place = old.iter().position(|have| identity(have, &rule) == wanted);
        match (directive(item).as_deref(), place) {
            (Some("delete"), Some(place)) => {
                old.remove(place);
            }
            (Some("delete"), None) => {}
            (_, Some(place)) => match (&mut old[place], item) {
                (Value::Object(have), Value::Object(change)) => merge_map(have, change, name)?,
                (have, change) => *have = change.clone(),
            },
            (_, None) => {
                old.push(match item {
                    Value::Object(change) => {
                        let mut fresh = Map::new();
                        merge_map(&mut fresh, change, name)?;
                        Value::Object(fresh)
                    }
                    plain => plain.clone(),
                });
            }
        }
    }
    if let Some(order) = order {
        arrange(&mut old, order, &rule);
    }
    Ok(old)
}

/// Sorts the entries that `order` names into that order; the others keep their place at the end.
fn arrange(items: &mut [Value], order: &[Value], rule: &List) {
    let rank = |item: &Value| {
        let wanted = identity(item, rule);
        order
            .iter()
            .position(|o| identity(o, rule) == wanted)
            .unwrap_or(order.len())
    };
    items.sort_by_key(rank);
}
