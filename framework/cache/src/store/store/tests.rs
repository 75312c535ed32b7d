use super::{Size, Values, store};
use crate::key::Key;
use crate::object::Object;
use crate::store::IndexSpec;
use crate::sync::write;

fn object(namespace: &str, name: &str, node: &str) -> Object {
    let json = serde_json::json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": "1"}, "spec": {"nodeName": node}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

#[test]
fn a_namespace_is_read_without_its_neighbours() {
    let (writer, reader) = store();
    for (namespace, name) in [("b", "2"), ("a", "z"), ("b", "1"), ("b-c", "3"), ("c", "4")] {
        write(&writer.shelf).put(object(namespace, name, "n"), 0, &Values::new());
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
        shelf.put(
            object.clone(),
            0,
            &vec![Some(vec![format!("node-{number}")])],
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
        write(&writer.shelf).put(
            object("a", "pod", node),
            0,
            &vec![Some(vec![node.to_owned()])],
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
            shelf.put(
                object(number),
                0,
                &vec![Some(vec![format!("node-{number}")])],
            );
        }
        for number in 0..20_000 {
            shelf.take(object(number).key());
        }
    });
    let left = allocated.bytes_current;
    assert!(left < 128 << 10, "{left} bytes are left of nothing");
}
