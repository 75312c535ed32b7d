//! From a change in a cache to the keys that must run: one trigger per watch of a controller.

mod actor;
mod asking;
mod guard;
mod hand;
mod resync;
mod sieve;
mod source;
mod unmapped;

use std::{error::Error, future::ready, sync::Arc};

use actor::hand_out;
pub(crate) use actor::{Feed, Trigger};
use boatswain_cache::{Cause, Change, Key, Lister, Object, Reference};
use boatswain_workqueue::Lane;
use futures::future::BoxFuture;
pub(crate) use guard::guarded;
pub(crate) use hand::Quarantine;
pub use source::{Full, Sender, Source, channel};
pub(crate) use source::{Origin, SourceActor, Spring};

use crate::reconcile::Causes;

/// How changes of one watched kind become keys of the controller's own kind.
#[derive(Clone)]
pub(crate) enum Mapping {
    /// The changed object is the controller's own.
    Own,
    /// The objects of the controller's kind that it names: its owners, or by a label, an annotation or a field.
    Named(Reference),
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
    /// The keys `change` concerns; `None` where it takes the author's mapper to say, or where the author's part in it panicked: then it is
    /// to be [asked](Self::ask). Old and new state both count, so that a changed owner or reference reaches either side.
    fn keys(&self, change: &Change) -> Option<Vec<Key>> {
        let mut keys: Vec<_> = match self {
            Self::Own => vec![change.key().clone()],
            // a reference may look at what is stored by a function of the author
            Self::Named(reference) => guarded(|| reference.keys_of(change)).ok()?,
            Self::ReferencedBy { path, referrers } => {
                let key = change.key();
                referrers(path, key.namespace(), key.name())
            }
            Self::Mapped(_) => return None,
        };
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }

    /// The keys that one state of a changed object concerns. It may panic, and so may the future.
    fn ask(&self, state: Object) -> BoxFuture<'static, Result<Vec<Key>, MapError>> {
        let keys = match self {
            Self::Own => vec![state.key().clone()],
            Self::Named(reference) => reference.keys(&state),
            Self::ReferencedBy { path, referrers } => {
                referrers(path, state.key().namespace(), state.key().name())
            }
            Self::Mapped(mapper) => return mapper.map(state),
        };
        Box::pin(ready(Ok(keys)))
    }

    pub(crate) fn causes(&self, change: &Change, cause: Cause) -> Causes {
        let what = match (self, change) {
            (Self::Own, Change::Created(_)) => Causes::CREATED,
            (Self::Own, Change::Updated { .. }) => Causes::UPDATED,
            (Self::Own, Change::Deleted { .. }) => Causes::DELETED,
            (Self::Named(reference), _) if reference.is_owner() => Causes::OWNED,
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
        Cause::Watch | Cause::Relist | Cause::OutOfScope => Lane::Normal,
        Cause::Initial | Cause::Resync => Lane::Low,
    }
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
        match object.decode::<W>() {
            Ok(object) => {
                let keys = (self.map)(object, self.reader.clone());
                Box::pin(async move { keys.await.map_err(MapError::new) })
            }
            // it says nothing to the mapper, however often it is asked; the state before or after it may
            Err(error) => {
                tracing::warn!("cannot be mapped to keys: {error}");
                Box::pin(ready(Ok(vec![])))
            }
        }
    }
}

#[cfg(test)]
mod tests;
