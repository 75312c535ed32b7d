use super::open;
use crate::key::Key;
use crate::version::Version;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn identity_is_parsed_eagerly() {
    let object = open(
        br#"{"kind":"Pod","spec":{"metadata":{"name":"decoy"}},"metadata":{"name":"web","namespace":"default","uid":"u-1",
        "resourceVersion":"42","generation":3,"deletionTimestamp":"2024-05-01T10:00:00Z"}}"#,
    )
    .unwrap();
    assert_eq!(object.key().as_str(), "default/web");
    assert_eq!(object.meta().uid.to_string(), "u-1");
    assert_eq!(object.meta().resource_version, Version::new("42"));
    assert_eq!(object.meta().generation, Some(3));
    assert_eq!(
        object.meta().deletion_timestamp.unwrap().to_string(),
        "2024-05-01T10:00:00Z"
    );
}

#[test]
fn a_bad_object_is_known_by_name_where_the_name_can_be_found() {
    for (bytes, key) in [
        (&br#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"3","generation":"x"}}"#[..], Some("n/a")),
        (br#"{"metadata":{"name":"a","uid":7,"resourceVersion":"3"}}"#, Some("a")),
        (br#"{"spec":{"x":[1,{"name":"no"}]},"metadata":{"labels":{"name":"no"},"name":"a","resourceVersion":"3"},"spec":"#, Some("a")),
        (b"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\",\"annotations\":{\"x\":\"\\", Some("a")),
        (br#"{"metadata":{"name":"","resourceVersion":"3","uid":"x"}}"#, None),
        (br#"{"metadata":null}"#, None),
        (b"[1,2]", None),
        (b"\"metadata\"", None),
        (b"", None),
    ] {
        let bad = open(bytes).unwrap_err();
        assert_eq!(bad.key.as_ref().map(|key| key.as_str()), key, "{}", String::from_utf8_lossy(bytes));
        if key.is_some() {
            assert_eq!(bad.version, Some(Version::new("3")));
        }
    }
}

#[test]
fn a_bad_object_is_never_put_down_to_a_name_that_may_not_be_its_own() {
    for (bytes, key) in [
        // written with escapes it is the same name
        (
            &br#"{"metadata":{"n\u0061me":"w\u0065b","namespace":"n","uid":7}}"#[..],
            Some("n/web"),
        ),
        (br#"{"metadata":{"name":"a","name":"b"}}"#, None),
        (br#"{"metadata":{"name":"a","namespace":7}}"#, None),
        (br#"{"metadata":{"name":"a","namespace":{"x":1}}}"#, None),
        (br#"{"metadata":{"name":"a","namespace":null}}"#, Some("a")),
        (
            b"{\"metadata\":{\"name\":\"a\xff\",\"namespace\":\"n\"}}",
            None,
        ),
        // the namespace may have been cut off
        (br#"{"metadata":{"annotations":{},"name":"a""#, None),
        (
            br#"{"metadata":{"annotations":{},"name":"a"},"spec"#,
            Some("a"),
        ),
    ] {
        let bad = open(bytes).unwrap_err();
        assert_eq!(
            bad.key.as_ref().map(|key| key.as_str()),
            key,
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn an_object_without_version_cannot_be_ordered_and_is_bad() {
    assert!(
        open(br#"{"metadata":{"name":"a"}}"#)
            .unwrap_err()
            .reason
            .contains("resourceVersion")
    );
}

#[test]
fn managed_fields_are_cut_out_wherever_they_stand() {
    for text in [
        r#"{"metadata":{"managedFields":[{"a":"]"}],"name":"a","resourceVersion":"1"}}"#,
        r#"{"metadata":{"name":"a", "managedFields" : [ {} ] , "resourceVersion":"1"}}"#,
        r#"{"metadata":{"name":"a","resourceVersion":"1" , "managedFields":[]  }}"#,
        r#"{"metadata":{"name":"a","resourceVersion":"1","labels":{"managedFields":"kept"}}}"#,
        r#"{"metadata":{"name":"a","managed\u0046ields":[{}],"resourceVersion":"1"}}"#,
        r#"{"\u006detadata":{"n\u0061me":"a","resourceVersion":"1","\u006danagedFields":[{}]}}"#,
    ] {
        let object = open(text.as_bytes()).unwrap();
        let mut expected: Value = serde_json::from_str(text).unwrap();
        expected["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(
            serde_json::from_slice::<Value>(&object.json()).unwrap(),
            expected,
            "{text}"
        );
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é\u{1F6A2}\\\\\"]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(
                (
                    "(name|metadata|managedFields|items|[a-z\\\\\"]{0,3})",
                    inner
                ),
                0..4
            )
            .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_kept_is_the_document_without_managed_fields(managed in value(), spec in value(), pretty: bool) {
        let document = json!({"spec": spec, "metadata": {"name": "a", "namespace": "n", "resourceVersion": "5", "managedFields": managed}});
        let bytes = if pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) }.unwrap();
        let object = open(&bytes).unwrap();
        // a float may change in its last digit when it is printed and read
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        if !document["metadata"]["managedFields"].is_null() {
            document["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&object.json()).unwrap(), document);
        prop_assert_eq!(object.key().as_str(), "n/a");
    }

    #[test]
    fn damaged_bytes_never_panic_and_never_change_the_name(cut in 0_usize..120, flip in 0_usize..120, byte: u8) {
        let mut bytes = br#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"5","labels":{"x":"y"}},"spec":{"name":"b"}}"#.to_vec();
        bytes.truncate(cut);
        let named = bytes.len() > 70;
        if flip > 70 && let Some(place) = bytes.get_mut(flip) {
            *place = byte;
        }
        match open(&bytes) {
            Ok(object) => prop_assert_eq!(object.key().as_str(), "n/a"),
            Err(bad) if named => prop_assert_eq!(bad.key, Some(Key::new(Some("n"), "a"))),
            Err(_) => {}
        }
    }
}

#[test]
fn names_with_a_slash_are_refused_for_two_of_them_could_share_a_key() {
    for (namespace, name) in [("a/b", "c"), ("a", "b/c"), ("", "a/b")] {
        let json = serde_json::json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": "1"}});
        let bad = super::open(json.to_string().as_bytes()).unwrap_err();
        assert_eq!(bad.key, None);
        assert!(bad.reason.contains("slash"), "{}", bad.reason);
    }
}
