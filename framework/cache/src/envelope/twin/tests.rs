use super::{LARGE, Twins, plain};
use crate::fuzzing::generate::{self, Random};
use crate::opener::Opener;

const POD: &str = r#"{"metadata":{"name":"web-1","namespace":"n","uid":"u","resourceVersion":"7","generation":4,
  "labels":{"app":"web","é":"ü"},"managedFields":[{"f:k":{"k:{\"ip\":\"10.0.0.1\"}":{}}}]},
 "spec":{"node":"a","ports":[80,443],"share":0.5,"text":"\u00e9"},"status":{"ready":true,"restarts":0}}"#;

/// Whether an object is read by `one`, and what is then kept of it is what is kept of it alone.
fn is_read_by(one: &str, other: &str) -> bool {
    let mut opener = Opener::default();
    assert!(opener.front(one.as_bytes(), &|_, _| None).is_some());
    let read = opener.twins().read(other.as_bytes()).is_some();
    let seen = |opener: &mut Opener| {
        let (object, length) = opener.front(other.as_bytes(), &|_, _| None)?;
        Some((
            object.key().clone(),
            object.meta().clone(),
            object.json(),
            length,
        ))
    };
    assert_eq!(seen(&mut opener), seen(&mut Opener::default()));
    read
}

#[test]
fn an_object_is_read_by_one_that_differs_in_texts_numbers_and_truths() {
    assert!(is_read_by(POD, POD));
    assert!(is_read_by(POD, &format!("{POD},{{")));
    for (old, new) in [
        ("web-1", "database-12345"),
        ("\"7\"", "\"1234567\""),
        (":4,", ":123456,"),
        ("10.0.0.1", "192.168.17.4"),
        ("10.0.0.1", ""),
        ("true", "false"),
        ("\"a\"", r#""a\n\"b\\""#),
        ("\"app\":", "\"tier\":"),
        (",443]", ",1]"),
        ("\"restarts\":0", "\"restarts\":12"),
    ] {
        assert!(POD.contains(old));
        assert!(is_read_by(POD, &POD.replacen(old, new, 1)), "{old} {new}");
        assert!(is_read_by(&POD.replacen(old, new, 1), POD), "{new} {old}");
    }
}

#[test]
fn an_object_that_differs_in_more_is_left_to_the_parser() {
    for (old, new) in [
        // valid
        ("\"spec\"", "\"spek\""),
        ("\"name\"", "\"nome\""),
        ("\"app\":\"web\",", ""),
        ("[80,443]", "[80,443,1]"),
        ("[80,443]", "[80]"),
        ("web-1", "w\u{e9}b"),
        ("web-1", "w\\u0065b"),
        ("true", "null"),
        (":4,", ":-4,"),
        ("443", "4.5"),
        ("443", "4e1"),
        ("0.5", "0.6"),
        ("u00e9", "u00e8"),
        // not valid
        ("web-1", "web\u{1}"),
        ("\"a\"", "\"\\a\""),
        ("\"a\"", "\"a"),
        ("443", "01"),
        ("443", "4x"),
        ("true", "trUe"),
        ("true", "truee"),
        ("}}", "}"),
    ] {
        assert!(POD.contains(old));
        assert!(!is_read_by(POD, &POD.replacen(old, new, 1)), "{old} {new}");
    }
    for end in 0..POD.len() {
        let cut = POD.get(..end).unwrap_or_default();
        assert!(!is_read_by(POD, cut), "{cut}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_not_completed_by_the_object_before() {
    let mut opener = Opener::default();
    let pod = POD.replacen("web-1", "w\u{e9}b", 1);
    assert!(opener.front(pod.as_bytes(), &|_, _| None).is_some());
    let mut other = pod.into_bytes();
    let at = other.windows(2).position(|two| two == "\u{e9}".as_bytes());
    other[at.unwrap() + 1] = b'x';
    assert!(opener.twins().read(&other).is_none());
    assert!(opener.front(&other, &|_, _| None).is_none());
}

#[test]
fn among_objects_that_are_alike_in_nothing_few_are_tried() {
    let mut twins = Twins::default();
    let mut tried = 0;
    for number in 0..2_000 {
        let json = format!("{{\"{number}\":0}}");
        tried += usize::from(twins.patience == 0 && twins.last.is_some());
        assert!(twins.read(json.as_bytes()).is_none());
        twins.note(json.as_bytes(), 0..0, None);
    }
    assert!((8..30).contains(&tried), "{tried}");
    // and yet one that is followed by its like is found out
    while twins.read(b"{}").is_none() {
        twins.note(b"{}", 0..0, None);
    }
    assert_eq!((twins.failures, twins.patience), (0, 0));
}

#[test]
fn what_is_not_written_as_servers_do_is_no_twin() {
    for json in [
        " {\"a\":1}",
        "[{\"a\":1}]",
        "{\"metadata\":[\"a\"]}",
        "{\"kind\":{}}",
        "{\"m\\u0065tadata\":{}}",
    ] {
        let mut twins = Twins::default();
        twins.note(json.as_bytes(), 0..0, None);
        assert!(twins.last.is_none(), "{json}");
    }
}

#[test]
fn a_large_object_is_not_copied() {
    let mut twins = Twins::default();
    let json = format!("{{\"a\":\"{}\"}}", "x".repeat(LARGE));
    twins.note(json.as_bytes(), 0..0, None);
    assert!(twins.last.is_none());
}

#[test]
fn the_random_documents_are_alike_in_a_fair_share() {
    let mut random = Random::new(3);
    let (mut read, mut all) = (0, 0);
    while all < 1000 {
        let first = generate::object(&mut random);
        let second = generate::alike(&mut random, &first);
        let mut opener = Opener::default();
        if opener.front(first.as_bytes(), &|_, _| None).is_some() {
            all += 1;
            read += usize::from(opener.twins().read(&second).is_some());
        }
    }
    assert!((200..900).contains(&read), "{read}");
}

#[test]
fn every_byte_that_ends_a_plain_text_is_seen_wherever_it_stands() {
    for byte in 0..=u8::MAX {
        let ends = !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\');
        for at in 0..20 {
            for around in [b' ', b'a', b'~', b'!', b'#', b'[', b']', b'"'] {
                let mut text = [b'a'; 20];
                text[at] = byte;
                text[at + 1..].fill(around);
                let expected = match (ends, around) {
                    (true, _) => at,
                    (false, b'"') => at + 1,
                    (false, _) => 20,
                };
                assert_eq!(plain(&text), expected, "{byte} at {at}, then {around}");
            }
        }
    }
}
