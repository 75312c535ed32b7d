use std::{future::pending, time::SystemTime};

use boatswain_cache::{Kind, Predicate, envelope};
use boatswain_supervision::Clock;
use boatswain_workqueue::Merge as _;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{
    guard::{Guarded, guarded},
    hand::{Progress, Quarantine, Step},
    sieve::{Sieve, Worth},
    unmapped::{News, Unmapped},
    *,
};

fn object(name: &str, metadata: Value) -> Object {
    let mut json = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1" },
    });
    if let (Some(all), Value::Object(more)) = (json["metadata"].as_object_mut(), metadata) {
        all.extend(more);
    }
    envelope::open(json.to_string().as_bytes()).expect("an object")
}

fn owned_by(api_version: &str, kind: &str, name: &str, controller: bool) -> Object {
    let owner = json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controller });
    object("child", json!({ "ownerReferences": [owner] }))
}

fn kind(namespaced: bool) -> Kind {
    Kind {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
        namespaced,
    }
}

fn keys(names: &[&str]) -> Option<Vec<Key>> {
    Some(
        names
            .iter()
            .map(|n| Key::parse(n).expect("a key"))
            .collect(),
    )
}

#[test]
fn an_owner_is_found_by_group_and_kind_whatever_its_version() {
    let mapping = Mapping::Named(Reference::to_controller(kind(true)));
    let map = |object| mapping.keys(&Change::Created(object));
    assert_eq!(
        map(owned_by("apps/v1", "Deployment", "web", true)),
        keys(&["shop/web"])
    );
    assert_eq!(
        map(owned_by("apps/v1beta2", "Deployment", "web", true)),
        keys(&["shop/web"])
    );
    assert_eq!(
        map(owned_by("extensions/v1", "Deployment", "web", true)),
        keys(&[])
    );
    assert_eq!(
        map(owned_by("apps/v1", "ReplicaSet", "web", true)),
        keys(&[])
    );
    assert_eq!(
        map(owned_by("apps/v1", "Deployment", "web", false)),
        keys(&[])
    );
    let cluster_wide = Mapping::Named(Reference::to_controller(kind(false)));
    let change = Change::Created(owned_by("apps/v1", "Deployment", "web", true));
    assert_eq!(cluster_wide.keys(&change), keys(&["web"]));
}

#[test]
fn an_owner_that_changed_concerns_the_old_and_the_new_one() {
    let mapping = Mapping::Named(Reference::to_controller(kind(true)));
    let change = Change::Updated {
        old: owned_by("apps/v1", "Deployment", "old", true),
        new: owned_by("apps/v1", "Deployment", "new", true),
    };
    assert_eq!(mapping.keys(&change), keys(&["shop/new", "shop/old"]));
    let gone = Change::Deleted {
        last: owned_by("apps/v1", "Deployment", "old", true),
        certain: false,
    };
    assert_eq!(mapping.keys(&gone), keys(&["shop/old"]));
}

#[test]
fn a_mapper_is_left_to_say_for_itself() {
    struct Nobody;
    impl Mapper for Nobody {
        fn map(&self, _: Object) -> BoxFuture<'static, Result<Vec<Key>, MapError>> {
            Box::pin(pending())
        }
    }
    let mapping = Mapping::Mapped(Arc::new(Nobody));
    assert_eq!(mapping.keys(&Change::Created(object("a", json!({})))), None);
}

#[test]
fn a_state_that_does_not_decode_concerns_no_key_and_is_no_failure_to_try_again() {
    let mapper = FnMapper::<ConfigMap, ConfigMap, _>::new(
        |map: Arc<ConfigMap>, _| async move { Ok::<_, std::fmt::Error>(vec![crate::key_of(&*map)]) },
        Lister::over(vec![]),
    );
    let map = |object| mapper.map(object).now_or_never().expect("at once");
    let good = map(object("good", json!({}))).expect("mapped");
    assert_eq!(Some(good), keys(&["shop/good"]));
    let bad = map(object("bad", json!({ "creationTimestamp": "never" }))).expect("mapped");
    assert_eq!(bad, []);
}

#[test]
fn news_of_one_object_are_merged_from_the_first_state_to_the_last() {
    let state = |n: u32| object("a", json!({ "resourceVersion": n.to_string() }));
    let news = |states: Vec<Object>, causes| News { states, causes };
    let mut all = news(vec![state(1), state(2)], Causes::WATCHED);
    for n in 2..100 {
        all.merge(news(vec![state(n), state(n + 1)], Causes::INITIAL));
    }
    let versions: Vec<_> = all
        .states
        .iter()
        .map(|s| s.meta().resource_version.to_string())
        .collect();
    assert_eq!(versions, ["1", "99", "100"]);
    assert!(all.causes.contains(Causes::WATCHED.and(Causes::INITIAL)));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_about_is_handed_out_again_after_a_crash_and_after_a_failure_but_never_twice()
{
    let clock = Clock::paused(SystemTime::UNIX_EPOCH);
    let unmapped = Unmapped::new();
    let add = |name: &str| {
        let object = object(name, json!({}));
        let news = News {
            states: vec![object.clone()],
            causes: Causes::WATCHED,
        };
        unmapped.add(object.key().clone(), Lane::Normal, news, clock.now());
    };
    add("a");
    let crashed = unmapped.next(&clock).expect("news");
    assert!(unmapped.next(&clock).is_none(), "it is being mapped");
    drop(crashed);
    let failed = unmapped.next(&clock).expect("it comes again");
    let delay = failed.failed(0.5);
    assert!(unmapped.next(&clock).is_none(), "it waits");
    add("b");
    unmapped.next(&clock).expect("others do not").answered();
    assert_eq!(unmapped.due(), Some(clock.now() + delay));
    clock.sleep(delay).await;
    let again = unmapped.next(&clock).expect("its time has come");
    assert_eq!(
        (again.key.name(), again.failures, again.news.states.len()),
        ("a", 1, 1)
    );
    add("a");
    again.answered();
    let newer = unmapped
        .next(&clock)
        .expect("a change meanwhile is mapped after it");
    newer.answered();
    assert!(unmapped.next(&clock).is_none() && unmapped.due().is_none());
}

#[test]
fn a_predicate_that_panics_lets_the_change_pass_and_is_told_of_once() {
    let picky = Predicate::state("picky", |object| match object.key().name() {
        "panics" => panic!("as asked"),
        name => name == "good",
    });
    let sieve = Sieve::new(Some(picky));
    let judge = |name| sieve.judge(&Change::Created(object(name, json!({}))));
    assert_eq!(judge("good"), Worth::Run);
    assert_eq!(judge("bad"), Worth::Nothing);
    assert_eq!(judge("panics"), Worth::Unknown { first: true });
    assert_eq!(judge("panics"), Worth::Unknown { first: false });
    let all = Sieve::new(None);
    assert_eq!(
        all.judge(&Change::Created(object("bad", json!({})))),
        Worth::Run
    );
}

#[test]
fn what_a_label_names_runs_and_counts_as_watched() {
    let mapping = Mapping::Named(Reference::by_label(kind(true), "app.io/of"));
    let child = object("child", json!({ "labels": { "app.io/of": "web" } }));
    let change = Change::Created(child);
    assert_eq!(mapping.keys(&change), keys(&["shop/web"]));
    assert_eq!(mapping.causes(&change, Cause::Watch), Causes::WATCHED);
    let owned = Mapping::Named(Reference::to_owners(kind(true)));
    assert_eq!(owned.causes(&change, Cause::Watch), Causes::OWNED);
}

#[test]
fn a_panic_of_the_author_is_its_own_wherever_it_comes_even_from_what_it_leaves_behind() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    assert_eq!(guarded(|| 1), Ok(1));
    let panicked = guarded(|| panic!("called")).expect_err("it panics");
    assert_eq!(panicked.to_string(), "it panicked: called");
    let payload = guarded(|| std::panic::panic_any(Bomb)).expect_err("it panics");
    assert_eq!(payload.to_string(), "it panicked: without a text");
    let polled: Guarded<'_, ()> = Guarded::new(Box::pin(async { panic!("polled") }));
    assert!(polled.now_or_never().is_some_and(|answer| answer.is_err()));
    let hung: Guarded<'_, ()> = Guarded::new(Box::pin(async {
        let _bomb = Bomb;
        pending().await
    }));
    assert!(
        hung.now_or_never().is_none(),
        "and its drop goes no further"
    );
}

#[test]
fn after_a_crash_changes_are_handled_one_by_one_and_the_one_that_kills_again_is_set_aside() {
    let mut progress = Progress::default();
    let mut steps = Vec::new();
    // the third of five kills whoever handles it
    loop {
        let step = progress.begin(5);
        match &step {
            Step::Handle(range) if !range.contains(&2) => progress.did(range.end),
            Step::Handle(_) => {}
            Step::SetAside(at) => progress.did(at + 1),
            Step::End => break,
        }
        steps.push(step);
    }
    let alone = |at| Step::Handle(at..at + 1);
    let rest = [
        alone(0),
        alone(1),
        alone(2),
        Step::SetAside(2),
        alone(3),
        alone(4),
    ];
    assert_eq!(steps[0], Step::Handle(0..5));
    assert_eq!(steps[1..], rest);
}

#[test]
fn what_was_set_aside_is_named_until_a_later_change_of_it_is_handled() {
    let quarantine = Quarantine::default();
    let change = Change::Created(object("a", json!({})));
    quarantine.insert(&change);
    assert_eq!(quarantine.show()[0]["key"], "shop/a");
    assert!(quarantine.get(change.key()).is_some());
    assert_eq!(quarantine.get(&Key::new(Some("shop"), "b")), None);
    quarantine.forget([Key::new(Some("shop"), "b")].iter());
    assert_eq!(quarantine.show().as_array().map(Vec::len), Some(1));
    quarantine.forget([change.key().clone()].iter());
    assert_eq!(quarantine.show(), json!([]));
}
