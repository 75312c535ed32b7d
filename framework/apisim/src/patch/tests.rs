use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_merge_patch_merges_removes_and_replaces() {
    let mut target = json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "gone": true});
    merge_patch(
        &mut target,
        &json!({"a": {"b": 9, "d": null}, "list": [3], "gone": null, "new": {"x": null, "y": 1}}),
    );
    assert_eq!(
        target,
        json!({"a": {"b": 9, "c": 2}, "list": [3], "new": {"y": 1}})
    );
}

fn patched(target: &Value, operations: Value) -> Result<Value, PatchError> {
    let mut target = target.clone();
    json_patch(&mut target, &operations).map(|()| target)
}

#[test]
fn each_json_patch_operation_does_its_work() {
    let target = json!({"a": {"b": 1}, "list": [1, 2], "a/b": {"~": 0}});
    for (operations, expected) in [
        (
            json!([{"op": "add", "path": "/a/c", "value": 2}]),
            json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "add", "path": "/list/1", "value": 9}]),
            json!({"a": {"b": 1}, "list": [1, 9, 2], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "add", "path": "/list/-", "value": 9}]),
            json!({"a": {"b": 1}, "list": [1, 2, 9], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "remove", "path": "/list/0"}]),
            json!({"a": {"b": 1}, "list": [2], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "replace", "path": "/a~1b/~0", "value": 5}]),
            json!({"a": {"b": 1}, "list": [1, 2], "a/b": {"~": 5}}),
        ),
        (
            json!([{"op": "move", "from": "/a/b", "path": "/c"}]),
            json!({"a": {}, "c": 1, "list": [1, 2], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "copy", "from": "/list", "path": "/c"}]),
            json!({"a": {"b": 1}, "c": [1, 2], "list": [1, 2], "a/b": {"~": 0}}),
        ),
        (
            json!([{"op": "test", "path": "/a/b", "value": 1}]),
            target.clone(),
        ),
    ] {
        assert_eq!(
            patched(&target, operations.clone()),
            Ok(expected),
            "{operations}"
        );
    }
}

#[test]
fn a_patch_that_does_not_fit_is_told_from_one_that_is_none() {
    let target = json!({"a": 1, "list": []});
    for unfit in [
        json!([{"op": "test", "path": "/a", "value": 2}]),
        json!([{"op": "test", "path": "/absent", "value": 2}]),
        json!([{"op": "remove", "path": "/absent"}]),
        json!([{"op": "replace", "path": "/absent", "value": 1}]),
        json!([{"op": "add", "path": "/absent/x", "value": 1}]),
        json!([{"op": "add", "path": "/list/3", "value": 1}]),
        json!([{"op": "jump", "path": "/a"}]),
    ] {
        assert!(
            matches!(patched(&target, unfit.clone()), Err(PatchError::Unfit(_))),
            "{unfit}"
        );
    }
    for malformed in [
        json!({}),
        json!([{"path": "/a"}]),
        json!([{"op": "add", "path": "/a"}]),
    ] {
        assert!(
            matches!(
                patched(&target, malformed.clone()),
                Err(PatchError::Malformed(_))
            ),
            "{malformed}"
        );
    }
}

fn strategic(mut target: Value, patch: &Value) -> Value {
    strategic_merge(&mut target, patch).expect("a patch");
    target
}

#[test]
fn containers_are_merged_by_name_and_their_ports_by_number() {
    let pod = json!({"spec": {"containers": [
        {"name": "main", "image": "a:1", "ports": [{"containerPort": 80}], "args": ["x"]}, {"name": "side", "image": "b:1"},
    ]}});
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "a:2", "args": ["y"], "ports": [{"containerPort": 81}]}]}});
    let after = strategic(pod, &patch);
    let main = &after["spec"]["containers"][0];
    assert_eq!(
        (&main["image"], &main["args"]),
        (&json!("a:2"), &json!(["y"]))
    );
    assert_eq!(
        main["ports"],
        json!([{"containerPort": 80}, {"containerPort": 81}])
    );
    assert_eq!(after["spec"]["containers"][1]["name"], "side");
}

#[test]
fn directives_delete_replace_and_order() {
    let pod = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"nodeSelector": {"x": "y"}, "containers": [{"name": "a"}, {"name": "b"}]}});
    let patch = json!({
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {
            "nodeSelector": {"$patch": "replace", "z": "w"},
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "b", "$patch": "delete"}, {"name": "c"}],
        },
    });
    let after = strategic(pod, &patch);
    assert_eq!(after["metadata"]["finalizers"], json!(["b"]));
    assert_eq!(after["spec"]["nodeSelector"], json!({"z": "w"}));
    assert_eq!(
        after["spec"]["containers"],
        json!([{"name": "c"}, {"name": "a"}])
    );
}

#[test]
fn retained_keys_drop_the_others() {
    let target =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(
        strategic(target, &patch),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn merging_twice_is_merging_once(target in any_json(), patch in any_json()) {
        let mut once = target;
        merge_patch(&mut once, &patch);
        let mut twice = once.clone();
        merge_patch(&mut twice, &patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn no_input_breaks_the_readers(target in any_json(), patch in any_json()) {
        let _ = json_patch(&mut target.clone(), &patch);
        let _ = strategic_merge(&mut target.clone(), &patch);
    }
}
