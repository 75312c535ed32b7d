//! What is told of objects: deltas on the way into the store, changes on the way out of it.

use std::fmt;

use crate::key::Key;
use crate::object::Object;
use crate::version::Version;

/// News of one key on its way from the server to the store.
#[derive(Clone, Debug)]
pub(crate) enum Delta {
    /// The object is in this state, says a watch.
    Seen(Object),
    /// The object is in this state, says the list that is being read.
    Listed(Object),
    /// The object was deleted.
    Gone {
        /// Its key.
        key: Key,
        /// Its final state, unless that could not be read.
        last: Option<Object>,
        /// When it was deleted, if that could be read.
        version: Option<Version>,
    },
    /// The object is in a state that cannot be read.
    Unreadable {
        /// Its key.
        key: Key,
        /// The version of that state, if it could be read.
        version: Option<Version>,
        /// What is wrong with it; quotes no value.
        reason: String,
    },
}

impl Delta {
    /// Which key this is about.
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Seen(object) | Self::Listed(object) => object.key(),
            Self::Gone { key, .. } | Self::Unreadable { key, .. } => key,
        }
    }

    /// When it happened in the server's history, if that is known.
    pub(crate) fn version(&self) -> Option<&Version> {
        match self {
            Self::Seen(object) | Self::Listed(object) => Some(&object.meta().resource_version),
            Self::Gone { version, .. } | Self::Unreadable { version, .. } => version.as_ref(),
        }
    }
}

/// How much a state counts against what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// From a watch or out of a cache: nothing where something newer is known.
    #[default]
    Cached,
    /// From a list by quorum: it is right even where it is older.
    Quorum,
    /// From a list by quorum of a server that was set back. It uses versions a second time, so not even equal versions mean equal states.
    Restored,
}

impl Trust {
    pub(crate) fn is_final(self) -> bool {
        self >= Self::Quorum
    }
}

/// What happened to one key of the store.
#[derive(Clone)]
pub enum Change {
    /// The key came into being.
    Created(Object),
    /// The same incarnation is in another state.
    Updated {
        /// The state the subscriber was told of before.
        old: Object,
        /// The state now.
        new: Object,
    },
    /// The incarnation is gone.
    Deleted {
        /// The last state known of it.
        last: Object,
        /// Whether `last` is its final state. It is not when the deletion itself was missed, for instance while the server was not reachable.
        certain: bool,
    },
}

impl Change {
    /// Which key changed.
    #[must_use]
    pub fn key(&self) -> &Key {
        self.latest().key()
    }

    /// The newest state known of the key: after a deletion the last one before it.
    #[must_use]
    pub fn latest(&self) -> &Object {
        match self {
            Self::Created(object)
            | Self::Updated { new: object, .. }
            | Self::Deleted { last: object, .. } => object,
        }
    }

    /// The state after the change; `None` after a deletion.
    #[must_use]
    #[expect(clippy::new_ret_no_self, reason = "the state after, beside `old`")]
    pub fn new(&self) -> Option<&Object> {
        match self {
            Self::Created(new) | Self::Updated { new, .. } => Some(new),
            Self::Deleted { .. } => None,
        }
    }

    /// The last state before the change; `None` before a creation.
    #[must_use]
    pub fn old(&self) -> Option<&Object> {
        match self {
            Self::Created(_) => None,
            Self::Updated { old, .. } | Self::Deleted { last: old, .. } => Some(old),
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(new) => write!(f, "created {new:?}"),
            Self::Updated { old, new } => {
                write!(f, "updated {new:?} from {}", old.meta().resource_version)
            }
            Self::Deleted {
                last,
                certain: true,
            } => write!(f, "deleted {last:?}"),
            Self::Deleted {
                last,
                certain: false,
            } => write!(f, "vanished {last:?}"),
        }
    }
}

/// Why a subscriber hears of a change. Where several changes became one, the cause of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The object was there when the cache or the subscription began.
    Initial,
    /// The server reported it as it happened.
    Watch,
    /// A later list differed from the store.
    Relist,
    /// Nothing changed; the subscriber asked to hear of everything again.
    Resync,
    /// The object is no longer mirrored, because its informer was removed from the view; it may well exist.
    OutOfScope,
}
