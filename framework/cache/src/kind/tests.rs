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
