use std::collections::BTreeSet;

use form_urlencoded::Serializer;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::{Expression, Selector};
use proptest::prelude::*;

use super::{Form, Selection, SelectionError};
use crate::kind::{Kind, Scope};

fn equal(key: &str, value: &str) -> Expression {
    Expression::Equal(key.into(), value.into())
}

fn query(selection: &Selection) -> String {
    let mut query = Serializer::new(String::new());
    selection.narrow(&mut query);
    query.finish()
}

#[test]
fn the_order_of_conditions_makes_no_difference() {
    let pods = Selection::of::<Pod>;
    let both = Selector::from_iter([equal("app", "web"), Expression::Exists("tier".into())]);
    let one = pods()
        .labels(both)
        .unwrap()
        .field("spec.nodeName", "a")
        .unwrap()
        .field_not("status.phase", "Failed")
        .unwrap();
    let other = pods()
        .field_not("status.phase", "Failed")
        .and_then(|pods| pods.field("spec.nodeName", "a"))
        .and_then(|pods| pods.labels(Expression::Exists("tier".into())))
        .and_then(|pods| pods.labels(equal("app", "web")))
        .unwrap();
    assert_eq!(one, other);
    assert_eq!(
        query(&one),
        "labelSelector=app%3Dweb%2Ctier&fieldSelector=spec.nodeName%3Da%2Cstatus.phase%21%3DFailed"
    );
    assert_eq!(query(&pods()), "");
}

#[test]
fn what_a_field_is_compared_with_is_escaped_as_servers_read_it() {
    let selection = Selection::of::<Pod>()
        .field("metadata.name", r"a,b=c\d")
        .unwrap();
    assert_eq!(selection.field_selector(), r"metadata.name=a\,b\=c\\d");
}

#[test]
fn conditions_a_server_would_refuse_are_refused_at_once() {
    let labels = |condition| Selection::of::<Pod>().labels([condition]);
    for key in [
        "",
        "a b",
        "-a",
        "a/b/c",
        "/a",
        "Example.com/a",
        "a/",
        "ex_ample/a",
        &"a".repeat(64),
    ] {
        let error = labels(Expression::Exists(key.into())).unwrap_err();
        assert!(
            matches!(error, SelectionError::LabelKey { .. }),
            "{key}: {error}"
        );
    }
    for value in ["a b", "a,b", ".a", "a/b", &"a".repeat(64)] {
        let error = labels(equal("app", value)).unwrap_err();
        assert!(
            matches!(error, SelectionError::LabelValue { .. }),
            "{value}: {error}"
        );
    }
    assert!(labels(equal("app.kubernetes.io/name", "")).is_ok());
    assert!(labels(equal("a", "A_b-c.9")).is_ok());
    assert_eq!(
        labels(Expression::In("app".into(), BTreeSet::new())).unwrap_err(),
        SelectionError::NoValues { key: "app".into() }
    );
    for path in ["", "spec..name", "spec.node=a", "spec,name"] {
        assert!(Selection::of::<Pod>().field(path, "x").is_err(), "{path}");
    }
}

#[test]
fn a_kind_without_namespaces_has_one_scope() {
    let nodes = Selection::of::<Node>().within(Scope::Namespace("a".into()));
    assert_eq!(nodes, Selection::of::<Node>());
}

#[test]
fn versions_of_a_resource_and_selections_of_a_kind_have_different_ids() {
    let kind = |group: &str, version: &str| Kind::new(group, version, "Web", "webs");
    let webs = || Selection::new(kind("apps", "v1"));
    let a = || webs().within(Scope::Namespace("a".into()));
    let all = [
        webs(),
        Selection::new(kind("apps", "v1beta1")),
        Selection::new(kind("", "v1")),
        a(),
        a().metadata_only(),
        a().labels(Expression::Exists("metadata".into())).unwrap(),
        a().labels(equal("app.kubernetes.io/name", "web")).unwrap(),
        a().field("metadata.name", "x;metadata").unwrap(),
        a().field("metadata.name", "x").unwrap().metadata_only(),
        a().field("metadata.name", "x%3Bmetadata").unwrap(),
    ];
    let ids: BTreeSet<_> = all.iter().map(Selection::id).collect();
    assert_eq!(ids.len(), all.len(), "{ids:#?}");
    assert!(ids.iter().all(|id| !id.contains('/')));
    assert_eq!(all[0].id(), "webs.v1.apps,*");
    assert_eq!(all[2].id(), "webs.v1,*");
    assert_eq!(
        all[6].id(),
        "webs.v1.apps,a;labels:app.kubernetes.io%2Fname=web"
    );
    assert_eq!(all[4].qualifier(), "metadata");
    assert_eq!(all[3].qualifier(), "");
}

fn selection() -> impl Strategy<Value = Selection> {
    let text = "[a-c;,%/=]{0,3}";
    let name = "[a-c]{1,2}";
    (
        prop_oneof![Just(Scope::All), name.prop_map(Scope::Namespace)],
        prop::collection::vec((name, 0..3), 0..3),
        prop::collection::vec((name, text, any::<bool>()), 0..3),
        any::<bool>(),
    )
        .prop_map(|(scope, labels, fields, whole)| {
            let mut selection = Selection::of::<Pod>().within(scope);
            for (key, what) in labels {
                let condition = match what {
                    0 => Expression::Exists(key),
                    1 => Expression::In(key, BTreeSet::from(["metadata".into(), "x".into()])),
                    _ => equal("example.com/name", &key),
                };
                selection = selection.labels(condition).unwrap();
            }
            for (path, value, is) in fields {
                selection = if is {
                    selection.field(&path, &value)
                } else {
                    selection.field_not(&path, &value)
                }
                .unwrap();
            }
            if whole {
                selection
            } else {
                selection.metadata_only()
            }
        })
}

proptest! {
    #[test]
    fn selections_have_one_id_exactly_when_they_are_equal(one in selection(), other in selection()) {
        prop_assert_eq!(one == other, one.id() == other.id(), "{} {}", one.id(), other.id());
        prop_assert!(!one.id().contains('/'));
    }
}

#[test]
fn metadata_is_asked_for_by_the_form_of_the_answer() {
    let whole = Selection::of::<Pod>();
    assert_eq!(
        (whole.form(), whole.accept("list")),
        (Form::Whole, "application/json")
    );
    let metadata = whole.metadata_only();
    assert!(
        metadata
            .accept("list")
            .contains("as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    );
    assert!(
        metadata
            .accept("watch")
            .contains("as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    );
}

#[test]
fn a_type_of_metadata_selects_metadata() {
    use kube::core::PartialObjectMeta;
    let metadata = Selection::of::<PartialObjectMeta<Pod>>();
    assert_eq!(metadata, Selection::of::<Pod>().metadata_only());
}

#[test]
fn labels_meet_a_selection_when_they_meet_all_of_its_conditions() {
    let selector = Selector::from_iter([equal("app", "web"), Expression::Exists("tier".into())]);
    let pods = Selection::of::<Pod>();
    let labels = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        pairs.collect()
    };
    assert!(pods.meets_labels(&labels(&[])));
    let web = pods.labels(selector).unwrap();
    assert!(web.meets_labels(&labels(&[("app", "web"), ("tier", "front")])));
    assert!(!web.meets_labels(&labels(&[("app", "web")])));
    assert!(!web.meets_labels(&labels(&[("app", "db"), ("tier", "front")])));
}

#[test]
fn an_object_meets_a_selection_when_the_server_would_select_it() {
    let object =
        |json: serde_json::Value| crate::envelope::open(json.to_string().as_bytes()).unwrap();
    let pod = |labels: serde_json::Value, spec: serde_json::Value| {
        object(serde_json::json!({
            "metadata": { "name": "a", "namespace": "shop", "resourceVersion": "1", "labels": labels },
            "spec": spec,
        }))
    };
    let (web, on_a) = (
        serde_json::json!({ "app": "web" }),
        serde_json::json!({ "nodeName": "a" }),
    );
    let none = serde_json::json!({});
    let all = Selection::of::<Pod>();
    assert!(all.is_unconditional() && all.meets(&pod(none.clone(), none.clone())));
    assert!(
        !all.in_namespace("other")
            .meets(&pod(none.clone(), none.clone()))
    );
    let labelled = Selection::of::<Pod>().labels(equal("app", "web")).unwrap();
    assert!(labelled.meets(&pod(web.clone(), none.clone())));
    assert!(!labelled.meets(&pod(none.clone(), none.clone())));
    let placed = Selection::of::<Pod>().field("spec.nodeName", "a").unwrap();
    assert!(!placed.is_unconditional() && placed.meets(&pod(none.clone(), on_a.clone())));
    assert!(!placed.meets(&pod(none.clone(), none.clone())));
    let unplaced = Selection::of::<Pod>().field("spec.nodeName", "").unwrap();
    assert!(unplaced.meets(&pod(none.clone(), none.clone())));
    assert!(!unplaced.meets(&pod(none.clone(), on_a.clone())));
    let elsewhere = Selection::of::<Pod>()
        .field_not("spec.nodeName", "a")
        .unwrap();
    assert!(
        !elsewhere.meets(&pod(none.clone(), on_a.clone()))
            && elsewhere.meets(&pod(none.clone(), none.clone()))
    );
    let schedulable = Selection::of::<Node>()
        .field("spec.unschedulable", "false")
        .unwrap();
    assert!(schedulable.meets(&pod(none.clone(), none.clone())));
    assert!(!schedulable.meets(&pod(
        none.clone(),
        serde_json::json!({ "unschedulable": true })
    )));
    let odd = Selection::of::<Pod>()
        .field("spec.odd", r"a\b,c=d")
        .unwrap();
    assert!(odd.meets(&pod(none.clone(), serde_json::json!({ "odd": r"a\b,c=d" }))));
    let both = labelled.field("spec.nodeName", "a").unwrap();
    assert!(both.meets(&pod(web.clone(), on_a.clone())) && !both.meets(&pod(web, none.clone())));
    assert!(!both.meets(&pod(none, on_a)));
}
