use super::Version;
use proptest::prelude::*;
use std::cmp::Ordering;

#[test]
fn only_plain_decimals_are_ordered() {
    let known = |a: &str, b: &str| Version::new(a).cmp_known(&Version::new(b));
    assert_eq!(known("9", "10"), Some(Ordering::Less));
    assert_eq!(known("10", "10"), Some(Ordering::Equal));
    assert_eq!(known("abc", "abc"), Some(Ordering::Equal));
    for (a, b) in [
        ("abc", "abd"),
        ("9", "+10"),
        ("9", "010"),
        ("", "1"),
        ("1", "99999999999999999999999"),
    ] {
        assert_eq!(known(a, b), None, "{a} {b}");
    }
}

#[test]
fn different_texts_are_never_equal() {
    assert_ne!(Version::new("1"), Version::new("01"));
    assert_ne!(Version::new("1"), Version::new("+1"));
    assert_ne!(Version::new(""), Version::new("0"));
}

proptest! {
    #[test]
    fn a_version_prints_what_the_server_wrote(text in "[0-9+a-f-]{0,22}") {
        prop_assert_eq!(Version::new(&text).to_string(), text);
    }
}
