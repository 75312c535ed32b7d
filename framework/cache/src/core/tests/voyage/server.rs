//! A server that remembers everything it ever was.

use super::*;

pub(super) type Objects = BTreeMap<u8, Object>;

pub(super) struct Server {
    /// State by version, and the event that led to it.
    history: Vec<(Objects, Option<Delta>)>,
    /// What was before is forgotten.
    pub(super) floor: usize,
    uids: u64,
}

fn name(id: u8) -> String {
    format!("n{id}")
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
        let new = object(&name(id), uid, self.version() as u64 + 1);
        objects.insert(id, new.clone());
        self.history.push((objects, Some(Delta::Seen(new))));
    }

    pub(super) fn delete(&mut self, id: u8) {
        let mut objects = self.objects().clone();
        if let Some(old) = objects.remove(&id) {
            let uid = old.meta().uid.to_string().parse().unwrap();
            let event = gone(&name(id), uid, self.version() as u64 + 1);
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
