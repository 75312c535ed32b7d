//! The informer by itself: what it does when the server, the network or its rights fail it.

use std::{cell::RefCell, time::Duration};

use boatswain_cache::{InformerOptions, Key, Kind, Lister, Scope, Selection, TroubleCause};
use boatswain_tests::{Mirror, Proxy, Space, World, eventually};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
    core::Expression,
};
use serde_json::json;

/// Silence and requests without an answer are noticed soon.
fn impatient() -> InformerOptions {
    InformerOptions {
        silence: Duration::from_secs(2),
        answer: Duration::from_secs(2),
        ..InformerOptions::default()
    }
}

fn within<K: kube::Resource<DynamicType = ()> + 'static>(space: &Space) -> Selection {
    Selection::of::<K>().within(Scope::Namespace(space.name.clone()))
}

/// An informer of the ConfigMaps of `space`.
async fn mirror(
    world: &World,
    space: &Space,
    proxy: Option<&Proxy>,
    options: InformerOptions,
) -> Mirror {
    let mirror = Mirror::start(
        world.kubeconfig(),
        proxy.map(Proxy::address),
        within::<ConfigMap>(space),
        options,
    )
    .await;
    mirror.is_as(&space.config_maps()).await;
    mirror
}

/// A space with ConfigMaps of these names.
async fn stocked(world: &World, prefix: &str, names: &[&str]) -> Space {
    let space = Space::create(&world.client().await, prefix).await;
    for name in names {
        space.put(name, "first").await;
    }
    space
}

pub(crate) async fn a_consistent_list_comes_in_pages(world: &World) {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let space = stocked(world, "pages", &names).await;
    let options = InformerOptions {
        page_size: 3,
        stream_lists: None,
        ..InformerOptions::default()
    };
    let mirror = mirror(world, &space, None, options).await;
    mirror.heard();
    let before = mirror.status().counters;
    mirror.core().wait_relisted(mirror.core().relist()).await;
    mirror.is_as(&space.config_maps()).await;
    let after = mirror.status().counters;
    assert!(
        after.lists - before.lists >= 3,
        "7 objects, 3 a page: {before:#?}\n{after:#?}"
    );
    assert_eq!(mirror.heard(), Vec::<String>::new(), "nothing changed");
    mirror.stop().await;
}

pub(crate) async fn lists_are_streamed_where_the_server_can_and_read_in_pages_where_it_cannot(
    world: &World,
) {
    let space = stocked(world, "streams", &["a", "b", "c"]).await;
    let options = InformerOptions::default();
    let first = mirror(world, &space, None, options.clone()).await;
    assert_eq!(first.heard_sorted(), ["found a", "found b", "found c"]);
    let begun = first.status();
    first.core().wait_relisted(first.core().relist()).await;
    first.is_as(&space.config_maps()).await;
    assert_eq!(first.heard(), Vec::<String>::new(), "nothing changed");
    // another informer knows what the first has learnt
    let second = mirror(world, &space, None, options).await;
    // one that was asked for overrules what is known: it must say its version first, and streams say it last
    for (informer, first, asked) in [(&first, 1, 1), (&second, 1, 0)] {
        let status = informer.status();
        let (streamed, pages) = (status.counters.streamed, status.counters.lists);
        if world.streams_lists() {
            assert_eq!((streamed, pages), (first, asked), "{status:#?}");
            assert_eq!(status.paged, None);
        } else {
            assert_eq!(pages, first + asked, "{status:#?}");
            assert!(status.paged.is_some(), "{status:#?}");
        }
    }
    let tries = u64::from(!world.streams_lists());
    assert_eq!(begun.counters.unstreamed, tries, "{begun:#?}");
    assert_eq!(second.status().counters.unstreamed, 0, "{begun:#?}");
    first.stop().await;
    second.stop().await;
}

pub(crate) async fn what_is_selected_and_how_much_of_it_is_asked_of_the_server(world: &World) {
    let space = stocked(world, "selected", &["a", "b"]).await;
    let label = async |name: &str, value: Option<&str>| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "deck": value } } }));
        let params = PatchParams::default();
        let patched = space.config_maps().patch(name, &params, &patch).await;
        patched.expect("labelled");
    };
    label("a", Some("upper")).await;
    label("b", Some("lower")).await;
    let selection = within::<ConfigMap>(&space)
        .labels([Expression::Equal("deck".into(), "upper".into())])
        .expect("a selector")
        .metadata_only();
    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    let mirror = Mirror::start(
        world.kubeconfig(),
        Some(proxy.address()),
        selection,
        InformerOptions::default(),
    )
    .await;
    let tells = async |expected: &str| {
        let told = RefCell::new(Vec::new());
        eventually("it is told", async || {
            let mut told = told.borrow_mut();
            told.extend(mirror.heard());
            if *told == [expected] && mirror.core().fresh() {
                Ok(())
            } else {
                Err(format!("{told:?}, not {expected}"))
            }
        })
        .await;
    };
    tells("found a").await;
    let key = Key::new(Some(&space.name), "a");
    let object = mirror.core().get(&key).expect("there");
    assert_eq!(object.path("data.value"), None, "nothing but metadata");
    assert_eq!(object.labels()["deck"], "upper");

    label("b", Some("upper")).await;
    tells("created b").await;
    label("a", None).await;
    tells("deleted a").await;
    proxy.hold();
    label("b", Some("lower")).await;
    proxy.reset();
    tells("deleted b").await;
    assert_eq!(mirror.objects().len(), 0);
    mirror.stop().await;
}

pub(crate) async fn secrets_are_mirrored_and_never_shown(world: &World) {
    let space = stocked(world, "secrets", &[]).await;
    let secrets = Api::<Secret>::namespaced(space.client().clone(), &space.name);
    let secret = json!({ "metadata": { "name": "code" }, "stringData": { "word": "mizzenmast" } });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .expect("a Secret");
    let mirror = Mirror::start(
        world.kubeconfig(),
        None,
        within::<Secret>(&space),
        InformerOptions::default(),
    )
    .await;
    mirror.is_as(&secrets).await;
    let lister = Lister::<Secret>::new(mirror.core().clone());
    let key = Key::new(Some(&space.name), "code");
    let found = lister.get(&key).expect("readable").expect("there");
    let data = found.data.clone().unwrap_or_default();
    assert_eq!(data["word"].0, b"mizzenmast");
    let object = mirror.core().get(&key);
    let shown = format!("{object:?} {:?} {:?}", mirror.core(), mirror.status());
    for value in ["mizzenmast", "bWl6emVubWFzdA=="] {
        assert!(!shown.contains(value), "{shown}");
    }
    mirror.stop().await;
}

pub(crate) async fn a_reset_in_the_middle_of_a_watch_costs_no_list(world: &World) {
    let space = stocked(world, "reset", &["a", "b"]).await;
    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    let mirror = mirror(world, &space, Some(&proxy), InformerOptions::default()).await;
    mirror.heard();
    let before = mirror.status().counters;
    // what happens now is told neither before the reset nor by the broken connection
    proxy.hold();
    space.put("a", "second").await;
    space.remove("b").await;
    space.put("c", "first").await;
    assert_eq!(
        mirror.heard(),
        Vec::<String>::new(),
        "the proxy lets news through"
    );
    proxy.reset();
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(mirror.heard(), ["updated a", "deleted b", "created c"]);
    let after = mirror.status().counters;
    assert_eq!(
        after.lists, before.lists,
        "it resumed where it was: {after:#?}"
    );
    assert!(after.watches > before.watches);
    mirror.stop().await;
}

pub(crate) async fn a_black_holed_watch_is_found_by_its_silence(world: &World) {
    let space = stocked(world, "stranded", &["a", "b"]).await;
    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    let mirror = mirror(world, &space, Some(&proxy), impatient()).await;
    mirror.heard();
    let before = mirror.status().counters;
    // no reset, no end: only new connections work
    proxy.strand();
    space.put("a", "second").await;
    space.remove("b").await;
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(mirror.heard(), ["updated a", "deleted b"]);
    let after = mirror.status().counters;
    assert_eq!(
        after.relists, before.relists,
        "it resumed where it was: {after:#?}"
    );
    assert!(after.watch_ends["silent"] > 0 && after.probes > before.probes);
    mirror.stop().await;
}

pub(crate) async fn rights_that_are_taken_away_are_named_and_used_again_when_they_return(
    world: &World,
) {
    let space = stocked(world, "rights", &["a"]).await;
    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    space.let_view().await;
    let mirror = Mirror::start(
        world.viewer_kubeconfig(),
        Some(proxy.address()),
        within::<ConfigMap>(&space),
        InformerOptions::default(),
    )
    .await;
    mirror.is_as(&space.config_maps()).await;
    mirror.heard();

    space.let_no_more().await;
    eventually("the missing right is named", async || {
        // servers let an open watch go on, and learn of rights a moment late
        if mirror.core().fresh() {
            proxy.reset();
        }
        let named = mirror.core().degraded().filter(|degraded| {
            degraded.cause == TroubleCause::Forbidden
                && degraded.resource == "configmaps"
                && degraded.namespace.as_deref() == Some(space.name.as_str())
        });
        named.ok_or(mirror.status())
    })
    .await;
    space.put("a", "second").await;
    assert!(mirror.core().synced(), "what was known can be read");
    assert_eq!(mirror.heard(), Vec::<String>::new());

    space.let_view().await;
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(mirror.heard(), ["updated a"]);
    assert_eq!(mirror.core().degraded(), None);
    mirror.stop().await;
}

/// The CRD of a kind of its own for each test.
pub(super) fn crd(group: &str) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": { "name": format!("buoys.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "Buoy", "plural": "buoys", "singular": "buoy" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    }))
    .expect("a CRD")
}

pub(crate) async fn a_kind_is_waited_for_and_followed_through_its_deletion_and_return(
    world: &World,
) {
    let client = world.client().await;
    let space = stocked(world, "kinds", &[]).await;
    let group = format!("{}.example.com", space.name);
    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Buoy"));
    let buoys = Api::<DynamicObject>::namespaced_with(client, &space.name, &resource);
    let install = async |buoy: &str| {
        let post = PostParams::default();
        kinds.create(&post, &crd(&group)).await.expect("a CRD");
        eventually("a buoy is laid out", async || {
            let made = DynamicObject::new(buoy, &resource);
            buoys.create(&post, &made).await.map_err(|e| e.to_string())
        })
        .await;
    };
    let kind = Kind::new(group.clone(), "v1", "Buoy", "buoys");
    let selection = Selection::new(kind).within(Scope::Namespace(space.name.clone()));
    let mirror = Mirror::start(
        world.kubeconfig(),
        None,
        selection,
        InformerOptions::default(),
    )
    .await;
    let missing = async || {
        eventually("the missing kind is named", async || {
            let degraded = mirror.core().degraded();
            let named = degraded.filter(|degraded| degraded.cause == TroubleCause::Missing);
            named.ok_or(mirror.status())
        })
        .await
    };
    missing().await;
    assert!(!mirror.core().synced());

    install("red").await;
    mirror.is_as(&buoys).await;
    assert_eq!(mirror.core().degraded(), None);
    assert_eq!(mirror.heard().len(), 1);

    kinds
        .delete(&format!("buoys.{group}"), &DeleteParams::default())
        .await
        .expect("deleted");
    missing().await;
    install("green").await;
    mirror.is_as(&buoys).await;
    let heard = mirror.heard();
    let gone = |told: &&String| matches!(told.as_str(), "deleted red" | "vanished red");
    assert_eq!(heard.iter().filter(gone).count(), 1, "{heard:?}");
    assert!(heard.contains(&"created green".to_owned()), "{heard:?}");
    assert_eq!(heard.len(), 2, "{heard:?}");
    mirror.stop().await;
}

pub(crate) async fn a_server_that_is_killed_and_comes_back_is_followed_without_telling_anything_twice(
    world: &World,
) {
    let space = stocked(world, "killed", &["a", "b"]).await;
    let mirror = mirror(world, &space, None, InformerOptions::default()).await;
    mirror.heard();
    let before = mirror.status().counters.relists;
    world.kill().await;
    eventually("the loss is noticed", async || {
        let trouble = mirror.core().degraded();
        let fresh = mirror.core().fresh();
        let unreachable = trouble.filter(|trouble| trouble.cause == TroubleCause::Unreachable);
        unreachable.filter(|_| !fresh).ok_or(mirror.status())
    })
    .await;
    assert!(mirror.core().synced(), "what was known can be read");
    world.revive().await;
    space.put("a", "second").await;
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(mirror.heard(), ["updated a"]);
    // its history begins with its start: what was written for other kinds since may have put it out of reach
    let mut after = mirror.status().counters.relists;
    let expired = after.remove("expired");
    assert!(
        after == before && expired <= Some(1),
        "{after:?} {expired:?}"
    );
    mirror.stop().await;
}

pub(crate) async fn what_a_lost_history_hides_is_told_by_its_outcome(world: &World) {
    let space = stocked(world, "lost", &["a", "b", "c", "d"]).await;
    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    let mirror = mirror(world, &space, Some(&proxy), InformerOptions::default()).await;
    mirror.heard();
    proxy.hold();
    space.put("a", "second").await;
    space.remove("b").await;
    space.put("e", "first").await;
    space.put("f", "first").await;
    space.remove("f").await;
    // the same name, another object
    space.remove("c").await;
    space.put("c", "again").await;
    world.compact().await;
    world.kill().await;
    world.revive().await;
    assert_eq!(
        mirror.heard(),
        Vec::<String>::new(),
        "the proxy lets news through"
    );
    proxy.release();
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(
        mirror.heard_sorted(),
        [
            "created c",
            "created e",
            "updated a",
            "vanished b",
            "vanished c"
        ],
        "nothing of f, which nobody saw, nor of d, which did not change"
    );
    assert_eq!(mirror.relists("expired"), 1);
    mirror.stop().await;
}

pub(crate) async fn a_server_restored_from_a_backup_begins_a_new_history(world: &World) {
    let space = stocked(world, "backup", &["a", "b", "c"]).await;
    let mirror = mirror(world, &space, None, impatient()).await;
    world.save().await;
    // far ahead of what a server writes by itself until it is asked
    for i in 0..50 {
        space.put("a", &format!("value {i}")).await;
    }
    space.remove("b").await;
    space.put("d", "first").await;
    mirror.is_as(&space.config_maps()).await;
    mirror.heard();
    world.restore().await;
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(
        mirror.heard_sorted(),
        ["created b", "updated a", "vanished d"],
        "back, and nothing of what is as it was"
    );
    assert_eq!(mirror.status().counters.histories, 1);
    space.put("c", "second").await;
    mirror.is_as(&space.config_maps()).await;
    assert_eq!(mirror.heard(), ["updated c"], "the new history goes on");
    mirror.stop().await;
}
