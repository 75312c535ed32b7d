use super::{Event, read};
use crate::delta::Delta;
use crate::framing::Item;
use crate::opener::Opener;
use crate::version::Version;

fn event(line: &[u8]) -> Event {
    read(
        Item::Whole(line),
        1 << 20,
        &mut Opener::default(),
        &|_, _| None,
    )
}

const POD: &str = r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}"#;

#[test]
fn every_type_of_event_is_read() {
    for (kind, name) in [
        ("ADDED", "added"),
        ("MODIFIED", "modified"),
        ("DELETED", "deleted"),
    ] {
        let Event::Delta(told, delta) =
            event(format!(r#"{{"type":"{kind}","object":{POD}}}"#).as_bytes())
        else {
            panic!()
        };
        assert_eq!(
            (told, delta.key().as_str(), delta.version()),
            (name, "n/a", Some(&Version::new("7")))
        );
        assert_eq!(
            matches!(delta, Delta::Gone { last: Some(_), .. }),
            kind == "DELETED"
        );
    }
    let bookmark = event(br#"{"object":{"kind":"Pod","metadata":{"resourceVersion":"9","creationTimestamp":null}},"type":"BOOKMARK"}"#);
    assert!(
        matches!(bookmark, Event::Bookmark { version, initial_end: false } if version == Version::new("9"))
    );
    let error = event(br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#);
    assert!(matches!(error, Event::Error(status) if status.is_expired()));
}

#[test]
fn a_bad_object_is_unreadable_by_name_and_its_deletion_a_deletion() {
    let bad = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7","generation":"x"}}"#;
    let seen = event(format!(r#"{{"type":"MODIFIED","object":{bad}}}"#).as_bytes());
    assert!(
        matches!(seen, Event::Delta(_, Delta::Unreadable { key, version: Some(_), .. }) if key.as_str() == "n/a")
    );
    let gone = event(format!(r#"{{"type":"DELETED","object":{bad}}}"#).as_bytes());
    assert!(matches!(
        gone,
        Event::Delta(
            _,
            Delta::Gone {
                last: None,
                version: Some(_),
                ..
            }
        )
    ));
}

#[test]
fn a_line_that_is_no_json_or_no_utf8_is_unreadable_by_name() {
    let invalid = [br#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7","labels":{"x":""#.as_slice(), b"\xff\"}}}}"].concat();
    for line in [&invalid, br#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"spec":oops}}"#.as_slice()] {
        let Event::Delta(_, Delta::Unreadable { key, version, .. }) = event(line) else { panic!() };
        assert_eq!((key.as_str(), version), ("n/a", Some(Version::new("7"))));
    }
    let Event::Delta(_, Delta::Unreadable { key, reason, .. }) =
        read(Item::Oversized(br#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","labels":{"x":"yyyy"#), 80, &mut Opener::default(), &|_, _| None)
    else {
        panic!()
    };
    assert_eq!(key.as_str(), "n/a");
    assert!(reason.contains("80 bytes"));
}

#[test]
fn what_nobody_can_be_named_for_is_never_passed_over() {
    for line in [
        &b"garbage"[..],
        br#"{"type":"ADDED","object":{}}"#,
        br#"{"type":"BOOKMARK","object":{}}"#,
        br#"{"type":"NEW","object":{}}"#,
        b"{}",
    ] {
        assert!(
            matches!(event(line), Event::Unknown(_)),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
}
