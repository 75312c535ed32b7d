use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::{Lister, ReadError};
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
        let json = json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": "1"}, "spec": spec});
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
