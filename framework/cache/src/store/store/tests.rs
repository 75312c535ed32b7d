use super::{Applied, Ready, Shelf, Size, Values, store};
use crate::delta::Delta;
use crate::delta_fifo::state::{Fifo, Step};
use crate::key::Key;
use crate::object::Object;
use crate::store::IndexSpec;
use crate::sync::write;

fn object(namespace: &str, name: &str, node: &str) -> Object {
    let version = node.bytes().map(u64::from).sum::<u64>().to_string();
    let json = serde_json::json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": version}, "spec": {"nodeName": node}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn put(shelf: &mut Shelf, object: Object, values: Values) {
    let mut fifo = Fifo::new(None, 0);
    fifo.push(Delta::Seen(object), ());
    for step in &fifo.pop(1).unwrap().steps {
        if let Step::Key(key, pending) = step {
            let ready = Ready {
                object: None,
                values: values.clone(),
            };
            shelf.apply(key, pending, &ready, None, &mut Applied::default());
        }
    }
}

#[test]
fn a_namespace_is_read_without_its_neighbours() {
    let (writer, reader) = store();
    for (namespace, name) in [("b", "2"), ("a", "z"), ("b", "1"), ("b-c", "3"), ("c", "4")] {
        put(
            &mut write(&writer.shelf),
            object(namespace, name, "n"),
            Values::new(),
        );
    }
    let names = |namespace| {
        reader
            .list(namespace)
            .iter()
            .map(|object| object.key().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Some("b")), ["b/1", "b/2"]);
    assert!(names(Some("d")).is_empty());
    assert_eq!(names(None), ["a/z", "b/1", "b/2", "b-c/3", "c/4"]);
}

#[test]
fn ten_thousand_names_that_come_and_go_leave_nothing_behind() {
    let (mut writer, reader) = store();
    writer.add_index(reader.build(IndexSpec::path("spec.nodeName")));
    for number in 0..10_000 {
        let object = object("a", &number.to_string(), &format!("node-{number}"));
        let mut shelf = write(&writer.shelf);
        put(
            &mut shelf,
            object.clone(),
            vec![Some(vec![format!("node-{number}")])],
        );
        shelf.take(object.key());
    }
    assert_eq!(reader.size(), Size::default());
    assert_eq!(write(&writer.shelf).indexes[0].footprint(), 0);
}

#[test]
fn an_object_moves_in_the_index_with_its_value() {
    let (mut writer, reader) = store();
    writer.add_index(reader.build(IndexSpec::path("spec.nodeName")));
    for node in ["n1", "n2"] {
        put(
            &mut write(&writer.shelf),
            object("a", "pod", node),
            vec![Some(vec![node.to_owned()])],
        );
    }
    assert_eq!(
        reader.keys_by_index("spec.nodeName", "n1"),
        Some(Vec::new())
    );
    assert_eq!(
        reader.keys_by_index("spec.nodeName", "n2"),
        Some(vec![Key::new(Some("a"), "pod")])
    );
    assert_eq!(reader.keys_by_index("spec.other", "n2"), None);
}

#[test]
fn an_index_that_was_large_gives_its_memory_back() {
    let (mut writer, reader) = store();
    writer.add_index(reader.build(IndexSpec::path("spec.nodeName")));
    let allocated = allocation_counter::measure(|| {
        let mut shelf = write(&writer.shelf);
        let object = |number: u32| object("a", &number.to_string(), "n");
        for number in 0..20_000 {
            put(
                &mut shelf,
                object(number),
                vec![Some(vec![format!("node-{number}")])],
            );
        }
        for number in 0..20_000 {
            shelf.take(object(number).key());
        }
    });
    let left = allocated.bytes_current;
    assert!(left < 128 << 10, "{left} bytes are left of nothing");
}
