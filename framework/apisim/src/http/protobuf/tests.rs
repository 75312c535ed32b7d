use serde_json::json;

use super::*;

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [
        &[number << 3 | 2, u8::try_from(bytes.len()).expect("short")],
        bytes,
    ]
    .concat()
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &meta), &field(2, raw)].concat()
}

#[test]
fn a_deployment_is_read_with_its_zero_values_where_they_mean_something() {
    let labels = field(1, &field(1, &[field(1, b"app"), field(2, b"web")].concat()));
    let container = [
        field(1, b"main"),
        field(2, b"nginx"),
        field(6, &[number(2, 0), number(3, 80)].concat()),
        field(8, b""),
    ]
    .concat();
    let template = field(2, &field(2, &container));
    let spec = [
        number(1, 0),
        field(2, &labels[2..]),
        field(3, &template),
        field(4, b""),
        number(5, 0),
    ]
    .concat();
    let raw = [
        field(
            1,
            &[field(1, b"web"), field(3, b""), field(8, b"")].concat(),
        ),
        field(2, &spec),
        field(3, &number(1, 0)),
    ]
    .concat();
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "main", "image": "nginx", "ports": [{"containerPort": 80}]}]}},
        },
    });
    assert_eq!(
        decode(&body("apps/v1", "Deployment", &raw)).expect("decoded"),
        expected
    );
}

#[test]
fn bytes_are_written_as_base64() {
    let data = field(2, &[field(1, b"key"), field(2, b"foob")].concat());
    let secret = decode(&body("v1", "Secret", &data)).expect("decoded");
    assert_eq!(secret["data"]["key"], "Zm9vYg==");
}

#[test]
fn what_is_not_understood_is_refused_and_not_dropped() {
    assert!(decode(&body("v1", "ConfigMap", &field(9, b"new"))).is_err());
    assert!(decode(&body("v1", "Unheard", b"")).is_err());
    assert!(decode(b"{}").is_err());
    assert!(
        decode(&body("v1", "ConfigMap", &[0x12, 0x7f])).is_err(),
        "cut short"
    );
}
