use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Layout, StoreOptions};
use crate::core::{InformerCore, Tended};
use crate::delta::{Cause, Delta, Trust};
use crate::delta_fifo::state::{Fifo, Replace};
use crate::key::Key;
use crate::kind::Kind;
use crate::object::Object;
use crate::selection::Selection;
use crate::store::body::{Body, By, Packed};
use crate::store::dictionary::Dictionary;
use crate::transform::Transform;

#[derive(Debug, Deserialize, PartialEq)]
struct Thing {
    spec: Spec,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Spec {
    replicas: u32,
}

fn core(plural: &str, options: StoreOptions) -> Arc<InformerCore> {
    let kind = Kind {
        group: String::new(),
        version: "v1".into(),
        kind: "Thing".into(),
        plural: plural.into(),
        namespaced: true,
    };
    InformerCore::with(Selection::new(kind), options)
}

/// An object of about 3 KB.
fn thing(number: usize, version: usize) -> Value {
    let env: Vec<_> = (0..40)
        .map(|at| json!({"name": format!("VARIABLE_{at}"), "value": format!("{}", number * 7919 + at)}))
        .collect();
    json!({"apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": format!("thing-{number:05}"), "namespace": "n", "resourceVersion": version.to_string(),
            "uid": format!("00000000-0000-4000-8000-{number:012x}"), "labels": {"number": number.to_string()}},
        "spec": {"replicas": number, "env": env}})
}

fn put(core: &InformerCore, objects: impl IntoIterator<Item = Value>) {
    let mut fifo = Fifo::new(core.low_water(), core.epoch());
    for object in objects {
        let opened = core.opener().open(object.to_string().as_bytes()).unwrap();
        fifo.push(Delta::Seen(opened), None);
    }
    core.hand_over(fifo.pop(usize::MAX).unwrap());
    core.commit_in_hand();
    tend(core);
}

fn tend(core: &InformerCore) {
    let mut next = core.tend(Tended::Checked);
    while let Some(done) = next {
        next = core.tend(done);
    }
}

/// The first list is in.
fn list(core: &InformerCore) {
    let mut fifo = Fifo::new(None, 0);
    fifo.replace_begin(Replace::new(1, Trust::Cached, Cause::Initial));
    fifo.replace_end("9".into(), false);
    core.hand_over(fifo.pop(9).unwrap());
    core.commit_in_hand();
}

fn get(core: &InformerCore, number: usize) -> Object {
    core.get(&Key::new(Some("n"), &format!("thing-{number:05}")))
        .unwrap()
}

fn is_packed(object: &Object) -> bool {
    object.body().as_packed().is_some()
}

/// The dictionary that the object was packed by.
fn dictionary(object: &Object) -> Arc<Dictionary> {
    match object.body().as_packed().unwrap().by() {
        By::Dictionary(dictionary) => dictionary.clone(),
        By::Itself | By::Head(_) | By::Twin(_) => panic!("{object:?} is packed by no dictionary"),
    }
}

#[test]
fn objects_are_packed_once_there_are_enough_to_learn_from_and_read_as_before() {
    let core = core("things", StoreOptions::default());
    put(&core, (0..150).map(|number| thing(number, 1)));
    assert!(!is_packed(&get(&core, 3)), "too few to learn from");
    put(&core, (150..300).map(|number| thing(number, 1)));
    list(&core);
    tend(&core);
    for number in 0..300 {
        let object = get(&core, number);
        assert!(is_packed(&object), "{number}");
        let json: Value = serde_json::from_slice(&object.json()).unwrap();
        assert_eq!(json, thing(number, 1));
        assert_eq!(object.labels()["number"], number.to_string());
        assert_eq!(
            object.decode::<Thing>().unwrap().spec.replicas as usize,
            number
        );
    }
    let status = core.status(boatswain_supervision::Clock::system().now());
    assert!(status.bytes * 5 < status.json_bytes, "{status:?}");
    assert_eq!(
        status.bytes,
        (0..300)
            .map(|number| get(&core, number).size())
            .sum::<usize>()
    );
}

#[test]
fn a_dictionary_learned_from_the_first_objects_is_replaced_when_the_list_is_in() {
    let core = core("things", StoreOptions::default());
    // names that have nothing in common, so that none is packed by another one
    let name = |number: usize| format!("{:08x}", (number as u32).wrapping_mul(2_654_435_761));
    let made = |number: usize| {
        let mut thing = thing(number, 1);
        thing["metadata"]["name"] = name(number).into();
        if number > 250 {
            thing["spec"] = json!({"replicas": 1, "note": noise(2000, 7)});
        }
        thing
    };
    let get = |number: usize| core.get(&Key::new(Some("n"), &name(number))).unwrap();
    put(&core, (0..250).map(made));
    put(&core, [made(250)]);
    assert!(!is_packed(&get(0)), "what is stored can wait");
    put(&core, (251..800).map(made));
    let poor = get(700).size();
    let first = dictionary(&get(250));
    assert!(Arc::ptr_eq(&first, &dictionary(&get(700))));

    list(&core);
    tend(&core);
    assert!(!Arc::ptr_eq(&first, &dictionary(&get(700))));
    assert!(get(700).size() * 2 < poor, "{} {poor}", get(700).size());
    assert!(is_packed(&get(0)));
    for number in [0, 250, 251, 799] {
        let json: Value = serde_json::from_slice(&get(number).json()).unwrap();
        assert_eq!(json, made(number));
    }
    let status = core.status(boatswain_supervision::Clock::system().now());
    let bytes: usize = (0..800).map(|number| get(number).size()).sum();
    assert_eq!(status.bytes, bytes);
}

/// As lists tell it: without its kind, and like the others but for what is its own.
fn listed(number: usize) -> String {
    let mut thing = thing(0, 1);
    let own = thing.as_object_mut().unwrap();
    own.remove("apiVersion");
    own.remove("kind");
    let time = format!("{}:00", "1".repeat(number % 9 + 1));
    let (before, after) = (number * 7, number.is_multiple_of(3));
    thing["metadata"] = json!({"annotations": {"before": before}, "generation": number,
        "managedFields": [{"time": time, "number": number}], "name": format!("thing-{number:05}"), "namespace": "n",
        "resourceVersion": "7", "uid": format!("00000000-0000-4000-8000-{number:012x}")});
    thing["spec"]["note"] = noise(1500, 7).into();
    thing["status"] = json!({"after": after, "time": time, "a": format!("{time}\"{number}")});
    thing.to_string()
}

#[test]
fn an_object_that_was_read_by_the_one_before_it_is_told_by_what_differs() {
    let whole = Transform::default();
    for transform in [
        whole.clone(),
        Transform::none(),
        whole.without("spec.replicas"),
    ] {
        let is_told = transform.paths().is_empty();
        let core = core(
            "things",
            StoreOptions {
                transform,
                ..StoreOptions::default()
            },
        );
        put(&core, (0..300).map(|number| thing(number, 1)));
        let (mut opener, mut told) = (core.opener().clone(), 0);
        for number in 500..600 {
            opener.pack_at_once(number % 2 == 0);
            let json = listed(number);
            let (object, length) = opener.front(json.as_bytes(), &|_, _| None).unwrap();
            assert_eq!(length, json.len());
            let alone = core.opener().open(json.as_bytes()).unwrap();
            assert_eq!(object.json(), alone.json());
            assert_eq!(object.body().json_size(), alone.json().len());
            let by = object.body().as_packed().map(Packed::by);
            if matches!(by, Some(By::Twin(_))) {
                told += 1;
                assert!(object.size() < 200, "{}", object.size());
            }
        }
        assert_eq!(told, if is_told { 99 } else { 0 });
    }
}

#[test]
fn small_objects_stay_as_they_are_and_large_ones_wait_for_no_dictionary() {
    let core = core("things", StoreOptions::default());
    let mut small = thing(1, 1);
    small["spec"] = json!({"replicas": 1});
    let mut large = thing(2, 1);
    large["spec"]["text"] = "words words words ".repeat(4000).into();
    put(&core, [small, large]);
    assert!(matches!(get(&core, 1).body(), Body::Plain(_)));
    assert!(get(&core, 2).size() < 4000);
}

#[test]
fn a_hot_object_is_decoded_once_and_forgotten_with_its_state() {
    let core = core("things", StoreOptions::default());
    put(&core, (0..300).map(|number| thing(number, 1)));
    let first = get(&core, 7).decode::<Thing>().unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &get(&core, 7).decode::<Thing>().unwrap()
    ));
    let value = get(&core, 7).decode::<Value>().unwrap();
    assert!(
        Arc::ptr_eq(&value, &get(&core, 7).decode::<Value>().unwrap()),
        "nor for another type"
    );
    assert!(Arc::ptr_eq(
        &first,
        &get(&core, 7).decode::<Thing>().unwrap()
    ));
    let memo = |core: &InformerCore| {
        core.status(boatswain_supervision::Clock::system().now())
            .memo
    };
    assert_eq!(memo(&core).objects, 1);
    drop(value);
    put(&core, [thing(7, 2)]);
    assert_eq!(memo(&core).objects, 0, "a state that is gone is forgotten");
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn the_memo_is_bounded_in_bytes() {
    let options = StoreOptions {
        memo: 1 << 20,
        ..StoreOptions::default()
    };
    let core = core("things", options);
    put(&core, (0..1000).map(|number| thing(number, 1)));
    for number in 0..1000 {
        get(&core, number).decode::<Thing>().unwrap();
    }
    let memo = core
        .status(boatswain_supervision::Clock::system().now())
        .memo;
    assert!(memo.bytes <= 1 << 20 && memo.objects > 10, "{memo:?}");
}

#[test]
fn an_object_that_does_not_decode_is_not_decoded_again_and_again() {
    let core = core("things", StoreOptions::default());
    let mut bad = thing(1, 1);
    bad["spec"]["replicas"] = "s3cret".into();
    put(&core, [bad]);
    for _ in 0..3 {
        let error = get(&core, 1).decode::<Thing>().unwrap_err().to_string();
        assert!(error.contains("spec.replicas") && !error.contains("s3cret"));
    }
    let memo = core
        .status(boatswain_supervision::Clock::system().now())
        .memo;
    assert_eq!((memo.misses, memo.hits), (1, 2));
}

#[test]
fn a_typed_store_hands_out_what_was_decoded_when_it_arrived() {
    let options = StoreOptions {
        layout: Layout::typed::<Thing>(),
        ..StoreOptions::default()
    };
    let core = core("things", options);
    let mut bad = thing(999, 1);
    bad["spec"]["replicas"] = (-1).into();
    put(&core, (0..300).map(|number| thing(number, 1)).chain([bad]));
    list(&core);
    tend(&core);
    let first = get(&core, 7).decode::<Thing>().unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &get(&core, 7).decode::<Thing>().unwrap()
    ));
    assert_eq!(
        get(&core, 7).decode::<Value>().unwrap()["spec"]["replicas"],
        7
    );
    assert!(is_packed(&get(&core, 7)), "its JSON is packed nevertheless");
    assert!(get(&core, 999).decode::<Thing>().is_err());
}

#[test]
fn a_secret_is_neither_packed_nor_remembered() {
    let marked = StoreOptions {
        sensitive: true,
        layout: Layout::typed::<Thing>(),
        ..StoreOptions::default()
    };
    for core in [
        core("secrets", StoreOptions::default()),
        core("tokens", marked),
    ] {
        put(&core, (0..300).map(|number| thing(number, 1)));
        let object = get(&core, 7);
        assert!(matches!(object.body(), Body::Plain(_)));
        let one = object.decode::<Thing>().unwrap();
        let two = object.decode::<Thing>().unwrap();
        assert!(!Arc::ptr_eq(&one, &two));
        let status = core.status(boatswain_supervision::Clock::system().now());
        assert_eq!((status.memo.objects, status.dictionary_bytes), (0, 0));
        assert!(!format!("{object:?} {core:?} {status:?}").contains("VARIABLE"));
    }
}

#[test]
fn an_update_keeps_the_key_of_the_first_state() {
    // one text of a name in memory, however often its object changes
    let core = core("things", StoreOptions::default());
    put(&core, [thing(1, 1)]);
    let first = get(&core, 1).key().clone();
    for version in 2..5 {
        put(&core, [thing(1, version)]);
        assert!(get(&core, 1).key().is_same_text(&first));
    }
}

#[test]
fn a_relist_of_unchanged_objects_rewrites_nothing() {
    let core = core("things", StoreOptions::default());
    put(&core, (0..300).map(|number| thing(number, 1)));
    let before: Vec<_> = (0..300).map(|number| get(&core, number)).collect();
    put(&core, (0..300).map(|number| thing(number, 1)));
    for (number, object) in before.iter().enumerate() {
        assert!(get(&core, number).is_same(object));
    }
}

/// Text that does not compress.
fn noise(length: usize, seed: u64) -> String {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn learning_from_large_objects_takes_no_memory_of_their_size() {
    let core = core("things", StoreOptions::default());
    let text = noise(256 << 10, 7);
    let large = |number: usize| {
        let mut thing = thing(number, 1);
        thing["text"] = text.clone().into();
        thing
    };
    let mut fifo = Fifo::new(core.low_water(), core.epoch());
    for number in 0..200 {
        let json = large(number).to_string();
        let opened = core.opener().open(json.as_bytes()).unwrap();
        fifo.push(Delta::Seen(opened), None);
        core.hand_over(fifo.pop(1).unwrap());
        core.commit_in_hand();
    }
    assert!(core.reader().size().json_bytes > 50 << 20);
    list(&core);
    let mut tended = None;
    let peak = allocation_counter::measure(|| tended = core.tend(Tended::Checked)).bytes_max;
    assert!(tended.is_some(), "there is something to learn from");
    assert!(peak < 32 << 20, "{peak} bytes at once for learning");
}

#[test]
fn whatever_there_is_to_learn_from_objects_are_read_as_they_came() {
    let equal = |_: usize| "x".repeat(2 << 10);
    let random = |number: usize| noise(2 << 10, number as u64 + 1);
    let tiny = |_: usize| String::new();
    let mixed = |number: usize| noise(1 << (number % 17), number as u64 + 1);
    let samples: [&dyn Fn(usize) -> String; 4] = [&equal, &random, &tiny, &mixed];
    for (case, text) in samples.into_iter().enumerate() {
        let core = core("things", StoreOptions::default());
        let thing = |number: usize| json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": format!("thing-{number:05}"), "namespace": "n", "resourceVersion": "1"}, "text": text(number)});
        put(&core, (0..250).map(thing));
        put(&core, (250..300).map(thing));
        for number in 0..300 {
            let json: Value = serde_json::from_slice(&get(&core, number).json()).unwrap();
            assert_eq!(json, thing(number), "case {case}");
        }
    }
}

#[test]
fn a_memo_of_any_size_is_one() {
    for memo in [0, 1, 1 << 10, 1 << 15, 1 << 16] {
        let options = StoreOptions {
            memo,
            ..StoreOptions::default()
        };
        let core = core("things", options);
        put(&core, (0..20).map(|number| thing(number, 1)));
        for number in (0..20).chain(0..20) {
            let decoded = get(&core, number).decode::<Thing>().unwrap();
            assert_eq!(decoded.spec.replicas as usize, number);
        }
        assert!(
            core.status(boatswain_supervision::Clock::system().now())
                .memo
                .bytes
                <= memo as u64
        );
    }
}
