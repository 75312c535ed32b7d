use std::time::SystemTime;

use boatswain_cache::{Kind, Scope, envelope};
use boatswain_supervision::Clock;
use serde_json::json;

use super::*;

fn writes() -> Writes {
    let maps = Kind::new("", "v1", "ConfigMap", "configmaps");
    Writes::new(vec![View::from(InformerCore::new(maps, Scope::All))])
}

fn target(plural: &str, name: &str) -> Target {
    Target {
        group: String::new(),
        plural: plural.to_owned(),
        namespace: Some("shop".to_owned()),
        name: Some(name.to_owned()),
        subresource: None,
    }
}

fn object(name: &str) -> Object {
    let metadata = json!({ "name": name, "namespace": "shop", "uid": "u", "resourceVersion": "7" });
    envelope::open(json!({ "metadata": metadata }).to_string().as_bytes()).expect("an object")
}

#[test]
fn g9_names_that_write_once_and_never_run_again_are_forgotten_in_time_by_those_that_write() {
    let (writes, start) = (writes(), Clock::paused(SystemTime::UNIX_EPOCH).now());
    let mut most = 0;
    for number in 0..60_000_u32 {
        let name = format!("map-{number}");
        let now = start + Duration::from_millis(100) * number;
        let key = Key::new(Some("shop"), &name);
        writes.wrote(
            &key,
            &target("configmaps", &name),
            &object(&name),
            true,
            now,
        );
        most = most.max(writes.len());
    }
    let lately = OLD.as_millis() as usize / 100;
    assert!(
        (lately / 2..lately * 2).contains(&most),
        "{most} keys are remembered"
    );
    let rounds = writes
        .books
        .iter()
        .map(|book| book.lock().expect("a lock").round.len());
    assert!(rounds.sum::<usize>() <= most);
}

#[test]
fn what_no_cache_of_the_controller_can_show_is_not_remembered() {
    let (writes, now) = (writes(), Clock::paused(SystemTime::UNIX_EPOCH).now());
    let key = Key::new(Some("shop"), "a");
    assert!(!writes.concern(&target("secrets", "a")));
    writes.wrote(&key, &target("secrets", "a"), &object("a"), true, now);
    writes.unknown(&key, &target("secrets", "a"), now);
    assert_eq!(writes.len(), 0);
    assert!(writes.concern(&target("configmaps", "a")));
    writes.wrote(&key, &target("configmaps", "a"), &object("a"), true, now);
    assert_eq!(writes.len(), 1);
    let retired = writes.caches[0].cores();
    retired.iter().for_each(|core| core.retire());
    writes.sweep(&key, now);
    assert_eq!(
        writes.len(),
        0,
        "nobody keeps the cache up to date any more"
    );
}

#[test]
fn an_answer_without_a_namespace_is_awaited_from_no_cache_that_holds_one_namespace_only() {
    let maps = Kind::new("", "v1", "ConfigMap", "configmaps");
    let shop = Scope::Namespace("shop".into());
    let writes = Writes::new(vec![View::from(InformerCore::new(maps, shop))]);
    let (key, now) = (
        Key::new(Some("shop"), "a"),
        Clock::paused(SystemTime::UNIX_EPOCH).now(),
    );
    let collection = Target {
        namespace: None,
        name: None,
        ..target("configmaps", "a")
    };
    let answer = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7" } });
    let answer = envelope::open(answer.to_string().as_bytes()).expect("an object");
    assert!(writes.concern(&collection));
    writes.wrote(&key, &collection, &answer, true, now);
    assert_eq!(writes.len(), 0);
    writes.unknown(&key, &collection, now);
    assert_eq!(writes.len(), 1, "it may be any of them");
}
