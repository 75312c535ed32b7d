use serde_json::json;

use super::*;

fn definition() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v0", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    })
}

fn compiled(value: Value) -> Result<Vec<Served>, Vec<String>> {
    let mut body = value.as_object().cloned().expect("an object");
    complete(&mut body);
    compile(&body).map_err(|causes| causes.into_iter().map(|cause| cause.field).collect())
}

#[test]
fn each_served_version_becomes_a_resource() {
    let all = compiled(definition()).expect("a definition");
    let seen: Vec<_> = all
        .iter()
        .map(|s| (s.api_version(), s.native, s.status))
        .collect();
    assert_eq!(
        seen,
        [
            ("example.com/v1beta1".into(), false, false),
            ("example.com/v1".into(), true, true)
        ]
    );
    assert_eq!(
        (
            all[0].singular.as_str(),
            all[0].list_kind.as_str(),
            all[0].short_names[0].as_str()
        ),
        ("widget", "WidgetList", "wd")
    );
    assert_eq!(
        all[0].columns[0].name, "Age",
        "a definition without columns shows the age"
    );
}

#[test]
fn what_is_wrong_is_told_by_field() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value = definition();
        change(&mut value);
        compiled(value).expect_err("broken")
    };
    assert_eq!(
        broken(&|v| v["metadata"]["name"] = json!("x")),
        ["metadata.name"]
    );
    assert_eq!(
        broken(&|v| v["spec"]["scope"] = json!("Galaxy")),
        ["spec.scope"]
    );
    assert_eq!(
        broken(&|v| v["spec"]["versions"][0]["storage"] = json!(true)),
        ["spec.versions"]
    );
    assert_eq!(
        broken(&|v| v["spec"]["versions"][1]["schema"] = json!({})),
        ["spec.versions[1].schema.openAPIV3Schema"]
    );
}
