//! What pending news of a key do to what is stored under it.

use crate::delta::{Change, Trust};
use crate::delta_fifo::state::Gone;
use crate::object::{Object, Recall};
use crate::version::Version;

#[cfg(test)]
mod tests;

/// What becomes of the key.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It stays as it is stored, or absent.
    Keep,
    /// This is stored.
    Put(Object),
    /// It is taken out.
    Remove,
}

#[derive(Debug)]
pub(super) struct Settled {
    /// In the order they happened; two when one incarnation followed another.
    pub(super) changes: Vec<Change>,
    pub(super) outcome: Outcome,
    /// Whether something older than what is known was refused.
    pub(super) stale: bool,
}

/// Decides. `grave` is when the key went, if that is later than the low-water mark: no state up to then is news.
pub(super) fn settle(
    stored: Option<&Object>,
    grave: Option<&Version>,
    gone: Option<&Gone>,
    latest: Option<&Object>,
    trust: Trust,
) -> Settled {
    let mut changes = Vec::new();
    let mut stale = false;
    let mut current = stored;
    if let (Some(gone), Some(object)) = (gone, current) {
        let old = gone
            .version
            .as_ref()
            .is_some_and(|version| version.is_before(&object.meta().resource_version));
        if old && !trust.is_final() {
            stale = true;
        } else {
            changes.push(deleted(object, gone.last.as_ref()));
            current = None;
        }
    }
    match (current, latest) {
        (_, None) => {}
        (None, Some(new)) => {
            let buried = grave.is_some_and(|grave| grave.has_reached(&new.meta().resource_version));
            if buried && !trust.is_final() {
                stale = true;
            } else {
                changes.push(Change::Created(new.clone()));
                return Settled {
                    changes,
                    outcome: Outcome::Put(new.clone()),
                    stale,
                };
            }
        }
        (Some(old), Some(new))
            if old.is_same_state(new) && !(trust == Trust::Restored && differ(old, new)) => {}
        (Some(old), Some(new))
            if !trust.is_final()
                && new
                    .meta()
                    .resource_version
                    .is_before(&old.meta().resource_version) =>
        {
            stale = true
        }
        (Some(old), Some(new)) => {
            if old.meta().uid == new.meta().uid {
                changes.push(Change::Updated {
                    old: old.clone(),
                    new: new.clone(),
                });
            } else {
                changes.push(deleted(old, None));
                changes.push(Change::Created(new.clone()));
            }
            return Settled {
                changes,
                outcome: Outcome::Put(new.clone()),
                stale,
            };
        }
    }
    let removed = stored.is_some() && current.is_none();
    Settled {
        changes,
        outcome: if removed {
            Outcome::Remove
        } else {
            Outcome::Keep
        },
        stale,
    }
}

/// The final state is certain only if the deletion that was seen is that of the stored incarnation.
fn deleted(stored: &Object, last: Option<&Object>) -> Change {
    match last.filter(|last| last.meta().uid == stored.meta().uid) {
        Some(last) => Change::Deleted {
            last: last.clone(),
            certain: true,
        },
        None => Change::Deleted {
            last: stored.clone(),
            certain: false,
        },
    }
}

/// Whether two documents differ, in whatever order their members stand: watches and lists of one server do not write them alike.
fn differ(old: &Object, new: &Object) -> bool {
    // no part of a Secret is left behind by parsing it
    let is_parsed = !matches!(old.recall(), Recall::Never);
    let (old, new) = (old.json(), new.json());
    let parse = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).ok();
    let equal = || parse(&old).is_some_and(|old| Some(old) == parse(&new));
    old != new && !(is_parsed && equal())
}
