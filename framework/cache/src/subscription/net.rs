//! The difference between what a subscriber was told of a key and what is; pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::delta::Change;
use crate::envelope;
use crate::object::Object;

/// Endings of incarnations kept per key while a subscriber keeps failing; beyond it the oldest but the first are left out.
const MAX_ENDINGS: usize = 16;

#[derive(Clone)]
pub(super) struct Net {
    /// The subscriber was told of the incarnation that was there when the news began.
    heard: bool,
    /// The state of it that it was told last, for as long as it lasts.
    base: Option<Past>,
    /// Incarnations that ended since, with whether the state is the final one.
    ended: Vec<(Past, bool)>,
    now: Option<Object>,
    /// It was handed out before and may have been handled in part, so nothing of it may be left out.
    seen: bool,
}

/// A state that the store does not hold any more.
#[derive(Clone)]
struct Past {
    state: Object,
    is_thin: bool,
}

impl From<Object> for Past {
    fn from(state: Object) -> Self {
        Self {
            state,
            is_thin: false,
        }
    }
}

impl Net {
    pub(super) fn of(change: &Change) -> Self {
        let (heard, base, ended, now) = match change.clone() {
            Change::Created(new) => (false, None, Vec::new(), Some(new)),
            Change::Updated { old, new } => (true, Some(old.into()), Vec::new(), Some(new)),
            Change::Deleted { last, certain } => (true, None, vec![(last.into(), certain)], None),
        };
        Self {
            heard,
            base,
            ended,
            now,
            seen: false,
        }
    }

    /// What is to be told when `later` news come on top.
    pub(super) fn then(mut self, later: Self) -> Self {
        let unheard_of =
            self.now.is_some() && !self.seen && (!self.heard || !self.ended.is_empty());
        let skipped = usize::from(unheard_of && !later.ended.is_empty());
        self.ended.extend(later.ended.into_iter().skip(skipped));
        while self.ended.len() > MAX_ENDINGS {
            self.ended.remove(1);
        }
        if !self.ended.is_empty() {
            self.base = None;
        }
        self.now = later.now;
        self.seen |= later.seen;
        self
    }

    pub(super) fn was_seen(&mut self) {
        self.seen = true;
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.ended.is_empty() && self.now.is_none()
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        let ended = self.ended.iter().map(|(last, certain)| Change::Deleted {
            last: last.state.clone(),
            certain: *certain,
        });
        let now = self.now.clone().map(|new| match &self.base {
            Some(old) => Change::Updated {
                old: old.state.clone(),
                new,
            },
            None => Change::Created(new),
        });
        ended.chain(now).collect()
    }

    /// What it costs beyond the store, which holds the newest state anyway.
    pub(super) fn bytes(&self) -> usize {
        let version = |object: &Object| object.meta().resource_version.clone();
        let stored = self.now.as_ref().map(version);
        let base = self.base.iter();
        base.filter(|base| Some(version(&base.state)) != stored)
            .chain(self.ended.iter().map(|(past, _)| past))
            .map(|past| past.state.size())
            .sum()
    }

    /// Drops the insides of past states; returns of how many.
    pub(super) fn thin(&mut self) -> u64 {
        let past = self.base.iter_mut();
        let whole = past
            .chain(self.ended.iter_mut().map(|(past, _)| past))
            .filter(|past| !past.is_thin);
        whole
            .map(|past| {
                past.is_thin = true;
                past.state = thin(&past.state).unwrap_or_else(|| past.state.clone());
            })
            .count() as u64
    }
}

/// What is left of an object without its insides and annotations: enough to know who it was, what it was labelled and who owned it.
fn thin(object: &Object) -> Option<Object> {
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Thin<'a> {
        #[serde(borrow, skip_serializing_if = "Option::is_none")]
        api_version: Option<&'a RawValue>,
        #[serde(borrow, skip_serializing_if = "Option::is_none")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        metadata: BTreeMap<String, &'a RawValue>,
    }
    let json = object.json();
    let mut thin: Thin<'_> = serde_json::from_slice(&json).ok()?;
    thin.metadata.remove("annotations");
    let json = serde_json::to_vec(&thin).ok()?;
    envelope::open(&json).ok().map(Object::thinned)
}
