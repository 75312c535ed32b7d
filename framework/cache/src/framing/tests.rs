use super::{FrameError, Item, LineSplitter, ListMeta, ListSplitter};
use crate::version::Version;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn split(
    body: &[u8],
    cuts: &[usize],
    limit: usize,
) -> (Vec<Vec<u8>>, Result<ListMeta, FrameError>) {
    let (mut items, mut splitter) = (Vec::new(), ListSplitter::new(limit));
    for chunk in chunks(body, cuts) {
        let pushed = splitter.push(chunk, &mut |item| match item {
            Item::Whole(bytes) => items.push(bytes.to_vec()),
            Item::Oversized(head) => items.push([b"OVERSIZED ", head].concat()),
        });
        if let Err(error) = pushed {
            return (items, Err(error));
        }
    }
    (items, splitter.finish())
}

fn chunks<'a>(body: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([body.len()]) {
        parts.push(&body[from..cut]);
        from = cut;
    }
    parts
}

#[test]
fn metadata_may_follow_items() {
    let body = br#"{"items":[{"a":1}, {"b":"]}"}],"kind":"PodList","metadata":{"continue":"next","resourceVersion":"9"}}"#;
    let (items, meta) = split(body, &[], 1 << 10);
    assert_eq!(items, [br#"{"a":1}"#.to_vec(), br#"{"b":"]}"}"#.to_vec()]);
    assert_eq!(
        meta,
        Ok(ListMeta {
            version: Version::new("9"),
            next: Some("next".to_owned())
        })
    );
}

#[test]
fn metadata_is_known_before_the_first_item_when_it_comes_first() {
    let mut splitter = ListSplitter::new(1 << 10);
    splitter
        .push(
            br#"{"metadata":{"resourceVersion":"9","continue":""},"items":[{"#,
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(
        splitter.meta(),
        Some(&ListMeta {
            version: Version::new("9"),
            next: None
        })
    );
}

#[test]
fn an_empty_list_may_be_null_or_without_elements() {
    for body in [
        &br#"{"metadata":{"resourceVersion":"1"},"items":null}"#[..],
        br#"{"items" : [ ] ,"metadata":{"resourceVersion":"1"}} "#,
    ] {
        let (items, meta) = split(body, &[], 1 << 10);
        assert!(items.is_empty());
        assert!(meta.is_ok());
    }
}

#[test]
fn items_named_elsewhere_are_not_the_items() {
    let body = br#"{"metadata":{"resourceVersion":"1","items":[1]},"x":{"items":[2]},"it\u0065ms":[{"a":"\\\""}]}"#;
    assert_eq!(split(body, &[], 1 << 10).0, [br#"{"a":"\\\""}"#.to_vec()]);
}

#[test]
fn what_is_no_list_is_an_error_that_says_where() {
    for (body, error) in [
        (&b"<html>"[..], FrameError::Unexpected { byte: b'<', at: 0 }),
        (br#"{"kind":"Status"}"#, FrameError::NoItems),
        (
            br#"{"items":[{"a":1}"#,
            FrameError::Truncated {
                items: 1,
                bytes: 17,
            },
        ),
        (b"", FrameError::Truncated { items: 0, bytes: 0 }),
        (
            br#"{"items":[{"a":1} {"b":2}]}"#,
            FrameError::Unexpected { byte: b'{', at: 18 },
        ),
        (
            br#"{"items":[,]}"#,
            FrameError::Unexpected { byte: b',', at: 10 },
        ),
        (
            br#"{"items":[1,]}"#,
            FrameError::Unexpected { byte: b']', at: 12 },
        ),
        (
            br#"{"items":[]}x"#,
            FrameError::Unexpected { byte: b'x', at: 12 },
        ),
        (
            br#"{"items":{"a":1},"metadata":{"resourceVersion":"1"}}"#,
            FrameError::NoItems,
        ),
        (
            br#"{"items":"none","metadata":{"resourceVersion":"1"}}"#,
            FrameError::NoItems,
        ),
        (
            br#"{"items":nope,"metadata":{"resourceVersion":"1"}}"#,
            FrameError::NoItems,
        ),
        (
            br#"{"items":[]}"#,
            FrameError::Metadata("it is missing".to_owned()),
        ),
        (
            br#"{"items":[],"metadata":{}}"#,
            FrameError::Metadata("resourceVersion is missing".to_owned()),
        ),
    ] {
        assert_eq!(
            split(body, &[3, 7], 1 << 10).1.unwrap_err(),
            error,
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}

#[test]
fn a_metadata_without_end_is_not_kept() {
    let mut splitter = ListSplitter::new(1 << 10);
    splitter
        .push(br#"{"metadata":{"continue":""#, &mut |_| {})
        .unwrap();
    for _ in 0..64 {
        splitter.push(&[b'a'; 1 << 16], &mut |_| {}).unwrap();
    }
    assert!(splitter.outer.kept.capacity() <= 1 << 20);
    let end = splitter.push(br#""},"items":[]}"#, &mut |_| {});
    assert_eq!(end, Err(FrameError::MemberTooLarge { limit: 1 << 20 }));
}

#[test]
fn an_oversized_item_is_skipped_and_the_next_one_is_not() {
    let big = "x".repeat(200);
    let body = format!(
        r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{{"a":1}},{{"name":"{big}"}},{{"b":2}}]}}"#
    );
    for cuts in [&[][..], &[60, 61, 90, 200], &[120]] {
        let (items, meta) = split(body.as_bytes(), cuts, 100);
        assert!(meta.is_ok());
        assert_eq!(items.len(), 3);
        assert!(items[1].starts_with(br#"OVERSIZED {"name":"xxx"#) && items[1].len() <= 110);
        assert_eq!(items[2], br#"{"b":2}"#);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[\\[\\]{}:,a-cé\u{1F6A2}\\\\\"\n\t]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(items|metadata|[a-z\\\\\"]{0,3})", inner), 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn a_list_splits_like_serde_json_reads_it(
        items in prop::collection::vec(value(), 0..6),
        extra in value(),
        order in Just(vec!["items", "metadata", "zzz"]).prop_shuffle(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        pretty: bool,
    ) {
        let mut list = json!({"items": items, "metadata": {"resourceVersion": "77", "continue": "t", "extra": extra}, "zzz": extra});
        let members: Vec<_> = order.iter().map(|name| {
            let value = list[*name].take();
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            format!("\"{name}\" : {text}")
        }).collect();
        let body = format!(" {{{}}}\n", members.join(","));
        let (found, meta) = split(body.as_bytes(), &cuts, 1 << 20);
        let found: Vec<Value> = found.iter().map(|item| serde_json::from_slice(item).unwrap()).collect();
        let expected: Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(&Value::from(found), &expected["items"]);
        prop_assert_eq!(meta.unwrap().version, Version::new("77"));
    }

    #[test]
    fn a_list_cut_off_anywhere_is_never_complete(items in prop::collection::vec(value(), 0..4), cut: prop::sample::Index) {
        let body = serde_json::to_vec(&json!({"items": items, "metadata": {"resourceVersion": "77"}})).unwrap();
        let (_, meta) = split(&body[..cut.index(body.len())], &[], 1 << 20);
        prop_assert!(matches!(meta, Err(FrameError::Truncated { .. })), "{:?}", meta);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_cuts_never_matter(
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            "\\{\"items\":\\[[\\[\\]{}:, \"\\\\a1]{0,40}".prop_map(String::into_bytes),
        ],
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        limit in 0_usize..32,
    ) {
        prop_assert_eq!(split(&body, &[], limit), split(&body, &cuts, limit));
    }

    #[test]
    fn lines_split_wherever_the_chunks_are_cut(
        lines in prop::collection::vec("[ -~é]{0,40}", 0..8),
        tail in "[a-z]{0,10}",
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let body = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>() + &tail;
        let (mut found, mut splitter) = (Vec::new(), LineSplitter::new(30));
        for chunk in chunks(body.as_bytes(), &cuts) {
            splitter.push(chunk, &mut |item| match item {
                Item::Whole(line) => found.push(String::from_utf8_lossy(line).into_owned()),
                Item::Oversized(_) => found.push("OVERSIZED".to_owned()),
            });
        }
        let expected: Vec<_> = lines.iter()
            .map(|line| if line.len() + 1 > 30 { "OVERSIZED" } else { line.trim() })
            .filter(|line| !line.is_empty())
            .collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(splitter.unfinished(), tail.len());
    }
}
