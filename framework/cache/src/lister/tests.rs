use std::sync::Arc;

use kube::core::Expression;
use serde::Deserialize;
use serde_json::json;

use super::{Lister, Query, ReadError};
use crate::core::InformerCore;
use crate::delta::{Cause, Delta, Trust};
use crate::delta_fifo::state::{Fifo, Replace};
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::store::IndexSpec;
use crate::version::Version;

#[derive(Debug, Deserialize)]
struct Web {
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Spec {
    replicas: u32,
}

fn core(namespace: &str) -> Arc<InformerCore> {
    let kind = Kind {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Web".into(),
        plural: "webs".into(),
        namespaced: true,
    };
    InformerCore::new(kind, Scope::Namespace(namespace.into()))
}

/// Makes the informer synced with these objects of its namespace.
fn fill(core: &InformerCore, specs: &[(&str, serde_json::Value)]) {
    let Scope::Namespace(namespace) = core.scope().clone() else {
        panic!()
    };
    let mut fifo = Fifo::new(None, 0);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Cached,
        Cause::Initial,
    ));
    for (name, spec) in specs {
        let labels = json!({"name": name, "replicas": spec["replicas"].to_string()});
        let json = json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": "1", "labels": labels}, "spec": spec});
        fifo.push(
            Delta::Listed(crate::envelope::open(json.to_string().as_bytes()).unwrap()),
            None,
        );
    }
    fifo.push(
        Delta::Unreadable {
            key: Key::new(Some(&namespace), "broken"),
            version: None,
            reason: "it is broken".into(),
        },
        None,
    );
    fifo.replace_end(Version::new("9"), true);
    core.hand_over(fifo.pop(99).unwrap());
    core.commit_in_hand();
}

#[test]
fn absent_not_synced_out_of_scope_and_undecodable_are_different_answers() {
    let core = core("a");
    let lister = Lister::<Web>::new(core.clone());
    let key = |name| Key::new(Some("a"), name);
    assert!(matches!(
        lister.get(&key("good")),
        Err(ReadError::NotSynced { .. })
    ));
    assert!(matches!(lister.list(), Err(ReadError::NotSynced { .. })));
    fill(
        &core,
        &[
            ("good", json!({"replicas": 3})),
            ("bad", json!({"replicas": "s3cret"})),
        ],
    );

    assert_eq!(lister.get(&key("good")).unwrap().unwrap().spec.replicas, 3);
    assert!(lister.get(&key("none")).unwrap().is_none());
    let bad = lister.get(&key("bad")).unwrap_err();
    assert!(matches!(bad, ReadError::Undecodable(_)));
    assert!(
        bad.to_string().contains("spec.replicas") && !bad.to_string().contains("s3cret"),
        "{bad}"
    );
    assert!(lister.get_object(&key("bad")).unwrap().is_some());
    assert!(matches!(
        lister.get(&key("broken")),
        Err(ReadError::Undecodable(_))
    ));
    assert!(matches!(
        lister.get(&Key::new(Some("b"), "good")),
        Err(ReadError::OutOfScope { .. })
    ));
    assert!(matches!(
        lister.list_namespace("b"),
        Err(ReadError::OutOfScope { .. })
    ));
}

#[test]
fn one_undecodable_object_is_left_out_of_lists_and_shown_in_the_status() {
    let core = core("a");
    let lister = Lister::<Web>::new(core.clone());
    fill(
        &core,
        &[("good", json!({"replicas": 3})), ("bad", json!({}))],
    );
    assert_eq!(lister.list().unwrap().len(), 1);
    assert_eq!(lister.list_namespace("a").unwrap().len(), 1);
    assert_eq!(lister.list_objects().unwrap().len(), 2);
    let status = core.status(boatswain_supervision::Clock::system().now());
    assert_eq!(status.undecodable[0].0.as_str(), "a/bad");
    assert_eq!(status.unreadable[0].0.as_str(), "a/broken");
}

#[test]
fn several_namespaces_are_one_lister() {
    let (a, b) = (core("a"), core("b"));
    let lister = Lister::<Web>::over(vec![b.clone(), a.clone()]);
    for core in [&a, &b] {
        core.add_index(IndexSpec::path("spec.replicas"));
    }
    fill(
        &a,
        &[
            ("one", json!({"replicas": 1})),
            ("two", json!({"replicas": 2})),
        ],
    );
    assert!(matches!(lister.list(), Err(ReadError::NotSynced { .. })));
    assert!(
        lister.get(&Key::new(Some("a"), "one")).unwrap().is_some(),
        "a namespace that is synced can be read"
    );
    fill(&b, &[("one", json!({"replicas": 1}))]);
    let keys = lister.keys_by_index("spec.replicas", "1").unwrap();
    assert_eq!(
        keys.iter().map(Key::as_str).collect::<Vec<_>>(),
        ["a/one", "b/one"]
    );
    assert_eq!(lister.by_index("spec.replicas", "2").unwrap().len(), 1);
    assert_eq!(lister.list().unwrap().len(), 3);
    assert_eq!(
        lister.by_index("spec.other", "2").unwrap_err(),
        ReadError::NoSuchIndex("spec.other".into())
    );
}

/// Two namespaces with four webs.
fn webs() -> Lister<Web> {
    let (a, b) = (core("a"), core("b"));
    for core in [&a, &b] {
        core.add_index(IndexSpec::path("spec.replicas"));
        core.add_index(IndexSpec::path("metadata.labels.name"));
    }
    let [one, two] = [1, 2].map(|replicas| json!({"replicas": replicas}));
    fill(&a, &[("x", one.clone()), ("y", two), ("z", one.clone())]);
    fill(&b, &[("x", one)]);
    Lister::over(vec![b, a])
}

#[test]
fn a_query_finds_by_namespace_labels_and_indexed_values() {
    let lister = webs();
    let found = |query: Query| {
        let objects = lister.select_objects(&query).unwrap();
        let keys = objects.iter().map(|object| object.key().to_string());
        keys.collect::<Vec<_>>().join(" ")
    };
    let named = |name: &str| Expression::Equal("name".into(), name.into());
    let any = |names: &[&str]| {
        Expression::In(
            "name".into(),
            names.iter().map(|name| (*name).to_owned()).collect(),
        )
    };
    assert_eq!(found(Query::all()), "a/x a/y a/z b/x");
    assert_eq!(found(Query::all().namespace("a")), "a/x a/y a/z");
    assert_eq!(found(Query::all().labels(named("x"))), "a/x b/x");
    assert_eq!(
        found(Query::all().labels(any(&["x", "z"])).namespace("a")),
        "a/x a/z"
    );
    assert_eq!(
        found(Query::all().labels(Expression::DoesNotExist("name".into()))),
        ""
    );
    assert_eq!(
        found(Query::all().indexed("spec.replicas", "1")),
        "a/x a/z b/x"
    );
    let both = Query::all()
        .indexed("spec.replicas", "1")
        .indexed("metadata.labels.name", "x");
    assert_eq!(found(both.clone()), "a/x b/x");
    assert_eq!(found(both.namespace("b").labels(named("x"))), "b/x");
    assert_eq!(
        lister
            .select_objects(&Query::all().indexed("spec.other", "1"))
            .unwrap_err(),
        ReadError::NoSuchIndex("spec.other".into())
    );
    assert!(matches!(
        lister.select(&Query::all().namespace("c")),
        Err(ReadError::OutOfScope { .. })
    ));
}

#[test]
fn a_snapshot_shows_one_moment_whatever_happens_while_it_is_gone_through() {
    let lister = webs();
    let mut snapshot = lister.snapshot(&Query::all()).unwrap();
    assert_eq!(snapshot.len(), 4);
    assert_eq!(snapshot.next().unwrap().unwrap().spec.replicas, 1);
    for core in lister.cores().iter() {
        fill(core, &[]);
    }
    assert!(lister.list().unwrap().is_empty());
    let rest: Vec<u32> = snapshot.map(|web| web.unwrap().spec.replicas).collect();
    assert_eq!(rest, [2, 1, 1]);
}

#[test]
fn what_is_read_of_objects_that_are_gone_leaves_no_note_behind() {
    let core = core("a");
    let bad = [
        ("one", json!({"replicas": "many"})),
        ("two", json!({"replicas": "few"})),
    ];
    fill(&core, &bad);
    let lister = Lister::<Web>::new(core.clone());
    let mut snapshot = lister.snapshot(&Query::default()).unwrap();
    assert!(snapshot.next().unwrap().is_err());
    let now = boatswain_supervision::Clock::system().now();
    assert_eq!(core.status(now).undecodable.len(), 1);
    fill(&core, &[]);
    assert!(snapshot.next().unwrap().is_err());
    assert!(core.status(now).undecodable.is_empty());
}
