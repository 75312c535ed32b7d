//! Who owns whom, and what the garbage collector should do about it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::object::{Body, Collection, Key, Object, at, finalizers, terminating};

/// Keeps an owner until all its blocking dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until its dependents have been told that they have no owner.
pub(crate) const ORPHAN: &str = "orphan";

type Place = (Collection, Key);

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerRef {
    pub(crate) uid: String,
    pub(crate) blocks: bool,
}

/// The owner references of a body.
pub(crate) fn owner_refs(body: &Body) -> impl Iterator<Item = OwnerRef> {
    let refs = at(body, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    refs.into_iter().flatten().filter_map(|reference| {
        Some(OwnerRef {
            uid: reference.get("uid")?.as_str()?.to_owned(),
            blocks: reference
                .get("blockOwnerDeletion")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    })
}

/// What to do to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Delete it: all its owners are gone. `foreground` when an owner waits for it.
    Delete {
        place: Place,
        uid: String,
        foreground: bool,
    },
    /// Take the reference to this owner out of it.
    Disown { place: Place, owner: String },
    /// Take this finalizer out of it.
    Release {
        place: Place,
        finalizer: &'static str,
    },
}

/// The graph of owner references, kept up to date by every commit at a cost that depends on that object's references
/// alone, and the objects whose neighbourhood changed since the collector last looked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    live: BTreeMap<String, Place>,
    dependents: BTreeMap<String, BTreeSet<Place>>,
    suspects: BTreeSet<Place>,
}

impl Owners {
    /// Takes note of a committed write.
    pub(crate) fn observe(
        &mut self,
        collection: &Collection,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        let Some(object) = new.or(old) else { return };
        let place = (collection.clone(), object.key.clone());
        if let Some(old) = old {
            for owner in owner_refs(&old.body) {
                if let Some(set) = self.dependents.get_mut(&owner.uid) {
                    set.remove(&place);
                    if set.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
                // an owner that waits for its dependents may have lost the last one
                self.suspects.extend(self.live.get(&owner.uid).cloned());
            }
            if new.is_none() {
                self.live.remove(old.uid());
                self.suspects.extend(
                    self.dependents
                        .get(old.uid())
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
            }
        }
        let Some(new) = new else {
            self.suspects.remove(&place);
            return;
        };
        self.live.insert(new.uid().to_owned(), place.clone());
        let mut owned = false;
        for owner in owner_refs(&new.body) {
            owned = true;
            self.dependents
                .entry(owner.uid)
                .or_default()
                .insert(place.clone());
        }
        if owned || new.terminating() {
            self.suspects.insert(place);
        }
    }

    /// Takes one object to look at; `None` when the collector has nothing to do.
    pub(crate) fn suspect(&mut self) -> Option<Place> {
        self.suspects.pop_first()
    }

    /// What to do about an object. `read` finds an object by its place.
    pub(crate) fn judge(
        &self,
        place: &Place,
        read: impl Fn(&Place) -> Option<std::sync::Arc<Object>>,
    ) -> Vec<Action> {
        let Some(object) = read(place) else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        if object.terminating() {
            let has = |name: &str| finalizers(&object.body).any(|f| f == name);
            let dependents = self.dependents.get(object.uid());
            if has(ORPHAN) {
                let disown = |place: &Place| Action::Disown {
                    place: place.clone(),
                    owner: object.uid().into(),
                };
                actions.extend(dependents.into_iter().flatten().map(disown));
                actions.push(Action::Release {
                    place: place.clone(),
                    finalizer: ORPHAN,
                });
            } else if has(FOREGROUND) {
                let mut blocked = false;
                for dependent in dependents.into_iter().flatten() {
                    let Some(found) = read(dependent) else {
                        continue;
                    };
                    blocked |= owner_refs(&found.body).any(|r| r.uid == object.uid() && r.blocks);
                    if !terminating(&found.body) && self.owners_left(&found.body, object.uid()) == 0
                    {
                        let uid = found.uid().to_owned();
                        actions.push(Action::Delete {
                            place: dependent.clone(),
                            uid,
                            foreground: true,
                        });
                    }
                }
                if !blocked {
                    actions.push(Action::Release {
                        place: place.clone(),
                        finalizer: FOREGROUND,
                    });
                }
            }
            return actions;
        }
        let owners: Vec<OwnerRef> = owner_refs(&object.body).collect();
        let absent: Vec<&OwnerRef> = owners
            .iter()
            .filter(|owner| !self.live.contains_key(&owner.uid))
            .collect();
        if !owners.is_empty() && absent.len() == owners.len() {
            actions.push(Action::Delete {
                place: place.clone(),
                uid: object.uid().into(),
                foreground: false,
            });
        } else {
            // an object with a living owner only loses its references to the dead ones
            actions.extend(absent.iter().map(|owner| Action::Disown {
                place: place.clone(),
                owner: owner.uid.clone(),
            }));
            let waiting = owners
                .iter()
                .filter_map(|owner| self.live.get(&owner.uid))
                .filter_map(&read);
            let waits = waiting
                .filter(|owner| {
                    owner.terminating() && finalizers(&owner.body).any(|f| f == FOREGROUND)
                })
                .any(|owner| self.owners_left(&object.body, owner.uid()) == 0);
            if waits {
                actions.push(Action::Delete {
                    place: place.clone(),
                    uid: object.uid().into(),
                    foreground: true,
                });
            }
        }
        actions
    }

    fn owners_left(&self, body: &Body, without: &str) -> usize {
        owner_refs(body)
            .filter(|owner| owner.uid != without && self.live.contains_key(&owner.uid))
            .count()
    }
}

#[cfg(test)]
mod tests;
