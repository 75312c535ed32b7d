//! What the server selects for an informer, and how much of it.

use super::*;

#[test]
fn labels_are_selected_by_the_server_and_an_object_that_leaves_is_told_as_deleted() {
    run(|options| async {
        let rig = Rig::start(options).await;
        for number in 0..5 {
            rig.map(&format!("web-{number}"), json!({"app": "web"}));
            rig.map(&format!("db-{number}"), json!({"app": "db"}));
        }
        let web = rig.informers.informer(labelled("web"));
        let subscription = web.view().subscribe("s", || {});
        rig.until("fresh", || web.fresh()).await;
        assert_eq!(hear(&subscription).len(), 5);
        let lists = rig.asked("list");
        let asked = rig.asked("watch").into_iter().chain(lists);
        for query in asked {
            assert!(query.contains("labelSelector=app%3Dweb"), "{query}");
        }

        rig.relabel("web-0", &json!({"app": "db"}));
        rig.relabel("db-0", &json!({"app": "web"}));
        rig.until("heard", || subscription.depth() == 2).await;
        let batch = subscription.take(9).unwrap();
        let text = format!("{:?}", batch.changes());
        batch.ack();
        assert!(
            text.contains("deleted default/web-0@"),
            "as certain as the server is: {text}"
        );
        assert!(text.contains("created default/db-0@"), "{text}");
        let lister = web.lister::<ConfigMap>();
        assert!(lister.get(&key("web-0")).unwrap().is_none());
        assert!(
            rig.server
                .get("v1", "ConfigMap", "default", "web-0")
                .unwrap()
                .is_some()
        );
        rig.stop().await;
    });
}

#[test]
fn an_object_that_leaves_a_selection_unseen_is_told_as_vanished() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("web-0", json!({"app": "web"}));
        let web = rig.informers.informer(labelled("web"));
        let subscription = web.view().subscribe("s", || {});
        rig.until("fresh", || web.fresh()).await;
        assert_eq!(hear(&subscription), ["created default/web-0"]);
        rig.server.faults().unreachable(true);
        rig.server.faults().drop_watches();
        rig.clock.sleep(Duration::from_secs(5)).await;
        rig.relabel("web-0", &json!({"app": "db"}));
        rig.server.compact();
        rig.server.faults().unreachable(false);
        rig.until("heard", || subscription.depth() == 1).await;
        assert_eq!(hear(&subscription), ["vanished default/web-0"]);
        rig.stop().await;
    });
}

#[test]
fn fields_are_selected_by_the_server() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        rig.map("two", json!({}));
        let one = rig
            .informers
            .informer(maps().field("metadata.name", "one").unwrap());
        let others = rig
            .informers
            .informer(maps().field_not("metadata.name", "one").unwrap());
        one.wait_synced().await;
        others.wait_synced().await;
        let names = |informer: &crate::SharedInformer| {
            let all = informer.lister::<ConfigMap>().list_objects().unwrap();
            all.iter()
                .map(|object| object.key().name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (names(&one), names(&others)),
            (vec!["one".into()], vec!["two".into()])
        );
        rig.map("three", json!({}));
        rig.until("heard", || names(&others).len() == 2).await;
        assert_eq!(names(&one).len(), 1);
        rig.stop().await;
    });
}

#[test]
fn a_metadata_only_informer_never_sees_the_insides() {
    run(|options| async {
        let rig = Rig::start(options).await;
        for number in 0..3 {
            rig.map(&format!("map-{number}"), json!({"app": "web"}));
        }
        let metadata = rig.informers.informer(maps().metadata_only());
        rig.until("fresh", || metadata.fresh()).await;
        rig.map("later", json!({"app": "db"}));
        rig.until("later", || metadata.get(&key("later")).is_some())
            .await;
        let lister = metadata.lister::<PartialObjectMeta<ConfigMap>>();
        for object in lister.list_objects().unwrap() {
            let json = String::from_utf8(object.json().to_vec()).unwrap();
            assert!(!json.contains("value"), "{json}");
        }
        let later = lister.get(&key("later")).unwrap().unwrap();
        assert_eq!(later.metadata.labels.as_ref().unwrap()["app"], "db");

        // whole objects of the same kind are another informer
        let whole = rig.informers.informer(maps());
        whole.wait_synced().await;
        let map = whole
            .lister::<ConfigMap>()
            .get(&key("later"))
            .unwrap()
            .unwrap();
        assert_eq!(map.data.as_ref().unwrap()["key"], "value");
        assert_eq!(rig.running().len(), 2);
        rig.stop().await;
    });
}

#[test]
fn a_kind_known_at_run_time_only_comes_through_the_same_door() {
    run(|options| async {
        let rig = Rig::start(options).await;
        rig.map("one", json!({}));
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps");
        let informer = rig.informers.informer(kind);
        informer.wait_synced().await;
        let lister = informer.lister::<DynamicObject>();
        let one = lister.get(&key("one")).unwrap().unwrap();
        assert_eq!(one.data["data"]["key"], "value");
        let typed = rig.informers.informer(maps());
        assert!(
            std::sync::Arc::ptr_eq(typed.core(), informer.core()),
            "it is the same selection"
        );
        rig.stop().await;
    });
}
