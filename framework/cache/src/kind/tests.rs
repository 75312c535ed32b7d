use super::{Kind, Scope};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};

#[test]
fn a_kind_knows_its_urls() {
    let one = Scope::Namespace("default".into());
    assert_eq!(
        Kind::of::<Deployment>().path(&Scope::All),
        "/apis/apps/v1/deployments"
    );
    assert_eq!(
        Kind::of::<Deployment>().path(&one),
        "/apis/apps/v1/namespaces/default/deployments"
    );
    assert_eq!(
        Kind::of::<Pod>().path(&one),
        "/api/v1/namespaces/default/pods"
    );
    assert_eq!(
        Kind::of::<Node>().path(&one),
        "/api/v1/nodes",
        "nodes live in no namespace"
    );
}

#[test]
fn a_kind_is_called_as_people_and_rbac_call_it() {
    assert_eq!(
        (
            Kind::of::<Deployment>().resource(),
            Kind::of::<Deployment>().api_version()
        ),
        ("deployments.apps".into(), "apps/v1".into())
    );
    assert_eq!(
        (
            Kind::of::<Pod>().resource(),
            Kind::of::<Pod>().api_version()
        ),
        ("pods".into(), "v1".into())
    );
    assert!(Kind::of::<Deployment>().namespaced && !Kind::of::<Node>().namespaced);
}

#[test]
fn a_scope_contains_its_namespace_and_nothing_else() {
    let one = Scope::Namespace("default".into());
    assert!(one.contains(Some("default")) && !one.contains(Some("other")) && !one.contains(None));
    assert!(Scope::All.contains(None) && Scope::All.contains(Some("other")));
}

#[test]
fn a_discovered_kind_knows_whether_its_objects_live_in_namespaces() {
    use kube::core::{ApiResource, GroupVersionKind};
    use kube::discovery::{ApiCapabilities, Scope};
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("harbour.io", "v1", "Crane"),
        "cranes",
    );
    let capabilities = |scope| ApiCapabilities {
        scope,
        subresources: Vec::new(),
        operations: Vec::new(),
    };
    let local = Kind::discovered(&resource, &capabilities(Scope::Namespaced));
    assert_eq!(local, Kind::new("harbour.io", "v1", "Crane", "cranes"));
    let wide = Kind::discovered(&resource, &capabilities(Scope::Cluster));
    assert_eq!(wide, local.cluster_wide());
}
