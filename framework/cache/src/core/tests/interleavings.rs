//! Whatever happens in whatever order, the store ends as the server, and a subscriber hears of every incarnation's life once and in order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Subscription;

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    /// The watch tells the next events.
    Deliver(usize),
    /// The watch tells some of the last events again, as a server may that was resumed at an earlier version.
    Repeat {
        back: usize,
        count: usize,
    },
    ListBegin {
        quorum: bool,
        lag: usize,
    },
    ListItems(usize),
    ListEnd,
    ListAbort,
    Pop(usize),
    /// The indexer dies with a batch in hand, before or after it committed some of it.
    IndexerDies {
        max: usize,
        done: usize,
    },
    ReflectorDies,
    FifoDies,
    Take {
        max: usize,
        ack: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let name = 0_u8..5;
    prop_oneof![
        6 => name.clone().prop_map(Op::Put),
        3 => name.prop_map(Op::Delete),
        5 => (1_usize..4).prop_map(Op::Deliver),
        2 => (1_usize..6, 1_usize..6).prop_map(|(back, count)| Op::Repeat { back, count }),
        1 => (any::<bool>(), 0_usize..5).prop_map(|(quorum, lag)| Op::ListBegin { quorum, lag }),
        2 => (1_usize..4).prop_map(Op::ListItems),
        1 => Just(Op::ListEnd),
        1 => Just(Op::ListAbort),
        5 => (1_usize..4).prop_map(Op::Pop),
        1 => (1_usize..4, 0_usize..4).prop_map(|(max, done)| Op::IndexerDies { max, done }),
        1 => Just(Op::ReflectorDies),
        1 => Just(Op::FifoDies),
        3 => (1_usize..4, prop::bool::weighted(0.8)).prop_map(|(max, ack)| Op::Take { max, ack }),
    ]
}

type Objects = BTreeMap<u8, Object>;

struct Model {
    /// The server: its state and event by version.
    history: Vec<(Objects, Option<Delta>)>,
    uids: u64,
    core: Arc<InformerCore>,
    fifo: Fifo<Permit>,
    /// The reflector: what it handed over, and the list it is reading.
    version: Option<usize>,
    list: Option<(usize, Vec<Object>)>,
    subscription: Subscription,
    told: BTreeMap<Key, Object>,
    /// Keys by the newest version of them that ever was in the store.
    newest: BTreeMap<Key, u64>,
    /// Incarnations that were told of, acknowledged or not.
    begun: BTreeSet<String>,
    /// Incarnations whose end was told.
    ended: BTreeSet<String>,
}

impl Model {
    fn new() -> Self {
        let core = core();
        Self {
            history: vec![(Objects::new(), None)],
            uids: 0,
            fifo: Fifo::new(None, 0),
            version: None,
            list: None,
            subscription: core.subscribe("test", || {}),
            told: BTreeMap::new(),
            newest: BTreeMap::new(),
            begun: BTreeSet::new(),
            ended: BTreeSet::new(),
            core,
        }
    }

    fn server(&self) -> (usize, &Objects) {
        (
            self.history.len() - 1,
            &self.history[self.history.len() - 1].0,
        )
    }

    fn name(id: u8) -> String {
        format!("n{id}")
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Put(id) => {
                let (version, objects) = self.server();
                let mut objects = objects.clone();
                let version = version as u64 + 1;
                let uid = match objects.get(&id) {
                    Some(old) => old.meta().uid.to_string().parse().unwrap(),
                    None => {
                        self.uids += 1;
                        self.uids
                    }
                };
                let new = object(&Self::name(id), uid, version);
                objects.insert(id, new.clone());
                self.history.push((objects, Some(Delta::Seen(new))));
            }
            Op::Delete(id) => {
                let (version, objects) = self.server();
                let mut objects = objects.clone();
                if let Some(old) = objects.remove(&id) {
                    let uid = old.meta().uid.to_string().parse().unwrap();
                    self.history.push((
                        objects,
                        Some(gone(&Self::name(id), uid, version as u64 + 1)),
                    ));
                }
            }
            Op::Deliver(count) => {
                if let (Some(version), None) = (self.version, &self.list) {
                    let until = (version + count).min(self.server().0);
                    self.deliver(version, until);
                    self.version = Some(until);
                }
            }
            Op::Repeat { back, count } => {
                if let (Some(version), None) = (self.version, &self.list) {
                    let after = version.saturating_sub(back);
                    self.deliver(after, (after + count).min(version));
                }
            }
            Op::ListBegin { quorum, lag } => {
                let latest = self.server().0;
                let at = if quorum {
                    latest
                } else {
                    latest.saturating_sub(lag).max(self.version.unwrap_or(0))
                };
                let cause = if self.core.synced() {
                    Cause::Relist
                } else {
                    Cause::Initial
                };
                self.fifo.replace_begin(Replace::new(
                    self.core.next_epoch(),
                    if quorum { Trust::Quorum } else { Trust::Cached },
                    cause,
                ));
                self.list = Some((at, self.history[at].0.values().cloned().collect()));
            }
            Op::ListItems(count) => {
                if let Some((_, items)) = &mut self.list {
                    for item in items.drain(..count.min(items.len())) {
                        self.fifo.push(Delta::Listed(item), None);
                    }
                }
            }
            Op::ListEnd => {
                self.step(&Op::ListItems(usize::MAX));
                if let Some((at, _)) = self.list.take() {
                    self.fifo.replace_end(Version::new(&at.to_string()), true);
                    self.version = Some(at);
                }
            }
            Op::ListAbort => {
                if self.list.take().is_some() {
                    self.fifo.replace_abort();
                }
            }
            Op::Pop(max) => {
                if let Some(batch) = self.fifo.pop(max) {
                    self.core.hand_over(batch);
                    self.core.commit_in_hand();
                    self.never_back_in_time();
                }
            }
            Op::IndexerDies { max, done } => {
                if let Some(batch) = self.fifo.pop(max) {
                    self.core.hand_over(batch);
                    {
                        let mut hand = super::super::lock(&self.core.hand);
                        let in_hand = hand.as_mut().unwrap();
                        in_hand.begun = 1;
                        let done = done.min(in_hand.batch.steps.len());
                        self.core.commit(&in_hand.batch.steps[..done], None);
                    }
                    self.core.commit_in_hand();
                    self.never_back_in_time();
                    self.reflector_resumes();
                }
            }
            Op::ReflectorDies => self.reflector_resumes(),
            Op::FifoDies => {
                self.fifo = Fifo::new(self.core.low_water(), self.core.epoch());
                self.list = None;
                self.version = self
                    .core
                    .low_water()
                    .map(|version| version.to_string().parse().unwrap());
            }
            Op::Take { max, ack } => self.hear(max, ack),
        }
    }

    fn deliver(&mut self, after: usize, until: usize) {
        for (_, event) in &self.history[after + 1..=until] {
            self.fifo.push(event.clone().unwrap(), None);
        }
    }

    fn reflector_resumes(&mut self) {
        self.list = None;
        self.version = self
            .fifo
            .resume()
            .0
            .map(|version| version.to_string().parse().unwrap());
    }

    fn never_back_in_time(&mut self) {
        for object in self.core.reader().list(None) {
            let version: u64 = object.meta().resource_version.to_string().parse().unwrap();
            let newest = self.newest.entry(object.key().clone()).or_default();
            assert!(version >= *newest, "{object:?} after {newest}");
            *newest = version;
        }
    }

    fn hear(&mut self, max: usize, ack: bool) {
        let Some(batch) = self.subscription.take(max) else {
            return;
        };
        self.begun.extend(
            batch
                .changes()
                .iter()
                .filter_map(|(change, _)| change.new())
                .map(|new| new.meta().uid.to_string()),
        );
        if !ack {
            return self.subscription.nack(batch);
        }
        for (change, _) in batch.changes() {
            let known = self.told.get(change.key());
            match change {
                Change::Created(new) => {
                    assert!(known.is_none(), "{change:?} after {known:?}");
                    self.told.insert(new.key().clone(), new.clone());
                }
                Change::Updated { old, new } => {
                    assert!(
                        known.is_some_and(|known| known.is_same_state(old)),
                        "{change:?} after {known:?}"
                    );
                    assert!(
                        old.meta().uid == new.meta().uid
                            && old
                                .meta()
                                .resource_version
                                .is_before(&new.meta().resource_version)
                    );
                    self.told.insert(new.key().clone(), new.clone());
                }
                Change::Deleted { last, certain } => {
                    let uid = last.meta().uid.to_string();
                    assert!(self.ended.insert(uid), "{change:?} told twice");
                    match known {
                        // an incarnation that was handed out, not acknowledged and then ended: to be told of its end, for it may have been handled
                        None => {}
                        Some(known) => {
                            assert!(
                                known.meta().uid == last.meta().uid,
                                "{change:?} after {known:?}"
                            );
                            assert!(
                                !last
                                    .meta()
                                    .resource_version
                                    .is_before(&known.meta().resource_version)
                            );
                        }
                    }
                    if *certain {
                        let version: usize =
                            last.meta().resource_version.to_string().parse().unwrap();
                        assert!(
                            matches!(self.history[version].1, Some(Delta::Gone { .. })),
                            "{change:?} is not the final state"
                        );
                    }
                    self.told.remove(change.key());
                }
            }
        }
        batch.ack();
    }

    fn finish(mut self) {
        if self.version.is_none() {
            self.step(&Op::ListBegin {
                quorum: false,
                lag: 3,
            });
        }
        self.step(&Op::ListEnd);
        self.step(&Op::Deliver(usize::MAX >> 1));
        while self.fifo.len() > 0 {
            self.step(&Op::Pop(2));
        }
        self.step(&Op::Pop(1));
        let (version, objects) = self.server();
        let objects = objects.clone();
        let stored: Vec<_> = self
            .core
            .reader()
            .list(None)
            .iter()
            .map(|object| format!("{object:?} {}", object.meta().uid))
            .collect();
        let expected: Vec<_> = objects
            .values()
            .map(|object| format!("{object:?} {}", object.meta().uid))
            .collect();
        assert_eq!(stored, expected);
        assert_eq!(
            self.core.low_water(),
            Some(Version::new(&version.to_string()))
        );
        self.hear(usize::MAX, true);
        self.hear(usize::MAX, true);
        let told: Vec<_> = self
            .told
            .values()
            .map(|object| format!("{object:?} {}", object.meta().uid))
            .collect();
        assert_eq!(told, expected);
        let alive: BTreeSet<_> = objects
            .values()
            .map(|object| object.meta().uid.to_string())
            .collect();
        let mut begun = self.begun.difference(&alive);
        assert!(
            begun.all(|uid| self.ended.contains(uid)),
            "{:?} began, {:?} ended",
            self.begun,
            self.ended
        );
        assert!(self.subscription.depth() == 0 && self.subscription.initial() == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn store_and_subscriber_end_as_the_server(ops in prop::collection::vec(op(), 0..80)) {
        let mut model = Model::new();
        for op in &ops {
            model.step(op);
        }
        model.finish();
    }
}
