//! A server that remembers everything it ever was.

use super::*;
use crate::object::{Meta, Recall, Uid};
use crate::store::body::Body;

pub(super) type Objects = BTreeMap<u8, Object>;

pub(super) struct Server {
    /// State by version, and the event that led to it.
    history: Vec<(Objects, Option<Delta>)>,
    /// What was before is forgotten.
    pub(super) floor: usize,
    uids: u64,
}

/// As if it had been read, but sooner.
fn object(id: u8, uid: u64, version: u64) -> Object {
    let meta = Meta {
        uid: Uid::from(uid.to_string().as_str()),
        resource_version: Version::new(&version.to_string()),
        generation: None,
        deletion_timestamp: None,
    };
    let body = Body::plain(format!("{{\"version\":{version},\"uid\":{uid}}}").into_bytes());
    Object::new(key(&format!("n{id}")), meta, body, Recall::Never)
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            history: vec![(Objects::new(), None)],
            floor: 0,
            uids: 0,
        }
    }

    pub(super) fn version(&self) -> usize {
        self.history.len() - 1
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.history[self.version()].0
    }

    pub(super) fn put(&mut self, id: u8) {
        let mut objects = self.objects().clone();
        let uid = match objects.get(&id) {
            Some(old) => old.meta().uid.to_string().parse().unwrap(),
            None => {
                self.uids += 1;
                self.uids
            }
        };
        let new = object(id, uid, self.version() as u64 + 1);
        objects.insert(id, new.clone());
        self.history.push((objects, Some(Delta::Seen(new))));
    }

    pub(super) fn delete(&mut self, id: u8) {
        let mut objects = self.objects().clone();
        if let Some(old) = objects.remove(&id) {
            let uid = old.meta().uid.to_string().parse().unwrap();
            let last = object(id, uid, self.version() as u64 + 1);
            let event = Delta::Gone {
                key: last.key().clone(),
                version: Some(last.meta().resource_version.clone()),
                last: Some(last),
            };
            self.history.push((objects, Some(event)));
        }
    }

    pub(super) fn compact(&mut self) {
        self.floor = self.version();
    }

    /// It is set back, and forgets what was before.
    pub(super) fn restore(&mut self, dice: &Entropy) {
        let to = dice.range(0..self.history.len() as u64) as usize;
        self.history.truncate(to + 1);
        self.floor = to;
    }

    /// What there was at a version, unless that is forgotten or yet to come.
    pub(super) fn items(&self, at: usize) -> Option<Vec<Object>> {
        let known = (self.floor..self.history.len()).contains(&at);
        known.then(|| self.history[at].0.values().cloned().collect())
    }

    /// What happened after one version until another.
    pub(super) fn events(&self, after: usize, until: usize) -> impl Iterator<Item = Delta> {
        let events = self.history.iter().take(until + 1).skip(after + 1);
        events.filter_map(|(_, event)| event.clone())
    }

    /// Whether something was deleted at this version.
    pub(super) fn ended_something(&self, at: usize) -> bool {
        let event = self.history.get(at).map(|(_, event)| event);
        matches!(event, Some(Some(Delta::Gone { .. })))
    }
}
