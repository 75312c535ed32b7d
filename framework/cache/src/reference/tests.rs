use super::Reference;
use crate::delta::Change;
use crate::envelope;
use crate::kind::Kind;
use crate::object::{Object, Uid};
use serde_json::{Value, json};

fn object(namespace: Option<&str>, more: Value) -> Object {
    let mut metadata =
        json!({"name": "child", "namespace": namespace, "uid": "c", "resourceVersion": "1"});
    let (Some(all), Value::Object(more)) = (metadata.as_object_mut(), more) else {
        unreachable!("both are objects")
    };
    all.extend(more);
    envelope::open(
        json!({"metadata": metadata, "spec": {"refs": [{"name": "x"}, {"name": "m/y"}, {"name": 7}, {"name": ""}]}})
            .to_string()
            .as_bytes(),
    )
    .unwrap()
}

fn owned(owners: &[(&str, &str, &str, bool)]) -> Object {
    let owners: Vec<_> = owners
        .iter()
        .map(|(api_version, kind, name, controller)| {
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": controller})
        })
        .collect();
    object(Some("n"), json!({"ownerReferences": owners}))
}

fn kind(namespaced: bool) -> Kind {
    Kind {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
        namespaced,
    }
}

fn texts(reference: &Reference, object: &Object) -> Vec<String> {
    let keys = reference.keys(object);
    keys.iter().map(ToString::to_string).collect()
}

#[test]
fn owners_are_told_by_group_and_kind_whatever_the_version() {
    let child = owned(&[
        ("apps/v1", "Deployment", "managing", true),
        ("apps/v1beta2", "Deployment", "other", false),
        ("extensions/v1", "Deployment", "foreign", true),
        ("v1", "Deployment", "core", true),
        ("apps/v1", "ReplicaSet", "kin", true),
    ]);
    let (one, all) = (
        Reference::to_controller(kind(true)),
        Reference::to_owners(kind(true)),
    );
    assert_eq!(texts(&one, &child), ["n/managing"]);
    assert_eq!(texts(&all, &child), ["n/managing", "n/other"]);
    assert_eq!(
        texts(&Reference::to_owners(kind(false)), &child),
        ["managing", "other"]
    );
}

#[test]
fn an_owner_that_came_again_is_not_the_one_that_was_named() {
    let child = owned(&[("apps/v1", "Deployment", "web", true)]);
    let stored = |uid: Option<&'static str>| {
        Reference::to_controller(kind(true)).of_incarnation(move |_| uid.map(Uid::from))
    };
    assert_eq!(texts(&stored(Some("uid-web")), &child), ["n/web"]);
    assert!(texts(&stored(Some("another")), &child).is_empty());
    assert_eq!(
        texts(&stored(None), &child),
        ["n/web"],
        "it may be on its way"
    );
}

#[test]
fn a_change_of_owner_concerns_the_old_and_the_new_one() {
    let change = Change::Updated {
        old: owned(&[("apps/v1", "Deployment", "old", true)]),
        new: owned(&[("apps/v1", "Deployment", "new", true)]),
    };
    let keys = Reference::to_controller(kind(true)).keys_of(&change);
    assert_eq!(keys.len(), 2);
    let gone = Change::Deleted {
        last: owned(&[("apps/v1", "Deployment", "old", true)]),
        certain: false,
    };
    assert_eq!(
        Reference::to_controller(kind(true)).keys_of(&gone)[0].as_str(),
        "n/old"
    );
}

#[test]
fn labels_annotations_and_paths_name_keys_and_what_is_no_key_names_nobody() {
    let child = object(
        Some("n"),
        json!({"labels": {"app.io/of": "web"}, "annotations": {"app.io/of": "m/web", "bad": "a/b/c"}}),
    );
    let label = Reference::by_label(kind(true), "app.io/of");
    let annotation = Reference::by_annotation(kind(true), "app.io/of");
    let path = Reference::by_path(kind(true), "spec.refs[*].name");
    assert_eq!(texts(&label, &child), ["n/web"]);
    assert_eq!(texts(&annotation, &child), ["m/web"]);
    assert_eq!(texts(&path, &child), ["m/y", "n/7", "n/x"]);
    assert!(texts(&Reference::by_annotation(kind(true), "bad"), &child).is_empty());
    assert!(texts(&Reference::by_label(kind(true), "absent"), &child).is_empty());
}

#[test]
fn an_object_without_namespace_names_nobody_in_one_unless_it_says_in_which() {
    let wide = object(None, json!({"labels": {"of": "web"}}));
    assert!(texts(&Reference::by_label(kind(true), "of"), &wide).is_empty());
    assert_eq!(
        texts(&Reference::by_label(kind(false), "of"), &wide),
        ["web"]
    );
    assert_eq!(
        texts(&Reference::by_path(kind(true), "spec.refs[*].name"), &wide),
        ["m/y"]
    );
}
