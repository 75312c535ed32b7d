use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node},
};

use super::*;

fn rights(rights: &[Right], namespaces: &[&str]) -> Rights {
    let namespaces: Vec<_> = namespaces.iter().map(|n| (*n).to_owned()).collect();
    let mut all = Rights::default();
    for right in rights {
        all.add(right, &namespaces);
    }
    all
}

/// `namespace group/resource name: verbs` of each rule.
fn told(rights: &Rights) -> Vec<String> {
    let rules = rights.rules().into_iter().map(|rule| {
        let verbs: Vec<_> = rule.verbs.iter().map(|verb| verb.as_str()).collect();
        format!(
            "{} {} {}: {}",
            rule.namespace.as_deref().unwrap_or("*"),
            rule.full_resource(),
            rule.name.as_deref().unwrap_or("*"),
            verbs.join(" ")
        )
    });
    rules.collect()
}

#[test]
fn rights_are_merged_and_sorted_whatever_their_order() {
    let mut declared = vec![
        Right::on::<ConfigMap>([Verb::Patch]),
        Right::on::<Deployment>([Verb::Update]).subresource("scale"),
        Right::on::<ConfigMap>(Verb::READ),
        Right::on::<ConfigMap>([Verb::Create, Verb::Patch]),
    ];
    let one = rights(&declared, &[]);
    declared.reverse();
    assert_eq!(one, rights(&declared, &[]));
    assert_eq!(
        told(&one),
        [
            "* configmaps *: get list watch create patch",
            "* deployments.apps/scale *: update",
        ]
    );
}

#[test]
fn namespaces_bound_what_is_in_namespaces_and_nothing_else() {
    let declared = [
        Right::on::<ConfigMap>([Verb::Patch]),
        Right::on::<Node>(Verb::READ),
        Right::on::<ConfigMap>([Verb::Get]).within("ops"),
    ];
    assert_eq!(
        told(&rights(&declared, &["b", "a"])),
        [
            "* nodes *: get list watch",
            "a configmaps *: patch",
            "b configmaps *: patch",
            "ops configmaps *: get",
        ]
    );
}

#[test]
fn what_a_wider_rule_allows_is_not_said_again() {
    let declared = [
        Right::on::<ConfigMap>([Verb::Get]),
        Right::on::<ConfigMap>([Verb::Get, Verb::Update]).within("ops"),
        Right::on::<ConfigMap>([Verb::Get, Verb::Update, Verb::Delete])
            .within("ops")
            .named("one"),
    ];
    assert_eq!(
        told(&rights(&declared, &[])),
        [
            "* configmaps *: get",
            "ops configmaps *: update",
            "ops configmaps one: delete",
        ]
    );
}

#[test]
fn a_check_prints_as_a_table_of_yes_and_no() {
    let rights = rights(
        &[
            Right::on::<Deployment>([Verb::Update]).subresource("scale"),
            Right::on::<ConfigMap>([Verb::Get]).within("ops").named("x"),
        ],
        &[],
    );
    let answers = rights.rules().into_iter().flat_map(|rule| {
        let verbs = rule.verbs.clone().into_iter();
        verbs.map(move |verb| Answered {
            allowed: rule.namespace.is_some(),
            rule: rule.clone(),
            verb,
            reason: String::new(),
        })
    });
    let checked = Checked(answers.collect());
    assert_eq!(
        checked.to_string(),
        "NAMESPACE   RESOURCE                 NAME   VERB     ALLOWED\n\
         *           deployments.apps/scale   *      update   no\n\
         ops         configmaps               x      get      yes\n"
    );
    assert_eq!(checked.missing().count(), 1);
}

fn selected(kind: &Kind, namespace: Option<&str>) -> Right {
    let selection = Selection::new(kind.clone());
    let selection = match namespace {
        Some(namespace) => selection.in_namespace(namespace),
        None => selection,
    };
    Right::to_tell_of_selected(&selection)
}

#[test]
fn events_may_be_written_where_the_objects_are_and_about_those_outside_in_both_places_for_such() {
    let (maps, nodes) = (Kind::of::<ConfigMap>(), Kind::of::<Node>());
    let events = |rights: Rights| -> Vec<_> {
        let rules = rights.rules().into_iter();
        rules
            .map(|rule| rule.namespace.unwrap_or("*".into()))
            .collect()
    };
    let in_ = |right: Right, namespaces: &[&str]| events(rights(&[right], namespaces));
    assert_eq!(in_(selected(&maps, None), &[]), ["*"]);
    assert_eq!(in_(selected(&maps, None), &["a", "b"]), ["a", "b"]);
    // what is narrowed to a namespace is there, wherever the manager works
    assert_eq!(in_(selected(&maps, Some("ops")), &["a"]), ["ops"]);
    assert_eq!(in_(selected(&maps, Some("ops")), &[]), ["ops"]);
    for namespaces in [&[][..], &["a"]] {
        let outside = ["default", "kube-system"];
        assert_eq!(in_(selected(&nodes, None), namespaces), outside);
        assert_eq!(in_(Right::to_tell_of::<Node>(), namespaces), outside);
    }
    assert_eq!(in_(Right::to_tell_of::<ConfigMap>(), &["a"]), ["a"]);
}
