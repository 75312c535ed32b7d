//! Server-side apply: merges a manager's whole intent into the live object.
//!
//! Lists are merged by the keys that a CRD's schema declares or that built-in kinds are known to use; everything else
//! is one value. Fields that a manager stops to mention are removed unless another one owns them too.

use serde_json::{Map, Value, json};

use super::{
    managers::{Author, Entry, read, write},
    set::FieldSet,
    shape::{List, Shape, identity},
};
use crate::{failure::Failure, model::object::Body};

/// The object after `config` was applied to `live`.
///
/// # Errors
/// A conflict that names the other managers, unless `force`.
pub(crate) fn apply(
    live: &Body,
    config: &Body,
    shape: Shape<'_>,
    author: &Author<'_>,
    force: bool,
) -> Result<Body, Failure> {
    let mut entries = read(live);
    let intent = FieldSet::of(config, shape);
    let mut merged = live.clone();
    merge_map(&mut merged, config, shape);
    let overwritten = FieldSet::changed(live, &merged, shape);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(author)) {
        let disputed = entry.fields.common(&overwritten);
        if disputed.is_empty() {
            continue;
        }
        let role = if entry.subresource.is_empty() {
            String::new()
        } else {
            format!(" with subresource \"{}\"", entry.subresource)
        };
        let who = format!(
            "conflict with \"{}\"{role} using {}",
            entry.manager, entry.api_version
        );
        conflicts.extend(disputed.paths().into_iter().map(|path| (who.clone(), path)));
        entry.fields.subtract(&disputed);
    }
    if !conflicts.is_empty() && !force {
        return Err(refusal(&conflicts));
    }
    let mut dropped = FieldSet::default();
    if let Some(mine) = entries.iter().find(|entry| entry.is_of(author)) {
        dropped = mine.fields.clone();
        dropped.subtract(&intent);
        for other in entries.iter().filter(|entry| !entry.is_of(author)) {
            dropped.subtract(&other.fields);
        }
        dropped.erase(&mut merged, shape);
    }
    let changed = !overwritten.is_empty() || !dropped.is_empty();
    match entries.iter_mut().find(|entry| entry.is_of(author)) {
        Some(mine) => {
            if changed || mine.fields != intent {
                mine.time = author.now.into();
            }
            mine.fields = intent;
        }
        None => entries.push(Entry {
            manager: author.manager.into(),
            operation: author.operation.into(),
            api_version: author.api_version.into(),
            subresource: author.subresource.into(),
            time: author.now.into(),
            fields: intent,
        }),
    }
    write(&mut merged, &entries);
    Ok(merged)
}

fn refusal(conflicts: &[(String, String)]) -> Failure {
    let lines: Vec<String> = conflicts
        .iter()
        .map(|(who, path)| format!("{who}: {path}"))
        .collect();
    let message = match lines.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {one}"),
        many => format!(
            "Apply failed with {} conflicts: {}",
            many.len(),
            many.join("\n")
        ),
    };
    let causes = conflicts.iter().map(
        |(who, path)| json!({"reason": "FieldManagerConflict", "message": who, "field": path}),
    );
    let mut failure = Failure::new(409, "Conflict", message);
    failure.details = json!({"causes": causes.collect::<Vec<_>>()});
    failure
}

fn merge_map(target: &mut Map<String, Value>, config: &Map<String, Value>, shape: Shape<'_>) {
    for (name, value) in config {
        let (child, list) = shape.child(name);
        match (target.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if !child.is_atomic() => {
                merge_map(old, new, child)
            }
            (Some(Value::Array(old)), Value::Array(new)) if list != List::Atomic => {
                merge_list(old, new, child.item(), &list)
            }
            _ => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

fn merge_list(old: &mut Vec<Value>, new: &[Value], shape: Shape<'_>, list: &List) {
    for item in new {
        let wanted = identity(item, list);
        match (
            old.iter_mut().find(|old| identity(old, list) == wanted),
            item,
        ) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new, shape),
            (Some(old), new) => *old = new.clone(),
            (None, new) => old.push(new.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
