use serde_json::json;

use super::*;

#[test]
fn ages_are_written_as_kubectl_writes_them() {
    for (seconds, text) in [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (303, "5m3s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_520, "3h12m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (200 * 3600, "8d"),
        (800 * 86_400, "2y70d"),
        (9 * 365 * 86_400, "9y"),
    ] {
        assert_eq!(age::human(seconds), text);
    }
    assert_eq!(age::since("yesterday", Timestamp::UNIX_EPOCH), "<unknown>");
}

#[test]
fn the_paths_of_printer_columns_are_followed() {
    let object = json!({
        "spec": {"size": 3, "list": [{"n": "a"}, {"n": "b"}]},
        "metadata": {"annotations": {"example.com/x": "y"}},
        "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Synced", "status": "True", "n": 5}]},
    });
    for (path, expected) in [
        (".spec.size", json!([3])),
        ("{.spec.size}", json!([3])),
        ("$.spec['size']", json!([3])),
        (".spec.list[0].n", json!(["a"])),
        (".spec.list[-1].n", json!(["b"])),
        (".spec.list[*].n", json!(["a", "b"])),
        (".metadata.annotations.example\\.com/x", json!(["y"])),
        (".metadata.annotations['example.com/x']", json!(["y"])),
        (
            ".status.conditions[?(@.type==\"Synced\")].status",
            json!(["True"]),
        ),
        (
            ".status.conditions[?(@.type=='Synced')].status",
            json!(["True"]),
        ),
        (".status.conditions[?(@.n==5)].type", json!(["Synced"])),
        (
            ".status.conditions[?(@.type!=\"Synced\")].type",
            json!(["Ready"]),
        ),
        (".absent.deep", json!([])),
        (".spec.list[", json!([])),
        (".spec.list[?(@.n)]", json!([])),
    ] {
        assert_eq!(json!(find(path, &object)), expected, "{path}");
    }
}

#[test]
fn cells_are_of_the_type_of_their_column() {
    let now = Timestamp::from_second(1_700_000_100).expect("a time");
    let object = json!({"a": 3, "b": "text", "c": true, "d": "2023-11-14T22:13:20Z", "e": 2.5});
    let cell = |kind: &str, path: &str| cell(&column("X", kind, 0, path), &object, now);
    assert_eq!(cell("integer", ".a"), json!(3));
    assert_eq!(cell("integer", ".b"), Value::Null);
    assert_eq!(cell("string", ".a"), json!("3"));
    assert_eq!(cell("string", ".b"), json!("text"));
    assert_eq!(cell("boolean", ".c"), json!(true));
    assert_eq!(cell("date", ".d"), json!("100s"));
    assert_eq!(cell("number", ".e"), json!(2.5));
    assert_eq!(cell("string", ".absent"), Value::Null);
}
