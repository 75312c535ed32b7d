//! Objects that say what they are.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource,
    core::{ApiResource, DynamicObject, TypeMeta},
};

/// An object that says what it is: of a type known at compile time, or a [`DynamicObject`] with its `types`, as those that are read have.
pub trait Identified: Resource {
    /// `apiVersion`, kind, namespace, name and uid.
    fn identity(&self) -> ObjectReference;
}

impl<K> Identified for K
where
    K: Resource,
    K::DynamicType: Types<K>,
{
    fn identity(&self) -> ObjectReference {
        let types = K::DynamicType::of(self);
        let (api_version, kind) = types.map(|types| (types.api_version, types.kind)).unzip();
        let meta = self.meta();
        ObjectReference {
            api_version,
            kind,
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// Where what a `K` is is known from: its type, or itself.
pub trait Types<K> {
    /// What `object` is, if it says so.
    fn of(object: &K) -> Option<TypeMeta>;
}

impl<K: Resource<DynamicType = ()>> Types<K> for () {
    fn of(_: &K) -> Option<TypeMeta> {
        Some(TypeMeta {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
        })
    }
}

impl Types<DynamicObject> for ApiResource {
    fn of(object: &DynamicObject) -> Option<TypeMeta> {
        object.types.clone()
    }
}

#[cfg(test)]
mod tests {
    use boatswain_cache::Kind;
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn an_object_is_the_same_whether_its_kind_was_known_early_or_late() {
        let mut typed = Deployment::default();
        typed.metadata.name = Some("web".into());
        typed.metadata.namespace = Some("shop".into());
        typed.metadata.uid = Some("u1".into());
        let resource = Kind::of::<Deployment>().api_resource();
        let mut dynamic = DynamicObject::new("web", &resource).within("shop");
        dynamic.metadata.uid = Some("u1".into());
        assert_eq!(typed.identity(), dynamic.identity());
        assert_eq!(typed.identity().api_version.as_deref(), Some("apps/v1"));
        // nobody has said what it is
        dynamic.types = None;
        assert_eq!(dynamic.identity().kind, None);
    }
}
