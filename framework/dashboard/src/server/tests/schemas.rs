//! What the OpenAPI file says of each answer's fields, and what is serialized.

use boatswain_supervision::{NodeSnapshot, NodeSort, NodeState, Virtual, VirtualChild};

use super::*;

/// The schema itself, of one that refers to it.
fn resolved<'a>(spec: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => {
            let name = name.trim_start_matches('#');
            spec.pointer(name).expect("it exists")
        }
        None => schema,
    }
}

/// The fields it has, with those of all its parts.
fn fields<'a>(spec: &'a Value, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let schema = resolved(spec, schema);
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut all: Vec<_> = parts.flat_map(|part| fields(spec, part)).collect();
    let own = schema["properties"].as_object().into_iter().flatten();
    all.extend(own.map(|(name, of)| (name.as_str(), of)));
    all
}

/// Whether `value` is of a type the schema names.
fn fits(schema: &Value, value: &Value) -> bool {
    if let Some(known) = schema["enum"].as_array() {
        // a view by default has no words yet
        return value == "" || known.contains(value);
    }
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    }
}

/// Every field that is serialized is described with a type that it is of, and nothing else is described.
fn agree(spec: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = resolved(spec, schema);
    if let Some(either) = schema["anyOf"].as_array() {
        let null = json!({ "type": "null" });
        assert!(!value.is_null() || either.contains(&null), "{at} is null");
        return match either.iter().find(|one| **one != null) {
            Some(one) if !value.is_null() => agree(spec, one, value, at),
            _ => {}
        };
    }
    let parts = schema["allOf"].is_array();
    assert!(
        parts || fits(schema, value),
        "{at} is {value}, not {schema}"
    );
    let fields = fields(spec, schema);
    if let (Some(told), false) = (value.as_object(), fields.is_empty()) {
        let described: BTreeSet<_> = fields.iter().map(|(name, _)| *name).collect();
        let told: BTreeSet<_> = told.keys().map(String::as_str).collect();
        // what one state has others lack
        let lacks = described
            .difference(&told)
            .filter(|name| **name != "until_ms");
        assert_eq!(lacks.count(), 0, "{at}: {described:?}, {told:?}");
        let more: Vec<_> = told.difference(&described).collect();
        assert!(more.is_empty(), "{at} does not describe {more:?}");
        for (name, of) in fields {
            if let Some(inner) = value.get(name) {
                agree(spec, of, inner, &format!("{at}.{name}"));
            }
        }
    }
    for item in value.as_array().into_iter().flatten() {
        assert!(schema["items"].is_object(), "{at} does not say of what");
        agree(spec, &schema["items"], item, at);
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        if schema["additionalProperties"].is_object() {
            let at = format!("{at}.{name}");
            agree(spec, &schema["additionalProperties"], inner, &at);
        }
    }
}

fn node(state: NodeState, children: Vec<NodeSnapshot>) -> NodeSnapshot {
    let shown = VirtualChild {
        id: "shop/web".into(),
        state: "queued".into(),
        facts: [("lane".to_owned(), json!("user"))].into(),
    };
    NodeSnapshot {
        path: "root".into(),
        id: "root".into(),
        kind: NodeSort::Actor,
        state,
        thread: "main".into(),
        incarnation: 1,
        restarts: 0,
        streak: 0,
        significant: false,
        last_exit: None,
        last_exit_ms: Some(7),
        uptime_ms: 0,
        inbox: 0,
        inbox_high_water: 0,
        handled: 0,
        facts: Default::default(),
        degraded: None,
        children,
        virtual_children: Some(Virtual {
            total: 1,
            shown: vec![shown],
        }),
    }
}

#[test]
fn every_field_of_every_answer_is_described_with_its_type_whether_there_is_something_in_it_or_not()
{
    let spec: Value = serde_saphyr::from_str(OPENAPI).expect("YAML");
    let words = || Some("words".to_owned());
    let child = node(NodeState::Backoff { until_ms: 7 }, Vec::new());
    let tree = TreeSnapshot {
        root: Some(node(NodeState::Running, vec![child])),
        left_behind: Vec::new(),
        tasks: 1,
    };
    let point = Point {
        p50_ms: Some(0.5),
        p90_ms: Some(0.5),
        p99_ms: Some(0.5),
        ..Point::default()
    };
    let shut = ShutView {
        state: "paused".into(),
        why: "paused by ann".into(),
        since_ms: Some(7),
    };
    let failing = FailingView {
        count: 1,
        key: "shop/web".into(),
        error: "no disk".into(),
        since_ms: 7,
    };
    let controller = ControllerView {
        shut: Some(shut),
        failing: Some(failing),
        results: [("success".to_owned(), 7)].into(),
        errors: vec!["failed".into()],
        took: Durations {
            bounds_ms: vec![0.5],
            below: vec![7],
            count: 7,
        },
        point,
        ..ControllerView::default()
    };
    let informer = InformerView {
        low_water: words(),
        last_event_ms: Some(7),
        last_contact_ms: Some(7),
        relists: [("start".to_owned(), 1)].into(),
        watch_ends: [("expired".to_owned(), 1)].into(),
        degraded: words(),
        unreadable: [("shop/web".to_owned(), "no number".to_owned())].into(),
        ..InformerView::default()
    };
    let lease = LeaseView {
        controller: words(),
        holder: words(),
        renewal_ms: Some(7),
        error: words(),
        ..LeaseView::default()
    };
    let row = KeyRow {
        since_ms: Some(7),
        next_ms: Some(7),
        result: words(),
        took_ms: Some(0.5),
        why: words(),
        ..KeyRow::default()
    };
    let run = RunView {
        id: words(),
        trigger: words(),
        seen: words(),
        text: words(),
        decided: words(),
        writes: vec!["patched".into()],
        ..RunView::default()
    };
    let view = KeyView {
        row: row.clone(),
        shut: words(),
        quarantined: words(),
        runs: vec![RunView::default(), run],
        ..KeyView::default()
    };
    let trouble = |path| Trouble {
        level: Level::Critical,
        id: "one".into(),
        what: "it".into(),
        why: "so".into(),
        since_ms: 7,
        path,
    };
    let overview = Overview {
        at_ms: 7,
        health: Health {
            troubles: vec![trouble(None), trouble(words())],
            ..Health::default()
        },
        process: Process {
            logged: words(),
            ..Process::default()
        },
        actions: true,
        tree,
        events: Vec::new(),
        controllers: vec![ControllerView::default(), controller],
        informers: vec![InformerView::default(), informer],
        leases: vec![LeaseView::default(), lease],
    };
    let answers = [
        ("Overview", serde_json::to_value(overview)),
        ("Key", serde_json::to_value(row)),
        ("Key", serde_json::to_value(KeyRow::default())),
        ("Explanation", serde_json::to_value(view)),
        ("Parked", serde_json::to_value(ParkedRow::default())),
    ];
    for (name, answer) in answers {
        let answer = answer.expect("plain data");
        agree(&spec, &spec["components"]["schemas"][name], &answer, name);
    }
}
