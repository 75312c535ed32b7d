//! Watches the store and listens as a subscriber, and knows what neither may do.

use super::*;

pub(super) struct Witness {
    subscription: Subscription,
    told: BTreeMap<Key, Object>,
    /// Keys by the newest version of them that ever was in the store.
    newest: BTreeMap<Key, usize>,
    /// Incarnations that were told of, acknowledged or not.
    begun: BTreeSet<String>,
    /// Incarnations whose end was told.
    ended: BTreeSet<String>,
    /// The server uses versions a second time: their order means nothing.
    went_back: bool,
}

fn uid(object: &Object) -> String {
    object.meta().uid.to_string()
}

impl Witness {
    pub(super) fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            told: BTreeMap::new(),
            newest: BTreeMap::new(),
            begun: BTreeSet::new(),
            ended: BTreeSet::new(),
            went_back: false,
        }
    }

    pub(super) fn server_went_back(&mut self) {
        self.went_back = true;
    }

    /// Looks whether the store went back in time.
    pub(super) fn look(&mut self, core: &InformerCore) {
        if self.went_back {
            return;
        }
        for object in core.reader().list(None) {
            let version = number(&object.meta().resource_version);
            let newest = self.newest.entry(object.key().clone()).or_default();
            assert!(version >= *newest, "{object:?} after {newest}");
            *newest = version;
        }
    }

    pub(super) fn hear(&mut self, max: usize, ack: bool, server: &Server) {
        let Some(batch) = self.subscription.take(max) else {
            return;
        };
        let news = batch
            .changes()
            .iter()
            .filter_map(|(change, _)| change.new());
        self.begun.extend(news.map(uid));
        if !ack {
            return self.subscription.nack(batch);
        }
        for (change, _) in batch.changes() {
            self.follows(change);
            match change {
                Change::Created(new) | Change::Updated { new, .. } => {
                    if self.went_back {
                        // what had ended may be there again
                        self.ended.remove(&uid(new));
                    }
                    assert!(!self.ended.contains(&uid(new)), "{change:?} after its end");
                    self.told.insert(new.key().clone(), new.clone());
                }
                Change::Deleted { last, certain } => {
                    assert!(self.ended.insert(uid(last)), "{change:?} told twice");
                    let at = number(&last.meta().resource_version);
                    if *certain && !self.went_back {
                        assert!(
                            server.ended_something(at),
                            "{change:?} is not the final state"
                        );
                    }
                    self.told.remove(change.key());
                }
            }
        }
        batch.ack();
    }

    /// Whether a change follows from what was told before.
    fn follows(&self, change: &Change) {
        let known = self.told.get(change.key());
        let follows = match (change, known) {
            (Change::Created(_), known) => known.is_none(),
            (Change::Updated { .. }, None) => false,
            (Change::Updated { old, new }, Some(known)) => {
                let (before, after) = (&old.meta().resource_version, &new.meta().resource_version);
                known.is_same_state(old)
                    && uid(old) == uid(new)
                    && (self.went_back || before.is_before(after))
            }
            // it was handed out, not acknowledged and then ended: it may have been handled
            (Change::Deleted { .. }, None) => true,
            (Change::Deleted { last, .. }, Some(known)) => {
                let (before, after) = (
                    &known.meta().resource_version,
                    &last.meta().resource_version,
                );
                uid(last) == uid(known) && (self.went_back || !after.is_before(before))
            }
        };
        assert!(follows, "{change:?} after {known:?}");
    }

    pub(super) fn end(mut self, core: &InformerCore, server: &Server) {
        let text = |object: &Object| format!("{object:?} {}", uid(object));
        let expected: Vec<_> = server.objects().values().map(text).collect();
        let stored: Vec<_> = core.reader().list(None).iter().map(text).collect();
        assert_eq!(stored, expected, "the store is not as the server");
        self.hear(usize::MAX, true, server);
        self.hear(usize::MAX, true, server);
        let told: Vec<_> = self.told.values().map(text).collect();
        assert_eq!(
            told, expected,
            "the subscriber does not know what the server has"
        );
        let alive: BTreeSet<_> = server.objects().values().map(uid).collect();
        let mut over = self.begun.difference(&alive);
        assert!(
            over.all(|uid| self.ended.contains(uid)),
            "{:?} began, {:?} ended",
            self.begun,
            self.ended
        );
        assert!(self.subscription.depth() == 0 && self.subscription.initial() == 0);
        assert_eq!(core.status(std_now()).counters.unidentified, 0);
    }
}
