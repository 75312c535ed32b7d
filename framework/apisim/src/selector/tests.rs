use serde_json::json;

use super::*;
use crate::model::object::Key;

fn object() -> Object {
    let body = json!({
        "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "web", "tier": "front", "weight": "5"}},
        "involvedObject": {"kind": "Pod"}, "count": 3,
    });
    Object::new(
        Key::new("ns", "a"),
        1,
        body.as_object().cloned().expect("an object"),
    )
}

#[test]
fn each_kind_of_label_requirement_is_understood() {
    for (text, expected) in [
        ("", true),
        ("app=web", true),
        ("app==web,tier=front", true),
        ("app=api", false),
        ("app!=api", true),
        ("absent!=x", true),
        ("app in (web, api)", true),
        ("app in (api)", false),
        ("app notin (api,db),tier", true),
        ("absent notin (x)", true),
        ("!absent", true),
        ("!app", false),
        ("tier", true),
        ("weight>4,weight<6", true),
        ("weight>5", false),
        ("absent=", false),
    ] {
        assert_eq!(
            Labels::parse(text).expect("a selector").matches(&object()),
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_is_no_selector_is_refused() {
    for text in ["=x", "a b", "app in web", "weight>heavy"] {
        assert!(Labels::parse(text).is_err(), "{text}");
    }
}

#[test]
fn fields_match_by_their_text() {
    let selectable = [
        "involvedObject.kind".to_owned(),
        "count".to_owned(),
        "type".to_owned(),
    ];
    for (text, expected) in [
        ("metadata.name=a,metadata.namespace==ns", true),
        ("metadata.name!=a", false),
        ("involvedObject.kind=Pod", true),
        ("count=3", true),
        ("type=", true),
        ("type!=", false),
    ] {
        assert_eq!(
            Fields::parse(text, &selectable)
                .expect("a selector")
                .matches(&object()),
            expected,
            "{text}"
        );
    }
    assert!(
        Fields::parse("spec.nodeName=x", &selectable).is_err(),
        "not selectable"
    );
    assert!(
        Fields::parse("metadata.name", &selectable).is_err(),
        "no comparison"
    );
}
