//! What users of shared informers ask for beyond reading.

use futures::FutureExt;

use super::*;
use crate::core::WaitError;
use crate::delta::Change;
use crate::status::InformerState;

#[test]
fn an_informer_whose_tree_was_stopped_is_neither_fresh_nor_watching() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let handle = rig.informers.informer(maps());
        rig.until("fresh", || handle.fresh()).await;
        let now = rig.clock.now();
        rig.stop().await;
        assert!(!handle.fresh());
        assert_eq!(handle.status(now).state, InformerState::Starting);
        assert_eq!(
            handle.lister::<ConfigMap>().list().unwrap().len(),
            1,
            "what is stored can be read"
        );
    });
}

#[test]
fn one_task_hears_of_every_change_by_asking_for_the_next() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let subscription = rig.informers.informer(maps()).subscribe("s", || {});
        let first = subscription.next(10).await;
        assert_eq!(first.changes().len(), 1);
        rig.relabel("one", &json!({"app": "web"}));
        {
            let mut second = std::pin::pin!(subscription.next(0));
            rig.clock.sleep(Duration::from_secs(1)).await;
            assert!(
                second.as_mut().now_or_never().is_none(),
                "the first is in hand"
            );
            first.ack();
            let second = second.await;
            assert_eq!(second.changes().len(), 1);
            drop(second);
        }
        let again = subscription.next(10).await;
        assert!(matches!(again.changes()[0].0, Change::Updated { .. }));
        again.ack();
        rig.stop().await;
    });
}

#[test]
fn a_write_is_waited_for_by_what_it_was_answered_with() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let handle = rig.informers.informer(maps());
        let limit = Duration::from_secs(30);
        handle.synced_within(&rig.clock, limit).await.unwrap();
        let written: ConfigMap = serde_json::from_value(rig.map("one", json!({}))).unwrap();
        handle.wait_written(&written).await.unwrap();
        assert!(handle.get(&Key::of(&written)).is_some());

        let mut sent = written;
        sent.metadata.resource_version = None;
        let answer = handle.wait_written(&sent).await;
        assert!(
            matches!(answer, Err(WaitError::NoVersion { .. })),
            "{answer:?}"
        );
        rig.stop().await;
    });
}

#[test]
fn a_bounded_wait_for_the_first_state_says_what_stands_in_the_way() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let nothing = rig
            .informers
            .informer(Kind::new("harbour.io", "v1", "Crane", "cranes"));
        let limit = Duration::from_secs(30);
        let answer = nothing.synced_within(&rig.clock, limit).await;
        let text = answer.unwrap_err().to_string();
        assert!(
            text.contains("cranes.harbour.io") && text.contains("404"),
            "{text}"
        );

        let core = nothing.core().clone();
        drop(nothing);
        rig.until("stopped", || core.retired()).await;
        let answer = core.synced_within(&rig.clock, limit).await;
        assert!(matches!(answer, Err(WaitError::Ended { .. })), "{answer:?}");
        rig.stop().await;
    });
}

#[test]
fn the_first_user_of_a_selection_decides_how_it_is_kept_and_another_wish_is_refused_by_name() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let bare = StoreOptions {
            transform: Transform::default().without("data"),
            ..StoreOptions::default()
        };
        let ask = |options: &StoreOptions| rig.informers.informer_with(maps(), options.clone());
        let first = ask(&bare).unwrap();
        first.wait_synced().await;
        let read = first.lister::<ConfigMap>().get(&key("one"));
        assert_eq!(read.unwrap().unwrap().data, None);
        assert!(ask(&bare).is_ok(), "the same again");
        let as_it_is = rig.informers.informer(maps());
        assert!(std::ptr::eq(&*as_it_is, &*first), "one store");

        let refused = |options| ask(&options).unwrap_err().what;
        assert_eq!(refused(StoreOptions::default()), "transform");
        let memo = StoreOptions {
            memo: 1,
            ..bare.clone()
        };
        assert_eq!(refused(memo), "memo");
        let typed = StoreOptions {
            layout: Layout::typed::<ConfigMap>(),
            ..bare.clone()
        };
        assert_eq!(refused(typed), "layout");
        let refused = rig
            .informers
            .view_with(&maps(), [Scope::All], &StoreOptions::default());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "configmaps in all namespaces are kept already, with another transform than asked for; give the same store options everywhere, or select \
             something else"
        );

        drop((first, as_it_is));
        assert!(ask(&StoreOptions::default()).is_ok(), "nobody else uses it");
        rig.stop().await;
    });
}

#[test]
fn secrets_are_sensitive_whether_asked_for_or_not() {
    run(|options| async {
        let rig = Rig::start(options).await;
        let secrets = || Selection::of::<k8s_openapi::api::core::v1::Secret>();
        let _plain = rig.informers.informer(secrets());
        let sensitive = StoreOptions {
            sensitive: true,
            ..StoreOptions::default()
        };
        assert!(rig.informers.informer_with(secrets(), sensitive).is_ok());
        rig.stop().await;
    });
}
