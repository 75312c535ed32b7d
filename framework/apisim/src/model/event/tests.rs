use super::*;

fn body(value: Value) -> Body {
    value.as_object().cloned().expect("an object")
}

#[test]
fn an_event_survives_the_way_through_the_other_version() {
    let core = complete(body(json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Deployment", "name": "web"}, "message": "hello", "reason": "Scaled",
        "source": {"component": "c"}, "count": 3, "firstTimestamp": "2024-01-01T00:00:00Z", "type": "Normal",
    })));
    assert_eq!(to_core(from_core(core.clone())), core);
}

#[test]
fn the_new_version_names_things_its_own_way() {
    let core = to_core(body(json!({
        "metadata": {"name": "e"}, "regarding": {"name": "web"}, "note": "hello", "reportingController": "c", "deprecatedCount": 2,
        "series": {"count": 4},
    })));
    assert_eq!(core["involvedObject"]["name"], "web");
    assert_eq!(core["message"], "hello");
    assert_eq!(core["reportingComponent"], "c");
    assert_eq!(core["count"], 2);
    assert_eq!(core["series"]["count"], 4);
    let new = from_core(core);
    assert_eq!(new["note"], "hello");
    assert!(new.get("involvedObject").is_none());
    assert_eq!(new["deprecatedSource"], json!({}));
}
