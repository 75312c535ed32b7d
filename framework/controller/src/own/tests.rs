use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Node},
};
use proptest::prelude::*;

use super::*;

fn made<K: Resource<DynamicType = ()> + Default>(namespace: Option<&str>, name: &str) -> K {
    let mut object = K::default();
    let meta = object.meta_mut();
    meta.name = Some(name.into());
    meta.namespace = namespace.map(Into::into);
    meta.uid = Some(format!("uid of {name}"));
    object
}

fn references(map: &ConfigMap) -> &[OwnerReference] {
    map.metadata.owner_references.as_deref().unwrap_or_default()
}

#[test]
fn a_controller_is_named_with_all_that_the_garbage_collector_and_owns_look_at() {
    let (web, mut map) = (
        made::<Deployment>(Some("shop"), "web"),
        ConfigMap::default(),
    );
    control(&web, &mut map).expect("it can");
    assert_eq!(map.metadata.namespace.as_deref(), Some("shop"));
    let wanted = OwnerReference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: "web".into(),
        uid: "uid of web".into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    assert_eq!(references(&map), [wanted]);
}

#[test]
fn an_owner_in_another_namespace_is_refused_and_one_without_a_namespace_owns_everywhere() {
    let mut map = made::<ConfigMap>(Some("shop"), "map");
    let before = map.clone();
    let error = control(&made::<Deployment>(Some("bank"), "web"), &mut map);
    let error = error.expect_err("another namespace").to_string();
    assert!(
        error.starts_with("Deployment bank/web cannot own ConfigMap shop/map: "),
        "{error}"
    );
    assert_eq!(map, before);
    control(&made::<Node>(None, "n1"), &mut map).expect("it can");
    let mut node = made::<Namespace>(None, "shop");
    let error = hold(&made::<Deployment>(Some("shop"), "web"), &mut node);
    assert!(matches!(error, Err(OwnerError::OtherNamespace { .. })));
}

#[test]
fn a_second_controller_is_refused_and_named_and_a_second_owner_is_not() {
    let mut map = made::<ConfigMap>(Some("shop"), "map");
    let (web, db) = (
        made::<Deployment>(Some("shop"), "web"),
        made::<Deployment>(Some("shop"), "db"),
    );
    control(&web, &mut map).expect("it can");
    let before = map.clone();
    let error = control(&db, &mut map).expect_err("a second one");
    assert!(error.to_string().contains("Deployment web does"), "{error}");
    assert_eq!(map, before);
    hold(&db, &mut map).expect("it can");
    hold(&web, &mut map).expect("it can");
    let controls: Vec<_> = references(&map).iter().map(|r| r.controller).collect();
    assert_eq!(controls, [Some(true), None], "it goes on controlling");
}

#[test]
fn an_owner_that_no_server_gave_is_refused() {
    let mut web = made::<Deployment>(Some("shop"), "web");
    web.metadata.uid = None;
    let refused = control(&web, &mut made::<ConfigMap>(Some("shop"), "map"));
    assert!(matches!(refused, Err(OwnerError::Unknown { .. })));
}

proptest! {
    #[test]
    fn whoever_owns_there_is_one_reference_of_each_and_one_controller_at_most(steps in prop::collection::vec((0..4u8, any::<bool>()), 0..20)) {
        let mut map = made::<ConfigMap>(Some("shop"), "map");
        let foreign = OwnerReference { uid: "foreign".into(), kind: "Pod".into(), name: "p".into(), ..OwnerReference::default() };
        map.metadata.owner_references = Some(vec![foreign.clone()]);
        for (owner, controls) in steps {
            let owner = made::<Deployment>(Some("shop"), &owner.to_string());
            let before = map.clone();
            let owned = if controls { control(&owner, &mut map) } else { hold(&owner, &mut map) };
            let uid = owner.metadata.uid.expect("a uid");
            match owned {
                Ok(()) => prop_assert_eq!(references(&map).iter().filter(|r| r.uid == uid).count(), 1),
                Err(_) => prop_assert_eq!(&map, &before),
            }
            prop_assert!(references(&map).iter().filter(|r| r.controller == Some(true)).count() <= 1);
            prop_assert_eq!(&references(&map)[0], &foreign);
        }
    }
}
