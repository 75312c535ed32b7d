use k8s_openapi::api::{core::v1::Node, rbac::v1::ClusterRole};
use kube::Resource;
use proptest::prelude::*;

use super::*;

fn named<K: Resource<DynamicType = ()> + Default>(namespace: Option<&str>, name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.into());
    object.meta_mut().namespace = namespace.map(Into::into);
    object
}

#[test]
fn an_event_about_an_object_without_a_namespace_is_in_the_default_one() {
    let node: Node = named(None, "n1");
    let event =
        Note::normal(&node, "Drained", "").event("c", "pod", NOWHERE, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(event.regarding.expect("an object").namespace, None);
}

#[test]
fn a_second_object_and_an_action_are_told_and_make_another_series() {
    let (node, role): (Node, ClusterRole) = (named(None, "n1"), named(None, "system:node"));
    let plain = Note::normal(&node, "Bound", "text");
    let told = plain.clone().because_of(&role).action("Bind");
    let event = told.event("c", "pod", NOWHERE, jiff::Timestamp::UNIX_EPOCH);
    let related = event.related.expect("a second object");
    assert_eq!(related.name.as_deref(), Some("system:node"));
    assert_eq!(event.action.as_deref(), Some("Bind"));
    assert_ne!(plain.identity("c"), told.identity("c"));
    assert_eq!(plain.subject("c"), told.subject("c"));
}

proptest! {
    #[test]
    fn whatever_is_told_by_whom_about_what_makes_an_event_that_the_api_takes(
        text in ".{0,1500}", name in ".{0,300}", source in ".{0,100}", instance in ".{0,200}", nanos in 0..i64::MAX, number in any::<u64>(),
    ) {
        let at = jiff::Timestamp::from_nanosecond(nanos.into()).expect("in range");
        let node: Node = named(None, &name);
        let event = Note::warning(&node, "", text.clone()).event(&source, &instance, NOWHERE, at);
        let note = event.note.expect("a note");
        prop_assert!(note.len() <= 1024);
        prop_assert!(text.len() > 1024 || note == text);
        for word in [event.reason, event.action, event.reporting_instance] {
            let word = word.expect("a word");
            prop_assert!(!word.is_empty() && word.len() <= 128);
        }
        let controller = event.reporting_controller.expect("a controller");
        prop_assert_eq!(&qualified(&controller), &controller);
        let name = name_of(Some(&name), at, number);
        prop_assert!(name.len() <= 253 && is_subdomain(&name), "{name}");
    }

    #[test]
    fn events_of_two_numbers_or_times_have_two_names(name in "[a-z]{1,253}", nanos in 0..i64::MAX / 2, number in any::<u64>()) {
        let at = |nanos: i64| jiff::Timestamp::from_nanosecond(nanos.into()).expect("in range");
        let first = name_of(Some(&name), at(nanos), number);
        prop_assert_ne!(&first, &name_of(Some(&name), at(nanos), number.wrapping_add(1)));
        prop_assert_ne!(&first, &name_of(Some(&name), at(nanos + 1), number));
    }
}
