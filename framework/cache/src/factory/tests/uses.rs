//! What users of shared informers ask for beyond reading.

use futures::FutureExt;

use super::*;
use crate::core::WaitError;
use crate::delta::Change;
use crate::status::InformerState;
use crate::store::StoreOptions;
use crate::transform::Transform;

#[test]
fn the_first_user_of_a_selection_says_how_it_is_kept_and_who_wants_it_otherwise_is_told() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let bare = || StoreOptions {
            transform: Transform::default().without("data"),
            ..StoreOptions::default()
        };
        let scopes = [Scope::namespace("default")];
        let view = rig.informers.view_with(&maps(), scopes, &bare()).unwrap();
        view.wait_synced().await;
        let one = view.lister::<ConfigMap>().get(&key("one")).unwrap();
        assert_eq!(one.unwrap().data, None);

        let selection = maps().within(Scope::namespace("default"));
        let refused = rig
            .informers
            .informer_with(selection.clone(), StoreOptions::default());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("transform"), "{refused}");
        assert!(
            rig.informers
                .informer_with(selection.clone(), bare())
                .is_ok()
        );
        drop(view);
        rig.until("stopped", || rig.running().is_empty()).await;
        let again = rig
            .informers
            .informer_with(selection, StoreOptions::default());
        let again = again.unwrap();
        again.wait_synced().await;
        let one = again.lister::<ConfigMap>().get(&key("one")).unwrap();
        assert!(one.unwrap().data.is_some());
        rig.stop().await;
    });
}

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
