//! Which other objects an object names.

use std::fmt;
use std::sync::Arc;

use crate::delta::Change;
use crate::key::Key;
use crate::kind::Kind;
use crate::object::{Object, Path, Uid};

#[cfg(test)]
mod tests;

/// How objects of one kind name objects of another: as owner, in a label, in an annotation, at a path. It is read from the bytes; nothing is decoded. A
/// clone costs one reference count.
///
/// A value is the name of an object in the referrer's own namespace, or `namespace/name` where labels, annotations and fields can hold that; of a kind without
/// namespaces it is the name. What can be no key names nobody.
#[derive(Clone)]
pub struct Reference {
    to: Kind,
    by: By,
    stored: Option<Arc<Stored>>,
}

type Stored = dyn Fn(&Key) -> Option<Uid> + Send + Sync;

#[derive(Clone)]
enum By {
    Owner { controller: bool },
    Label(Arc<str>),
    Annotation(Arc<str>),
    Path(Path),
}

impl Reference {
    /// To the one owner that manages the object (`controller: true`). Group and kind count, the version the owner was named with does not.
    #[must_use]
    pub fn to_controller(kind: Kind) -> Self {
        Self::new(kind, By::Owner { controller: true })
    }

    /// To every owner of this group and kind.
    #[must_use]
    pub fn to_owners(kind: Kind) -> Self {
        Self::new(kind, By::Owner { controller: false })
    }

    /// By the value of a label.
    #[must_use]
    pub fn by_label(kind: Kind, label: &str) -> Self {
        Self::new(kind, By::Label(label.into()))
    }

    /// By the value of an annotation.
    #[must_use]
    pub fn by_annotation(kind: Kind, annotation: &str) -> Self {
        Self::new(kind, By::Annotation(annotation.into()))
    }

    /// By the values at a path such as `spec.volumes[*].configMap.name`; see [`Path`] for the notation.
    #[must_use]
    pub fn by_path(kind: Kind, path: &str) -> Self {
        Self::new(kind, By::Path(Path::new(path)))
    }

    /// Compares the uid an owner was named with: an owner of which `stored` knows another incarnation is not meant. One that it does not know, because it is
    /// not in the cache yet for instance, is. Without effect on references that carry no uid.
    #[must_use]
    pub fn of_incarnation(
        mut self,
        stored: impl Fn(&Key) -> Option<Uid> + Send + Sync + 'static,
    ) -> Self {
        self.stored = Some(Arc::new(stored));
        self
    }

    fn new(to: Kind, by: By) -> Self {
        Self {
            to,
            by,
            stored: None,
        }
    }

    /// The kind that is named.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.to
    }

    /// Whether it is by owner references that objects are named.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        matches!(self.by, By::Owner { .. })
    }

    /// The keys that `object` names, sorted, each once.
    #[must_use]
    pub fn keys(&self, object: &Object) -> Vec<Key> {
        let mut keys = self.named(object);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The keys that a change concerns, sorted, each once: those named before it and those named after it, so that a changed reference reaches either side.
    #[must_use]
    pub fn keys_of(&self, change: &Change) -> Vec<Key> {
        let states = change.old().into_iter().chain(change.new());
        let mut keys: Vec<_> = states.flat_map(|state| self.named(state)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn named(&self, object: &Object) -> Vec<Key> {
        match &self.by {
            By::Owner { controller } => self.owners(object, *controller),
            By::Label(label) => self.all(object, object.labels().remove(&**label)),
            By::Annotation(name) => self.all(object, object.annotations().remove(&**name)),
            By::Path(path) => self.all(object, object.values(path)),
        }
    }

    fn owners(&self, object: &Object, controller: bool) -> Vec<Key> {
        let owners = object.owner_refs().into_iter().filter(|owner| {
            let group = owner
                .api_version
                .split_once('/')
                .map_or("", |(group, _)| group);
            (owner.controller || !controller)
                && owner.kind == self.to.kind
                && group == self.to.group
                && !owner.name.is_empty()
        });
        let keys = owners.filter_map(|owner| {
            let key = self.key(object, &owner.name)?;
            let stored = self.stored.as_ref().and_then(|stored| stored(&key));
            stored
                .is_none_or(|uid| uid == Uid::from(owner.uid.as_str()))
                .then_some(key)
        });
        keys.collect()
    }

    fn all(&self, object: &Object, values: impl IntoIterator<Item = String>) -> Vec<Key> {
        values
            .into_iter()
            .filter_map(|value| match value.split_once('/') {
                Some(_) if self.to.namespaced => Key::parse(&value).ok(),
                Some(_) => None,
                None => self.key(object, &value),
            })
            .collect()
    }

    /// The object of this name next to `object`.
    fn key(&self, object: &Object, name: &str) -> Option<Key> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        if !self.to.namespaced {
            return Some(Key::new(None, name));
        }
        // an object without namespace cannot name one in a namespace by its name alone
        let namespace = object.key().namespace()?;
        Some(Key::new(Some(namespace), name))
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            By::Owner { controller: true } => write!(f, "controller of kind {}", self.to),
            By::Owner { controller: false } => write!(f, "owners of kind {}", self.to),
            By::Label(label) => write!(f, "{} by label {label}", self.to),
            By::Annotation(name) => write!(f, "{} by annotation {name}", self.to),
            By::Path(path) => write!(f, "{} by {path:?}", self.to),
        }
    }
}
