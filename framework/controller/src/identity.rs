//! Objects that say what they are.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, core::DynamicObject};

/// An object that says what it is: of a type known at compile time, or a [`DynamicObject`] with its `types`, as those that are read have.
pub trait Identified: Resource {
    /// `apiVersion`, kind, namespace, name and uid.
    fn identity(&self) -> ObjectReference;
}

impl<K: Resource<DynamicType = ()>> Identified for K {
    fn identity(&self) -> ObjectReference {
        let api_version = Some(K::api_version(&()).into_owned());
        identity(self, api_version, Some(K::kind(&()).into_owned()))
    }
}

impl Identified for DynamicObject {
    fn identity(&self) -> ObjectReference {
        let types = self.types.clone();
        let (api_version, kind) = types.map(|types| (types.api_version, types.kind)).unzip();
        identity(self, api_version, kind)
    }
}

fn identity<K: Resource>(
    object: &K,
    api_version: Option<String>,
    kind: Option<String>,
) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version,
        kind,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
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
