use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kube::core::Expression;
use serde_json::{Value, json};

use super::{View, ViewError};
use crate::core::{InformerCore, Permit};
use crate::delta::{Cause, Delta, Trust};
use crate::delta_fifo::state::{Fifo, Replace};
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::lister::{Lister, ReadError};
use crate::object::Object;
use crate::selection::Selection;
use crate::store::IndexSpec;
use crate::subscription::Subscription;
use crate::version::Version;

fn webs() -> Selection {
    Selection::new(Kind::new("apps", "v1", "Web", "webs"))
}

fn core(namespace: &str) -> Arc<InformerCore> {
    InformerCore::select(webs().within(Scope::Namespace(namespace.into())))
}

fn object(namespace: &str, name: &str, version: u64) -> Object {
    let json = json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"), "resourceVersion": version.to_string()},
        "spec": {"host": name},
    });
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn commit(core: &InformerCore, fifo: &mut Fifo<Permit>) {
    while let Some(batch) = fifo.pop(99) {
        core.hand_over(batch);
        core.commit_in_hand();
    }
}

/// Makes the informer synced with objects of these names.
fn fill(core: &InformerCore, names: &[&str]) {
    let mut fifo = Fifo::new(None, 0);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Cached,
        Cause::Initial,
    ));
    for name in names {
        fifo.push(
            Delta::Listed(object(&core.scope().to_string(), name, 1)),
            None,
        );
    }
    fifo.replace_end(Version::new("9"), true);
    commit(core, &mut fifo);
}

fn seen(core: &InformerCore, name: &str, version: u64) {
    let mut fifo = Fifo::new(core.low_water(), 1);
    fifo.push(
        Delta::Seen(object(&core.scope().to_string(), name, version)),
        None,
    );
    commit(core, &mut fifo);
}

fn told(subscription: &Subscription) -> Vec<String> {
    let Some(batch) = subscription.take(usize::MAX) else {
        return Vec::new();
    };
    let changes = batch.changes().iter();
    let told = changes
        .map(|(change, cause)| format!("{cause:?}: {change:?}"))
        .collect();
    batch.ack();
    told
}

fn is_ready(future: impl Future<Output = ()>) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[test]
fn a_namespace_that_is_added_is_told_and_read_and_the_others_are_left_alone() {
    let (a, b) = (core("a"), core("b"));
    let view = View::from(a.clone());
    let (lister, subscription): (Lister<Value>, _) = (view.lister(), view.subscribe("s", || {}));
    fill(&a, &["one", "two"]);
    assert_eq!(told(&subscription).len(), 2);
    assert!(matches!(
        lister.get(&Key::new(Some("b"), "one")),
        Err(ReadError::OutOfScope { .. })
    ));

    fill(&b, &["one"]);
    assert_eq!(view.add(b.clone()), Ok(true));
    assert_eq!(view.add(b.clone()), Ok(false), "it is there");
    assert_eq!(told(&subscription), ["Initial: created b/one@1"]);
    assert_eq!(lister.list().unwrap().len(), 3);
    seen(&b, "new", 10);
    seen(&a, "one", 11);
    assert_eq!(
        told(&subscription),
        ["Watch: created b/new@10", "Watch: updated a/one@11 from 1"]
    );
}

#[test]
fn a_namespace_that_is_removed_is_told_as_out_of_sight_and_nothing_more_is_heard_of_it() {
    let (a, b) = (core("a"), core("b"));
    let view = View::from(a.clone());
    view.add(b.clone()).unwrap();
    let subscription = view.subscribe("s", || {});
    fill(&a, &["one"]);
    fill(&b, &["one"]);
    assert_eq!(told(&subscription).len(), 2);
    seen(&b, "unheard-of", 10);
    let lister = view.lister::<Value>();

    assert!(view.remove(&Scope::Namespace("b".into())));
    assert!(!view.remove(&Scope::Namespace("b".into())), "it is gone");
    assert_eq!(told(&subscription), ["OutOfScope: vanished b/one@1"]);
    assert!(matches!(
        lister.get(&Key::new(Some("b"), "one")),
        Err(ReadError::OutOfScope { .. })
    ));
    assert_eq!(lister.list().unwrap().len(), 1);
    seen(&b, "one", 11);
    subscription.resync();
    assert_eq!(
        told(&subscription),
        ["Resync: updated a/one@1 from 1"],
        "the other one is heard of as before"
    );
    assert_eq!(view.scopes(), [Scope::Namespace("a".into())]);
}

#[test]
fn informers_that_overlap_or_differ_do_not_make_a_view() {
    let view = View::from(core("a"));
    let all = InformerCore::select(webs());
    assert!(matches!(
        view.add(all.clone()),
        Err(ViewError::Overlap { .. })
    ));
    assert!(matches!(
        View::from(all).add(core("a")),
        Err(ViewError::Overlap { .. })
    ));
    let labelled = webs()
        .within(Scope::Namespace("b".into()))
        .labels(Expression::Exists("app".into()))
        .unwrap();
    let error = view.add(InformerCore::select(labelled)).unwrap_err();
    assert!(matches!(error, ViewError::Different { .. }));
    assert_eq!(
        error.to_string(),
        "webs.apps in b with labels app does not go with webs.apps in a: the informers of a view differ in their scopes only"
    );
    assert_eq!(view.scopes().len(), 1);
}

#[test]
fn an_index_reaches_the_namespaces_that_come_later() {
    let (a, b) = (core("a"), core("b"));
    let view = View::from(a.clone());
    view.add_index(IndexSpec::path("spec.host"));
    fill(&a, &["one"]);
    fill(&b, &["one"]);
    view.add(b).unwrap();
    let keys = view.lister::<Value>().keys_by_index("spec.host", "one");
    assert_eq!(keys.unwrap().len(), 2);
}

#[test]
fn a_subscriber_is_synced_when_it_has_handled_what_was_there_and_not_before() {
    let a = core("a");
    let subscription = a.subscribe("s", || {});
    fill(&a, &[]);
    assert!(subscription.synced(), "there was nothing");
    assert!(is_ready(subscription.wait_synced()));

    let b = core("b");
    let subscription = b.subscribe("s", || {});
    assert!(!subscription.synced(), "nobody knows what there is");
    fill(&b, &["one", "two"]);
    assert!(b.synced() && !subscription.synced());
    let first = subscription.take(1).unwrap();
    assert!(!subscription.synced(), "in hand is not handled");
    drop(first);
    assert_eq!(subscription.initial(), 2, "lost in a crash is not handled");
    subscription.take(1).unwrap().ack();
    assert_eq!((subscription.synced(), subscription.initial()), (false, 1));
    assert!(!is_ready(subscription.wait_synced()));
    subscription.take(1).unwrap().ack();
    assert!(subscription.synced());
    seen(&b, "later", 20);
    assert!(subscription.synced(), "what came later is no part of it");
}

#[test]
fn who_waits_for_a_subscriber_is_woken_by_its_last_acknowledgement() {
    let core = core("a");
    let subscription = core.subscribe("s", || {});
    let mut waiting = pin!(subscription.wait_synced());
    let mut poll = || {
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    };
    assert!(!poll());
    fill(&core, &["one"]);
    assert!(!poll());
    subscription.take(9).unwrap().ack();
    assert!(poll());
}

#[test]
fn a_handler_that_dies_of_an_initial_object_is_not_synced_until_it_gets_past_it() {
    let core = core("a");
    fill(&core, &["good", "poison"]);
    let subscription = core.subscribe("s", || {});
    let mut deaths = 0;
    while let Some(batch) = subscription.take(1) {
        let poison = batch.changes()[0].0.key().name() == "poison";
        if poison && deaths < 3 {
            deaths += 1;
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _lost = batch;
                std::panic::resume_unwind(Box::new("poison"));
            }));
            assert!(died.is_err());
            assert!(!subscription.synced());
            assert_eq!(subscription.initial(), 1, "which one is missing shows");
        } else {
            batch.ack();
        }
    }
    assert!(subscription.synced());
}

#[test]
fn a_namespace_that_cannot_be_read_is_not_waited_for_once_it_is_removed() {
    let (a, b) = (core("a"), core("b"));
    let view = View::from(a.clone());
    view.add(b).unwrap();
    fill(&a, &[]);
    let mut waiting = pin!(view.wait_synced());
    let mut poll = || {
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    };
    assert!(!poll());
    view.remove(&Scope::Namespace("b".into()));
    assert!(poll());
}

#[test]
fn ten_thousand_subscribers_and_scopes_that_come_and_go_leave_nothing_behind() {
    let a = core("a");
    fill(&a, &["one"]);
    let view = View::from(a.clone());
    let steady = view.subscribe("steady", || {});
    let dropped = Arc::new(());
    for _ in 0..10_000 {
        let witness = dropped.clone();
        let subscription = view.subscribe("fleeting", move || {
            let _ = &witness;
        });
        assert_eq!(subscription.depth(), 1);
    }
    for _ in 0..10_000 {
        let b = core("b");
        view.add(b.clone()).unwrap();
        view.remove(b.scope());
        assert_eq!(Arc::strong_count(&b), 1);
    }
    assert_eq!(Arc::strong_count(&dropped), 1, "no closure is kept");
    let now = boatswain_supervision::Clock::system().now();
    assert_eq!(a.status(now).subscribers.len(), 1);
    assert_eq!(told(&steady), ["Initial: created a/one@1"]);
    let (_, weak) = (steady, Arc::downgrade(&a));
    drop((view, a));
    assert!(weak.upgrade().is_none(), "nor is the store");
}

#[test]
fn the_closure_of_a_subscriber_may_use_the_view() {
    let (a, b) = (core("a"), core("b"));
    fill(&b, &["one"]);
    let view = View::from(a);
    let asked = view.clone();
    let _subscription = view.subscribe("s", move || {
        asked.subscribe("another", || {});
        asked.add_index(IndexSpec::path("spec.host"));
    });
    view.add(b).unwrap();
    view.remove(&Scope::Namespace("b".into()));
}
