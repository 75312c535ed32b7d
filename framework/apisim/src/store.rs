//! The objects, and the one counter that orders all writes to them.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use crate::{
    gc::Owners,
    history::{Change, Expired, History},
    model::object::{Body, Collection, Key, Object},
};

/// What a writer requires of the object it replaces or removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precondition {
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
}

/// Why a write was not committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the object exists already")]
    Exists,
    #[error("the object does not exist")]
    Absent,
    #[error("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")]
    OtherUid { wanted: String, found: String },
    #[error(
        "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {found}"
    )]
    OtherVersion { wanted: String, found: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) objects: BTreeMap<Key, Arc<Object>>,
    pub(crate) history: History,
}

/// All collections.
///
/// Invariants: 1. `version` rises by one with every committed write, whatever the collection; 2. the version of an
/// object is the version of the write that made it; 3. every committed write is in the history of its collection.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    version: u64,
    compacted: u64,
    window: usize,
    tables: BTreeMap<Collection, Table>,
    touched: Vec<Collection>,
    pub(crate) owners: Owners,
}

impl Store {
    /// An empty store whose histories hold `window` changes per collection.
    pub(crate) fn new(window: usize) -> Self {
        Self {
            version: 1,
            compacted: 0,
            window,
            tables: BTreeMap::new(),
            touched: Vec::new(),
            owners: Owners::default(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn table(&self, collection: &Collection) -> Option<&Table> {
        self.tables.get(collection)
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = &Collection> {
        self.tables.keys()
    }

    pub(crate) fn get(&self, collection: &Collection, key: &Key) -> Option<&Arc<Object>> {
        self.tables.get(collection)?.objects.get(key)
    }

    pub(crate) fn len(&self, collection: &Collection) -> usize {
        self.tables
            .get(collection)
            .map_or(0, |table| table.objects.len())
    }

    /// Objects of a collection, of one namespace unless it is empty.
    pub(crate) fn scan(
        &self,
        collection: &Collection,
        namespace: &str,
    ) -> impl Iterator<Item = &Arc<Object>> {
        self.tables
            .get(collection)
            .into_iter()
            .flat_map(move |table| scope(&table.objects, namespace))
    }

    /// The objects after `after` as they were at `version`, in order.
    ///
    /// # Errors
    /// [`Expired`] when the state at that version can no longer be told.
    pub(crate) fn at(
        &self,
        collection: &Collection,
        namespace: &str,
        version: u64,
        after: Option<&Key>,
    ) -> Result<Vec<Arc<Object>>, Expired> {
        self.reaches(version)?;
        let Some(table) = self.tables.get(collection) else {
            return Ok(Vec::new());
        };
        let undo = table.history.undo(version)?;
        let later = |key: &&Key| after.is_none_or(|after| *key > after);
        let mut found: Vec<Arc<Object>> = scope(&table.objects, namespace)
            .filter(|object| later(&&object.key) && !undo.contains_key(&object.key))
            .cloned()
            .collect();
        let undone = undo
            .iter()
            .filter(|(key, _)| namespace.is_empty() || key.namespace == namespace);
        let before = found.len();
        found.extend(
            undone
                .filter(|(key, _)| later(key))
                .filter_map(|(_, old)| old.clone()),
        );
        if found.len() > before {
            found.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Ok(found)
    }

    /// Adds an object.
    ///
    /// # Errors
    /// [`Refusal::Exists`].
    pub(crate) fn insert(
        &mut self,
        collection: &Collection,
        key: Key,
        body: Body,
    ) -> Result<Arc<Object>, Refusal> {
        if self.get(collection, &key).is_some() {
            return Err(Refusal::Exists);
        }
        Ok(self.commit(collection, None, key, body, false))
    }

    /// Replaces an object; a body equal to the stored one is not a write and returns the stored object.
    ///
    /// # Errors
    /// [`Refusal::Absent`], or a precondition that does not hold.
    pub(crate) fn replace(
        &mut self,
        collection: &Collection,
        key: &Key,
        require: &Precondition,
        mut body: Body,
    ) -> Result<Arc<Object>, Refusal> {
        let old = self.require(collection, key, require)?;
        let version = old.version.to_string();
        crate::model::object::meta_mut(&mut body).insert("resourceVersion".into(), version.into());
        if body == old.body {
            return Ok(old);
        }
        Ok(self.commit(collection, Some(old), key.clone(), body, false))
    }

    /// Removes an object whose last state is `last`, and returns that at the version of the removal.
    ///
    /// # Errors
    /// [`Refusal::Absent`], or a precondition that does not hold.
    pub(crate) fn remove(
        &mut self,
        collection: &Collection,
        key: &Key,
        require: &Precondition,
        last: Body,
    ) -> Result<Arc<Object>, Refusal> {
        let old = self.require(collection, key, require)?;
        Ok(self.commit(collection, Some(old), key.clone(), last, true))
    }

    /// The current object, if it meets the precondition.
    ///
    /// # Errors
    /// [`Refusal::Absent`], or the part that does not hold.
    pub(crate) fn require(
        &self,
        collection: &Collection,
        key: &Key,
        require: &Precondition,
    ) -> Result<Arc<Object>, Refusal> {
        let old = self.get(collection, key).cloned().ok_or(Refusal::Absent)?;
        if let Some(wanted) = require.uid.as_ref().filter(|uid| *uid != old.uid()) {
            return Err(Refusal::OtherUid {
                wanted: wanted.clone(),
                found: old.uid().into(),
            });
        }
        if let Some(wanted) = require
            .version
            .as_ref()
            .filter(|version| **version != old.version.to_string())
        {
            return Err(Refusal::OtherVersion {
                wanted: wanted.clone(),
                found: old.version,
            });
        }
        Ok(old)
    }

    /// Whether a version was not compacted away, so that a reader may start from it.
    ///
    /// # Errors
    /// [`Expired`] if it was.
    pub(crate) fn reaches(&self, version: u64) -> Result<(), Expired> {
        match version < self.compacted {
            true => Err(Expired {
                asked: version,
                oldest: self.compacted,
            }),
            false => Ok(()),
        }
    }

    /// Forgets all changes up to now: watches and continue tokens from older versions expire.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
        for table in self.tables.values_mut() {
            table.history.compact(self.version);
        }
    }

    /// The collections written to since this was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<Collection> {
        std::mem::take(&mut self.touched)
    }

    fn commit(
        &mut self,
        collection: &Collection,
        old: Option<Arc<Object>>,
        key: Key,
        body: Body,
        deleted: bool,
    ) -> Arc<Object> {
        self.version += 1;
        let new = Arc::new(Object::new(key, self.version, body));
        let window = self.window;
        let table = self
            .tables
            .entry(collection.clone())
            .or_insert_with(|| Table {
                objects: BTreeMap::new(),
                history: History::new(window),
            });
        match deleted {
            true => table.objects.remove(&new.key),
            false => table.objects.insert(new.key.clone(), new.clone()),
        };
        self.owners
            .observe(collection, old.as_deref(), (!deleted).then_some(&*new));
        let version = self.version;
        if !self.touched.contains(collection) {
            self.touched.push(collection.clone());
        }
        table.history.push(Change {
            version,
            old,
            new: new.clone(),
            deleted,
            line: OnceLock::new(),
        });
        new
    }
}

fn scope<'a>(
    objects: &'a BTreeMap<Key, Arc<Object>>,
    namespace: &str,
) -> impl Iterator<Item = &'a Arc<Object>> {
    let bounds = match namespace {
        "" => (Bound::Unbounded, Bound::Unbounded),
        // no name contains a character below '0' other than '-' and '.', so this is the first key after the namespace
        namespace => (
            Bound::Included(Key::new(namespace, "")),
            Bound::Excluded(Key::new(&format!("{namespace}\0"), "")),
        ),
    };
    objects.range(bounds).map(|(_, object)| object)
}

#[cfg(test)]
mod tests;
