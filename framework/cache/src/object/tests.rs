use crate::envelope;
use serde::Deserialize;

const POD: &str = r#"{"metadata":{"name":"web","namespace":"default","uid":"u1","resourceVersion":"7",
  "labels":{"app.kubernetes.io/name":"web"},"annotations":{"note":"x"},"finalizers":["a/b"],
  "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u0","controller":true}]},
  "spec":{"nodeName":"n1","replicas":3,"paused":true,"ratio":0.5,"nothing":null,
  "volumes":[{"name":"a","configMap":{"name":"c1"}},{"name":"b"},{"name":"c","configMap":{"name":"c2"}}]}}"#;

#[derive(Deserialize, Debug)]
struct Wrong {
    #[serde(rename = "spec")]
    _spec: WrongSpec,
}

#[derive(Deserialize, Debug)]
struct WrongSpec {
    #[serde(rename = "nodeName")]
    _node_name: u32,
}

#[test]
fn a_path_reads_one_value_of_any_plain_type() {
    let pod = envelope::open(POD.as_bytes()).unwrap();
    let read = |path| pod.path(path);
    assert_eq!(read("spec.nodeName").as_deref(), Some("n1"));
    assert_eq!(read("spec.replicas").as_deref(), Some("3"));
    assert_eq!(read("spec.paused").as_deref(), Some("true"));
    assert_eq!(read("spec.ratio").as_deref(), Some("0.5"));
    assert_eq!(
        read(r"metadata.labels.app\.kubernetes\.io/name").as_deref(),
        Some("web")
    );
    for absent in [
        "",
        ".",
        "spec",
        "spec.nothing",
        "spec.nodeName.deeper",
        "spec.volumes",
        "other",
        "metadata.labels.app",
    ] {
        assert_eq!(read(absent), None, "{absent}");
    }
}

#[test]
fn a_path_reads_every_element_of_a_list() {
    let pod = envelope::open(POD.as_bytes()).unwrap();
    assert_eq!(
        pod.values(&super::Path::new("spec.volumes[*].configMap.name")),
        ["c1", "c2"]
    );
    assert_eq!(
        pod.values(&super::Path::new("metadata.finalizers[*]")),
        ["a/b"]
    );
}

#[test]
fn metadata_is_parsed_when_asked_for() {
    let pod = envelope::open(POD.as_bytes()).unwrap();
    assert_eq!(pod.labels()["app.kubernetes.io/name"], "web");
    assert_eq!(pod.annotations()["note"], "x");
    assert_eq!(pod.finalizers(), ["a/b"]);
    let owner = &pod.owner_refs()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str(), owner.controller),
        ("ReplicaSet", "u0", true)
    );
}

#[test]
fn a_decode_error_names_key_and_path_but_no_value() {
    let pod = envelope::open(POD.as_bytes()).unwrap();
    for _ in 0..2 {
        let text = pod.decode::<Wrong>().unwrap_err().to_string();
        assert!(
            text.contains("default/web") && text.contains("spec.nodeName") && !text.contains("n1"),
            "{text}"
        );
    }
}

#[test]
fn an_object_nested_too_deep_to_decode_is_known_by_name_and_read_by_path() {
    let deep = "{\"a\":".repeat(200) + "1" + &"}".repeat(200);
    let json = format!(
        r#"{{"spec":{{"replicas":3,"deep":{deep}}},"metadata":{{"name":"web","namespace":"default","resourceVersion":"7","labels":{{"a":"b"}}}}}}"#
    );
    let object = envelope::open(json.as_bytes()).unwrap();
    assert_eq!(object.path("spec.replicas").as_deref(), Some("3"));
    assert_eq!(object.labels()["a"], "b");
    let error = object.decode::<serde_json::Value>().unwrap_err();
    assert_eq!(error.key.as_str(), "default/web");
    assert!(error.reason.contains("nested too deeply"), "{error}");
    let endless = "[".repeat(2_000_000);
    assert!(envelope::open(endless.as_bytes()).is_err());
    let path = super::Path::new("spec.deep");
    assert_eq!(path.fragments(json.as_bytes()).unwrap().len(), 1);
}
