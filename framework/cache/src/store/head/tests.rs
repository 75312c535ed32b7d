use std::sync::Arc;

use super::{Heads, is_like};
use crate::key::Key;
use crate::store::body::{Body, Packed};

fn key(name: &str) -> Key {
    Key::new(Some("shop"), name)
}

/// Some kilobytes that depend on `origin`, and a little that does not.
fn json(origin: u64, number: usize) -> Vec<u8> {
    let mut state = origin.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("\"{state:x}\"")
    };
    let words: Vec<_> = (0..150).map(|_| word()).collect();
    format!("{{\"number\":{number},\"words\":[{}]}}", words.join(",")).into_bytes()
}

fn head(heads: &mut Heads, key: &Key, json: &[u8]) -> Arc<Packed> {
    let head = Arc::new(Packed::new(json, None).unwrap());
    heads.lead(key, json, &head);
    head
}

#[test]
fn an_object_takes_next_to_nothing_behind_a_neighbour_of_its_origin_and_outlives_it() {
    let mut heads = Heads::default();
    let first = head(&mut heads, &key("web-7f9c-aaaaa"), &json(1, 1));
    let packed: Vec<_> = (2..50)
        .map(|number| heads.pack(&key(&format!("web-7f9c-{number:05}")), &json(1, number)))
        .map(|packed| Body::Packed(packed.unwrap()))
        .collect();
    assert!(first.size() > 1000);
    drop((first, heads));
    for (number, body) in (2..50).zip(&packed) {
        assert!(body.size() < 100, "{}", body.size());
        assert_eq!(body.json(), json(1, number));
        assert_eq!(body.json_size(), json(1, number).len());
    }
}

#[test]
fn of_objects_that_are_alike_in_name_only_few_are_tried() {
    let mut heads = Heads::default();
    head(&mut heads, &key("map-0"), &json(0, 0));
    let mut tried = 0;
    for number in 1..2000 {
        let (key, json) = (key(&format!("map-{number}")), json(number as u64, number));
        let before = heads.failures;
        assert!(heads.pack(&key, &json).is_none());
        tried += heads.failures - before;
        head(&mut heads, &key, &json);
    }
    assert!((2..30).contains(&tried), "{tried}");
}

#[test]
fn names_of_one_origin_are_alike_for_half_of_their_length() {
    assert!(is_like(&key("web-7f9c-x2x9q"), &key("web-7f9c-abcde")));
    assert!(is_like(&key("db-0"), &key("db-11")));
    assert!(!is_like(&key("web-7f9c-x2x9q"), &key("cart-55d8-x2x9q")));
    let elsewhere = Key::new(Some("shop-2"), "web-7f9c-x2x9q");
    assert!(!is_like(&key("web-7f9c-x2x9q"), &elsewhere));
    let (one, other) = (Key::new(None, "node-1"), Key::new(None, "node-2"));
    assert!(is_like(&one, &other));
}
