use super::Key;

#[test]
fn a_key_reads_back_what_it_prints() {
    for text in ["web", "default/web", "a-b/c.d"] {
        let key = Key::parse(text).unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(Key::new(key.namespace(), key.name()), key);
    }
}

#[test]
fn an_empty_namespace_is_no_namespace() {
    assert_eq!(Key::new(Some(""), "node-1"), Key::new(None, "node-1"));
    assert_eq!(Key::new(None, "node-1").namespace(), None);
}

#[test]
fn malformed_keys_are_refused() {
    for text in ["", "/", "a/", "/b", "a/b/c"] {
        assert!(Key::parse(text).is_err(), "{text}");
    }
}

#[test]
fn keys_of_one_namespace_sort_together() {
    let mut keys: Vec<_> = ["a-b/a", "a/z", "a/b", "a"]
        .iter()
        .map(|text| Key::parse(text).unwrap())
        .collect();
    keys.sort();
    let texts: Vec<_> = keys.iter().map(Key::as_str).collect();
    assert_eq!(texts, ["a", "a/b", "a/z", "a-b/a"]);
}

proptest::proptest! {
    #[test]
    fn keys_sort_as_namespace_and_name_do(
        one in ("[a-c.-]{1,10}", "[a-c.:-]{1,18}"),
        two in ("[a-c.-]{1,10}", "[a-c.:-]{1,18}"),
        namespaced: bool,
    ) {
        let key = |(namespace, name): &(String, String)| Key::new(namespaced.then_some(namespace.as_str()), name);
        let (mine, theirs) = (key(&one), key(&two));
        let parts = |key: &Key| (key.namespace().map(str::to_owned), key.name().to_owned());
        proptest::prop_assert_eq!(mine.cmp(&theirs), parts(&mine).cmp(&parts(&theirs)));
    }
}
