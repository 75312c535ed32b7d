use std::ops::Range;

use super::{Edits, apply, size};

fn applied(frame: &[u8], other: &str) -> Vec<u8> {
    let mut text = b"what was there before".to_vec();
    apply(frame, other.as_bytes(), &mut text);
    text
}

#[test]
fn a_text_is_what_its_edits_make_of_the_other() {
    let other = format!("name web-1, {}, ip 10.0.0.1", "x".repeat(300));
    let text = format!("name db-2, {}, ip 1", "x".repeat(300));
    let at = other.find("0.0.0.1").unwrap();
    let mut edits = Edits::new(text.len(), b"before".to_vec());
    edits.push(5..10, b"db-2").unwrap();
    edits.push(at..other.len(), b"").unwrap();
    let frame = edits.frame();
    assert_eq!(applied(&frame, &other), text.as_bytes());
    assert_eq!(size(&frame), text.len());
    assert_eq!(frame.len(), 2 + (3 + 4) + (2 + 1 + 1));
    assert_eq!(applied(&Edits::new(3, Vec::new()).frame(), "abc"), b"abc");
}

#[test]
fn edits_are_in_order() {
    let mut edits = Edits::new(5, Vec::new());
    edits.push(2..4, b"").unwrap();
    assert!(edits.push(3..5, b"").is_none());
    assert!(edits.push(Range { start: 5, end: 4 }, b"").is_none());
}

#[test]
fn damaged_edits_make_nothing() {
    let mut edits = Edits::new(200, Vec::new());
    edits.push(3..5, "y".repeat(100).as_bytes()).unwrap();
    let frame = edits.frame();
    let other = "x".repeat(102);
    assert_eq!(applied(&frame, &other).len(), 200);
    for end in 0..frame.len() {
        assert!(applied(&frame[..end], &other).is_empty(), "{end}");
    }
    assert!(applied(&frame, "xxxx").is_empty());
    assert!(applied(&frame, &"x".repeat(103)).is_empty());
    assert!(applied(&[0xff; 20], &other).is_empty());
}
