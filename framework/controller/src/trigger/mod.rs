//! From a change in a cache to the keys that must run: one trigger per watch of a controller.

mod actor;

use std::{error::Error, sync::Arc};

pub(crate) use actor::{Feed, Trigger};
use boatswain_cache::{Cause, Change, Key, Kind, Lister, Object};
use boatswain_workqueue::Lane;
use futures::future::BoxFuture;

use crate::reconcile::Causes;

/// How changes of one watched kind become keys of the controller's own kind.
#[derive(Clone)]
pub(crate) enum Mapping {
    /// The changed object is the controller's own.
    Own,
    /// Its controller, where that is of the controller's kind.
    Owner(Kind),
    /// The objects that name it at a path of theirs, in its namespace.
    ReferencedBy {
        path: &'static str,
        referrers: Referrers,
    },
    /// What a function of the author says.
    Mapped(Arc<dyn Mapper>),
}

/// Looks up which keys of the controller's own kind hold a value at an indexed path.
pub(crate) type Referrers = Arc<dyn Fn(&'static str, Option<&str>, &str) -> Vec<Key> + Send + Sync>;

/// A mapper with the watched kind erased.
pub(crate) trait Mapper: Send + Sync {
    fn map(&self, object: Object) -> BoxFuture<'static, Result<Vec<Key>, MapError>>;
}

/// A mapper could not say which keys a change concerns; it is asked again.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct MapError(Box<dyn Error + Send + Sync>);

impl MapError {
    pub(crate) fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

impl Mapping {
    /// The keys `change` concerns. Old and new state are both asked, so that a changed owner or reference reaches either side.
    pub(crate) async fn keys(&self, change: &Change) -> Result<Vec<Key>, MapError> {
        let mut keys = Vec::new();
        for object in change.old().into_iter().chain(change.new()) {
            match self {
                Self::Own => keys.push(object.key().clone()),
                Self::Owner(kind) => keys.extend(controller_key(object, kind)),
                Self::ReferencedBy { path, referrers } => {
                    keys.extend(referrers(
                        path,
                        object.key().namespace(),
                        object.key().name(),
                    ));
                }
                Self::Mapped(mapper) => keys.extend(mapper.map(object.clone()).await?),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    pub(crate) fn causes(&self, change: &Change, cause: Cause) -> Causes {
        let what = match (self, change) {
            (Self::Own, Change::Created(_)) => Causes::CREATED,
            (Self::Own, Change::Updated { .. }) => Causes::UPDATED,
            (Self::Own, Change::Deleted { .. }) => Causes::DELETED,
            (Self::Owner(_), _) => Causes::OWNED,
            _ => Causes::WATCHED,
        };
        if matches!(cause, Cause::Initial) {
            what.and(Causes::INITIAL)
        } else {
            what
        }
    }
}

/// Fresh changes overtake what merely was there when we came.
pub(crate) fn lane(cause: Cause) -> Lane {
    match cause {
        Cause::Watch | Cause::Relist => Lane::Normal,
        Cause::Initial | Cause::Resync => Lane::Low,
    }
}

/// The key of the object's controller (the owner reference with `controller: true`) if that is a `kind` by group and kind.
fn controller_key(object: &Object, kind: &Kind) -> Option<Key> {
    let owner = object
        .owner_refs()
        .into_iter()
        .find(|owner| owner.controller)?;
    let group = owner
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    (owner.kind == kind.kind && group == kind.group).then(|| {
        let namespace = if kind.namespaced {
            object.key().namespace()
        } else {
            None
        };
        Key::new(namespace, &owner.name)
    })
}

/// A typed, fallible, async function as a [`Mapper`].
pub(crate) struct FnMapper<W, P, F> {
    map: F,
    reader: Lister<P>,
    _watched: std::marker::PhantomData<fn(W)>,
}

impl<W, P, F> FnMapper<W, P, F> {
    pub(crate) fn new(map: F, reader: Lister<P>) -> Self {
        Self {
            map,
            reader,
            _watched: std::marker::PhantomData,
        }
    }
}

impl<W, P, F, E, Fut> Mapper for FnMapper<W, P, F>
where
    W: serde::de::DeserializeOwned + Send + Sync + 'static,
    P: Send + Sync + 'static,
    F: Fn(Arc<W>, Lister<P>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Vec<Key>, E>> + Send + 'static,
    E: Error + Send + Sync + 'static,
{
    fn map(&self, object: Object) -> BoxFuture<'static, Result<Vec<Key>, MapError>> {
        let mapped = object
            .decode::<W>()
            .map(|object| (self.map)(object, self.reader.clone()));
        Box::pin(async move { mapped.map_err(MapError::new)?.await.map_err(MapError::new) })
    }
}
