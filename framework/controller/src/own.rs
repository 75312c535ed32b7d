//! Owner references that Kubernetes' garbage collector honours: of an owner that exists, in the same namespace or without one, and of one controller only.

use boatswain_cache::Kind;
use k8s_openapi::{
    api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::Resource;

use crate::{context::key_of, identity::Identified};

/// Why an object cannot be owned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The owner does not come from a server.
    #[error(
        "{owner} cannot own {child}: it has no kind, no name or no uid; take it as the server gave it"
    )]
    Unknown {
        /// The owner.
        owner: String,
        /// What it was to own.
        child: String,
    },
    /// The garbage collector would delete the child: it looks for the owner where the child is, and does not find it.
    #[error(
        "{owner} cannot own {child}: an owner is in the namespace of what it owns, or in none at all"
    )]
    OtherNamespace {
        /// The owner.
        owner: String,
        /// What it was to own.
        child: String,
    },
    /// Two controllers would work against each other.
    #[error("{owner} cannot control {child}: {by} does; only one owner may be the controller")]
    Controlled {
        /// The owner.
        owner: String,
        /// What it was to control.
        child: String,
        /// Kind and name of the controller it has.
        by: String,
    },
}

/// Makes `owner` the controller of `child`: [`Controller::owns`](crate::Controller::owns) then runs the owner when the child changes, and the child is deleted
/// after its owner.
///
/// Whoever deletes the owner in the foreground waits for the child (`blockOwnerDeletion`); where a server checks that
/// (`OwnerReferencesPermissionEnforcement`), the controller needs the right to update the owner's `finalizers`.
///
/// A reference of that owner that is there is brought up to date, others stay as they are. A child that has no namespace, of a kind that has them, gets its
/// owner's.
///
/// ```
/// # use boatswain::{OwnerError, own};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # fn f(deployment: &Deployment) -> Result<ConfigMap, OwnerError> {
/// let mut settings = ConfigMap::default();
/// settings.metadata.name = Some("settings".into());
/// own::control(deployment, &mut settings)?;
/// # Ok(settings)
/// # }
/// ```
///
/// # Errors
///
/// When the owner does not come from a server, is in another namespace, or when the child has another controller. The child is as it was then.
pub fn control<O, C>(owner: &O, child: &mut C) -> Result<(), OwnerError>
where
    O: Identified,
    C: Resource<DynamicType = ()> + 'static,
{
    refer(owner, child, true)
}

/// Makes `owner` one of the owners of `child`, which is deleted when it has none any more. As [`control`], without being its controller: a reference that says so
/// goes on saying it.
///
/// # Errors
///
/// When the owner does not come from a server or is in another namespace.
pub fn hold<O, C>(owner: &O, child: &mut C) -> Result<(), OwnerError>
where
    O: Identified,
    C: Resource<DynamicType = ()> + 'static,
{
    refer(owner, child, false)
}

fn refer<O, C>(owner: &O, child: &mut C, controls: bool) -> Result<(), OwnerError>
where
    O: Identified,
    C: Resource<DynamicType = ()> + 'static,
{
    let (parent, kid) = (named(owner), named(child));
    let ObjectReference {
        api_version: Some(api_version),
        kind: Some(kind),
        namespace: home,
        name: Some(name),
        uid: Some(uid),
        ..
    } = owner.identity()
    else {
        return Err(OwnerError::Unknown {
            owner: parent,
            child: kid,
        });
    };
    if home.is_some() {
        let adopts = child.meta().namespace.is_none() && Kind::of::<C>().namespaced;
        if !adopts && child.meta().namespace != home {
            return Err(OwnerError::OtherNamespace {
                owner: parent,
                child: kid,
            });
        }
    }
    let references = child.meta().owner_references.as_deref().unwrap_or_default();
    let other = references
        .iter()
        .find(|reference| reference.controller == Some(true) && reference.uid != uid);
    if let Some(other) = other.filter(|_| controls) {
        return Err(OwnerError::Controlled {
            owner: parent,
            child: kid,
            by: format!("{} {}", other.kind, other.name),
        });
    }
    let meta = child.meta_mut();
    if meta.namespace.is_none() && Kind::of::<C>().namespaced {
        meta.namespace = home;
    }
    let references = meta.owner_references.get_or_insert_default();
    let before = references.iter().position(|reference| reference.uid == uid);
    let controls = controls || before.is_some_and(|at| references[at].controller == Some(true));
    let reference = OwnerReference {
        api_version,
        kind,
        name,
        uid,
        controller: controls.then_some(true),
        block_owner_deletion: controls.then_some(true),
    };
    match before {
        Some(at) => references[at] = reference,
        None => references.push(reference),
    }
    Ok(())
}

/// An object as people name it.
fn named<K: Identified>(object: &K) -> String {
    let kind = object.identity().kind;
    let kind = kind.as_deref().unwrap_or("an object of unknown kind");
    format!("{kind} {}", key_of(object))
}

#[cfg(test)]
mod tests;
