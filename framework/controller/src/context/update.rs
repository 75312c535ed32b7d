//! Changes of an object that survive a lost race: read again, apply again.

use std::{sync::Arc, time::Duration};

use boatswain_cache::Key;
use kube::{ResourceExt as _, core::Status};
use serde_json::Value;

use super::{Context, Writable, failed, key_of};
use crate::client::ClientError;

/// Writes of one update until the race is given up: the run fails with the conflict then, and the key backs off.
const TRIES: u32 = 5;
/// The first pause before reading again; it doubles.
const PAUSE: Duration = Duration::from_millis(10);

impl Context {
    /// Reads the object of `key` from the server, changes it by `mutate` and replaces it; where somebody else was faster (409), again, on what is there then.
    /// Returns it as it is on the server in the end.
    ///
    /// `mutate` may be called several times, each time with another state of the object, and decides by what it is given: if it changes nothing, because the work
    /// is done or the object is not what it should be, nothing is written. It cannot change who the object is.
    ///
    /// # Errors
    ///
    /// - [`ClientError::is_not_found`] when there is no such object (any more),
    /// - [`ClientError::is_conflict`] when the race was lost five times, or when another object has taken the name meanwhile,
    /// - whatever else a read or a write can fail with.
    ///
    /// # Cancellation safety
    ///
    /// When dropped the last write may have happened or not. The next run of the key finds out before it begins.
    pub async fn update_with_retry<K: Writable>(
        &self,
        key: &Key,
        mutate: impl FnMut(&mut K) + Send,
    ) -> Result<K, ClientError> {
        match self.get_live::<K>(key).await? {
            Some(object) => self.update_from(&*object, mutate).await,
            None => Err(missing::<K>(key)),
        }
    }

    /// As [`Context::update_with_retry`], beginning with the state at hand, such as that of a lister: one request where that is the newest, and none where nothing is
    /// to be changed. Another incarnation of the object is never changed.
    ///
    /// # Errors
    ///
    /// As of [`Context::update_with_retry`].
    pub async fn update_from<K: Writable>(
        &self,
        object: &K,
        mut mutate: impl FnMut(&mut K) + Send,
    ) -> Result<K, ClientError> {
        let key = key_of(object);
        let mut now = object.clone();
        let mut pause = PAUSE;
        for tries in 1.. {
            let mut wanted = now.clone();
            mutate(&mut wanted);
            identify(&mut wanted, &now);
            if json(&wanted, &key)? == json(&now, &key)? {
                return Ok(now);
            }
            match self.replace(&wanted).await {
                Err(lost) if lost.is_conflict() && tries < TRIES => {}
                answer => return answer,
            }
            self.surroundings.clock.sleep(pause).await;
            pause *= 2;
            now = match self.get_live::<K>(&key).await? {
                None => return Err(missing::<K>(&key)),
                Some(found) if found.uid() != object.uid() => return Err(another::<K>(&key)),
                Some(found) => Arc::unwrap_or_clone(found),
            };
        }
        // the last try returns whatever it is answered
        Err(another::<K>(&key))
    }
}

/// Who it is is not the author's to change, and neither is the version that is replaced.
fn identify<K: Writable>(wanted: &mut K, now: &K) {
    let (meta, now) = (wanted.meta_mut(), now.meta());
    meta.name.clone_from(&now.name);
    meta.namespace.clone_from(&now.namespace);
    meta.uid.clone_from(&now.uid);
    meta.resource_version.clone_from(&now.resource_version);
}

fn json<K: Writable>(object: &K, key: &Key) -> Result<Value, ClientError> {
    let json = serde_json::to_value(object);
    json.map_err(|error| failed::<K>("update", "", key, kube::Error::SerdeError(error)))
}

fn missing<K: Writable>(key: &Key) -> ClientError {
    let status = Status::failure("there is no such object (any more)", "NotFound").with_code(404);
    failed::<K>("update", "", key, kube::Error::Api(Box::new(status)))
}

fn another<K: Writable>(key: &Key) -> ClientError {
    let text = "another object has taken the name";
    let status = Status::failure(text, "Conflict").with_code(409);
    failed::<K>("update", "", key, kube::Error::Api(Box::new(status)))
}

/// Whether merging `patch` into `target` (RFC 7396) would change it. What is `null` counts as absent, and an absent object as an empty one.
pub(super) fn would_change(target: &Value, patch: &Value) -> bool {
    let Value::Object(patch) = patch else {
        return target != patch;
    };
    let target = match target {
        Value::Object(target) => Some(target),
        Value::Null => None,
        _ => return true,
    };
    patch.iter().any(|(field, value)| {
        let now = target.and_then(|target| target.get(field));
        match (now.unwrap_or(&Value::Null), value) {
            (Value::Null, Value::Null) => false,
            (_, Value::Null) => true,
            // an empty object is something
            (Value::Null, Value::Object(_)) => true,
            (now, value) => would_change(now, value),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_already_is_no_change_and_anything_else_is() {
        let now = json!({ "n": 3, "list": [1], "deep": { "a": "x" }, "none": null });
        for same in [
            json!({}),
            json!({ "n": 3 }),
            json!({ "deep": { "a": "x" }, "none": null, "absent": null }),
            json!({ "list": [1] }),
        ] {
            assert!(!would_change(&now, &same), "{same}");
        }
        for other in [
            json!({ "n": 4 }),
            json!({ "n": null }),
            json!({ "list": [1, 2] }),
            json!({ "deep": { "b": "x" } }),
            json!({ "deep": {}, "new": {} }),
            json!({ "n": { "a": 1 } }),
            json!(null),
        ] {
            assert!(would_change(&now, &other), "{other}");
        }
        assert!(!would_change(&json!(null), &json!({ "a": null })));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..2).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// RFC 7396, word by word.
    fn merged(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else {
            return patch.clone();
        };
        let mut target = match target {
            Value::Object(target) => target,
            _ => serde_json::Map::new(),
        };
        for (field, value) in patch {
            if value.is_null() {
                target.remove(field);
            } else {
                let now = target.remove(field).unwrap_or_default();
                target.insert(field.clone(), merged(now, value));
            }
        }
        target.into()
    }

    proptest! {
        #[test]
        fn a_patch_that_is_said_to_change_nothing_changes_nothing(target in value(), patch in value()) {
            // fields of `null` are no fields to any API server
            let target = merged(json!({}), &json!({ "it": target }))["it"].take();
            let now = if patch.is_object() && target.is_null() { json!({}) } else { target.clone() };
            prop_assert_eq!(would_change(&target, &patch), merged(now.clone(), &patch) != now);
        }

        #[test]
        fn a_patch_changes_once(target in value(), patch in value()) {
            prop_assert!(!would_change(&merged(target, &patch), &patch));
        }
    }
}
