//! The ways to change an object without sending it whole.

mod json;
mod strategic;

use serde_json::Value;

pub(crate) use json::json_patch;
pub(crate) use strategic::strategic_merge;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The patch itself is malformed: a bad request.
    #[error("{0}")]
    Malformed(String),
    /// A `test` failed or a path does not exist: the object is not as the patch expects it.
    #[error("{0}")]
    Unfit(String),
}

/// JSON merge patch (RFC 7396): objects are merged, null removes, all else replaces.
pub(crate) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (name, change) in patch {
        if change.is_null() {
            target.remove(name);
        } else {
            merge_patch(target.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests;
