use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const OURS: &str = "boatswain/test";

fn finalizer(controller: &str, chosen: Option<&str>, is_used: bool) -> Finalizer {
    let kind = Kind::new("", "v1", "ConfigMap", "configmaps");
    Finalizer::of(kind, controller, chosen.map(Into::into), is_used)
}

fn meta(finalizers: &[&str], is_deleted: bool) -> ObjectMeta {
    let finalizers: Vec<_> = finalizers.iter().map(|name| (*name).to_owned()).collect();
    ObjectMeta {
        uid: Some("u1".into()),
        finalizers: (!finalizers.is_empty()).then_some(finalizers),
        deletion_timestamp: is_deleted.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
        ..ObjectMeta::default()
    }
}

#[test]
fn what_is_done_follows_from_the_finalizer_the_deletion_and_whether_there_is_a_cleanup() {
    let step = |is_used, finalizers: &[&str], is_deleted| {
        finalizer("test", None, is_used).step(&meta(finalizers, is_deleted))
    };
    for (is_used, is_on, is_deleted, wanted) in [
        (true, false, false, Step::Add),
        (true, true, false, Step::Reconcile),
        (true, true, true, Step::CleanUp),
        (true, false, true, Step::Leave),
        (false, false, false, Step::Reconcile),
        (false, false, true, Step::Reconcile),
        (false, true, false, Step::Remove),
        (false, true, true, Step::Remove),
    ] {
        let finalizers = ["other/one", OURS];
        let finalizers = &finalizers[..1 + usize::from(is_on)];
        assert_eq!(step(is_used, finalizers, is_deleted), wanted);
    }
}

#[test]
fn a_finalizer_is_called_after_its_controller_unless_the_author_says_otherwise() {
    let name = |controller, chosen: Option<&str>| finalizer(controller, chosen, true).name;
    assert_eq!(name("test", None), OURS);
    assert_eq!(
        name("example.com/scaler", None),
        "boatswain/example.com_scaler"
    );
    assert_eq!(name("test", Some("example.com/x")), "example.com/x");
}

/// RFC 6902 as far as these patches go, on what a server has.
fn patched(mut object: Value, patch: &Value) -> Option<Value> {
    for operation in patch.as_array().expect("operations") {
        let path = operation["path"].as_str().expect("a path");
        let list = object["metadata"]["finalizers"].as_array_mut();
        match operation["op"].as_str() {
            Some("test") => {
                let null = Value::Null;
                if object.pointer(path).unwrap_or(&null) != &operation["value"] {
                    return None;
                }
            }
            Some("add") => match list {
                Some(list) if path.ends_with('-') => list.push(operation["value"].clone()),
                _ => object["metadata"]["finalizers"] = operation["value"].clone(),
            },
            Some("remove") => {
                let place = path.rsplit('/').next().and_then(|place| place.parse().ok());
                list?.remove(place.expect("a place"));
            }
            other => panic!("{other:?}"),
        }
    }
    Some(object)
}

proptest! {
    #[test]
    fn patches_touch_no_finalizer_but_ours_and_nothing_that_is_not_as_it_was(
        seen in prop::collection::vec(prop::sample::select(vec!["a/1", "a/2", OURS]), 0..4),
        there in prop::collection::vec(prop::sample::select(vec!["a/1", "a/2", OURS]), 0..4),
        is_same in any::<bool>(),
    ) {
        let object = |finalizers: &[&str], uid: &str| match finalizers {
            [] => json!({ "metadata": { "uid": uid } }),
            finalizers => json!({ "metadata": { "uid": uid, "finalizers": finalizers } }),
        };
        let list = |object: &Value| {
            let names = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            names.iter().map(|name| name.as_str().expect("a name").to_owned()).collect::<Vec<_>>()
        };
        let others = |names: &[&str]| names.iter().filter(|name| **name != OURS).map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let seen_meta = meta(&seen, false);
        for patch in [patch::add(&seen_meta, OURS), patch::remove(&seen_meta, OURS)] {
            prop_assert_eq!(patched(object(&there, "u2"), &patch), None, "another object");
        }
        let there = if is_same { seen.clone() } else { there };
        let server = object(&there, "u1");
        if seen.contains(&OURS) {
            if let Some(after) = patched(server.clone(), &patch::remove(&seen_meta, OURS)) {
                let left: Vec<_> = list(&after).into_iter().filter(|name| name != OURS).collect();
                prop_assert_eq!(left, others(&there));
                prop_assert!(there != seen || !list(&after).contains(&OURS.to_owned()));
            } else {
                prop_assert_ne!(&there, &seen);
            }
        } else {
            let after = patched(server, &patch::add(&seen_meta, OURS));
            prop_assert_eq!(after.is_some(), there == seen);
            if let Some(after) = after {
                let mut wanted = others(&seen);
                wanted.push(OURS.to_owned());
                prop_assert_eq!(list(&after), wanted);
            }
        }
    }
}
