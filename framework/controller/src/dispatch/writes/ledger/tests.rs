use boatswain_cache::{Object, envelope};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn place(name: &str) -> Place {
    Place {
        store: Store {
            selection: 0,
            scope: Scope::All,
        },
        object: Key::new(Some("shop"), name),
    }
}

fn version(number: u64) -> Version {
    Version::new(&number.to_string())
}

fn object(uid: u64, at: u64) -> Object {
    let metadata = json!({ "name": "a", "namespace": "shop", "uid": uid.to_string(), "resourceVersion": at.to_string() });
    envelope::open(json!({ "metadata": metadata }).to_string().as_bytes()).expect("an object")
}

fn uid(number: u64) -> Uid {
    Uid::from(&*number.to_string())
}

fn at(of: u64, version_: u64) -> Mark {
    Mark::At {
        uid: uid(of),
        version: version(version_),
    }
}

/// What happens to the one object of the model.
#[derive(Clone, Copy, Debug)]
enum Act {
    Touch,
    Leave,
    Delete(Answer),
    /// Something else is written: versions go on.
    Other,
}

/// What a deletion is answered with.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Status,
    Before,
    After,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    act: Act,
    mine: bool,
    /// Events the cache hears after it.
    hears: usize,
}

fn turn() -> impl Strategy<Value = Turn> {
    let answer = prop_oneof![
        Just(Answer::Status),
        Just(Answer::Before),
        Just(Answer::After)
    ];
    let act = prop_oneof![
        4 => Just(Act::Touch),
        2 => Just(Act::Leave),
        2 => answer.prop_map(Act::Delete),
        1 => Just(Act::Other),
    ];
    (act, any::<bool>(), 0..3_usize).prop_map(|(act, mine, hears)| Turn { act, mine, hears })
}

/// A server with one object, and a cache that hears of it late.
#[derive(Default)]
struct Model {
    now: u64,
    uids: u64,
    /// Incarnation, version, and whether it is selected.
    object: Option<(u64, u64, bool)>,
    /// What a watch tells, in order: at which version the selected object is in which state.
    events: Vec<(u64, Option<(u64, u64)>)>,
    heard: usize,
}

impl Model {
    fn cached(&self) -> Option<(u64, u64)> {
        self.heard
            .checked_sub(1)
            .and_then(|last| self.events[last].1)
    }

    fn look<T>(&self, look: impl FnOnce(Sight<'_>) -> T) -> T {
        let stored = self.cached().map(|(uid, at)| object(uid, at));
        let low = self
            .heard
            .checked_sub(1)
            .map_or(0, |last| self.events[last].0);
        look(Sight {
            synced: true,
            low_water: Some(&version(low)),
            stored: stored.as_ref(),
            history: 0,
        })
    }

    fn tell(&mut self, state: Option<(u64, u64)>) {
        self.events.push((self.now, state));
    }

    /// Carries out `act`; returns the mark it leaves where there is one.
    fn act(&mut self, act: Act, noted: bool) -> Option<Mark> {
        self.now += 1;
        let now = self.now;
        let was_selected = self.object.is_some_and(|(_, _, selected)| selected);
        let known = self.cached().is_some() || noted;
        match act {
            Act::Other => None,
            Act::Touch => {
                let of = self.object.map_or_else(
                    || {
                        self.uids += 1;
                        self.uids
                    },
                    |(uid, _, _)| uid,
                );
                self.object = Some((of, now, true));
                self.tell(Some((of, now)));
                Some(at(of, now))
            }
            Act::Leave => {
                let (of, _, _) = self.object?;
                self.object = Some((of, now, false));
                if was_selected {
                    self.tell(None);
                }
                known.then(|| Mark::Gone {
                    uid: Some(uid(of)),
                    version: Some(version(now)),
                    deleted: false,
                })
            }
            Act::Delete(answer) => {
                let (of, before, _) = self.object.take()?;
                if was_selected {
                    self.tell(None);
                }
                known.then(|| Mark::Gone {
                    uid: Some(uid(of)),
                    version: match answer {
                        Answer::Status => None,
                        Answer::Before => Some(version(before)),
                        Answer::After => Some(version(now)),
                    },
                    deleted: true,
                })
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is taken for shown before the cache has heard of the last write, and everything is once it has heard all there is.
    #[test]
    fn a_write_is_shown_when_the_cache_has_heard_of_it_and_not_before(turns in prop::collection::vec(turn(), 1..24)) {
        let (mut model, mut ledger, here) = (Model::default(), Ledger::default(), place("a"));
        // events up to this one must have been heard
        let mut due = 0;
        // of what left no version behind, an absence or another incarnation is all that can be waited for
        let mut vague = false;
        for Turn { act, mine, hears } in turns {
            let told = model.events.len();
            let mark = model.act(act, ledger.has(&here));
            if let (true, Some(mark)) = (mine, mark) {
                // a write to what the watch does not tell of is over as soon as what came before it is
                due = model.events.len().max(told);
                vague = matches!(act, Act::Delete(Answer::Status)) || (vague && matches!(mark, Mark::Gone { .. }));
                ledger.note(here.clone(), mark, 0);
            }
            for step in 0..=hears {
                if let Some(noted) = ledger.entries.get(&here) {
                    let judged = model.look(|sight| noted.judge(sight));
                    let stays = matches!((&noted.mark, model.cached()), (Some(Mark::Gone { uid: Some(gone), .. }), Some((of, _))) if *gone == uid(of));
                    prop_assert!(
                        judged != Judgement::Shown || model.heard >= due || (vague && !stays),
                        "{noted:?} is shown by {:?} after {} of {due} events", model.cached(), model.heard
                    );
                    if judged == Judgement::Shown {
                        ledger.entries.remove(&here);
                        vague = false;
                    }
                }
                if step < hears {
                    model.heard = (model.heard + 1).min(model.events.len());
                }
            }
        }
        // a bookmark, at last
        model.heard = model.events.len();
        model.now += 1;
        let state = model.cached();
        model.tell(state);
        model.heard += 1;
        if let Some(noted) = ledger.entries.get(&here) {
            prop_assert_eq!(model.look(|sight| noted.judge(sight)), Judgement::Shown, "{:?}", noted);
        }
    }

    #[test]
    fn of_any_number_of_objects_the_last_is_waited_for_and_memory_is_bounded(count in 1..300_u64, again in prop::collection::vec(0..300_u64, 0..20)) {
        let mut ledger = Ledger::default();
        let names = (0..count).chain(again);
        let mut last = 0;
        for (number, name) in names.enumerate() {
            last = number as u64 + 10;
            ledger.note(place(&name.to_string()), at(1, last), 0);
        }
        prop_assert!(ledger.entries.len() <= REMEMBERED && ledger.beyond.len() <= 1);
        let is_shown = |low: u64| {
            let low = version(low);
            let sight = Sight { synced: true, low_water: Some(&low), stored: None, history: 0 };
            ledger.entries.values().all(|noted| noted.judge(sight) == Judgement::Shown)
                && ledger.beyond.values().all(|beyond| beyond.judge(Some(&low), 0) == Judgement::Shown)
        };
        prop_assert!(is_shown(last) && !is_shown(last - 1));
    }
}

#[test]
fn sixty_five_writes_to_one_object_are_one_and_the_last_is_waited_for() {
    let mut ledger = Ledger::default();
    for number in 1..=65 {
        ledger.note(place("a"), at(1, number), 0);
    }
    let noted = &ledger.entries[&place("a")];
    let stored = object(1, 64);
    let sight = |stored| Sight {
        synced: true,
        low_water: None,
        stored: Some(stored),
        history: 0,
    };
    assert_eq!(noted.judge(sight(&stored)), Judgement::Pending);
    assert_eq!(noted.judge(sight(&object(1, 65))), Judgement::Shown);
    assert_eq!(ledger.entries.len(), 1);
}

#[test]
fn what_leaves_no_version_behind_is_remembered_one_by_one_as_long_as_there_is_room_and_then_the_server_is_asked()
 {
    let mut ledger = Ledger::default();
    let gone = || Mark::Gone {
        uid: Some(uid(1)),
        version: None,
        deleted: true,
    };
    for number in 0..REMEMBERED {
        ledger.note(place(&format!("at-{number}")), at(1, 7), 0);
    }
    for number in 0..REMEMBERED {
        ledger.note(place(&format!("gone-{number}")), gone(), 0);
    }
    let beyond = &ledger.beyond[&place("a").store];
    assert_eq!((ledger.entries.len(), beyond.unknown), (REMEMBERED, 0));
    assert_eq!(beyond.judge(Some(&version(6)), 0), Judgement::Pending);
    assert_eq!(beyond.judge(Some(&version(7)), 0), Judgement::Shown);
    ledger.note(place("one-more"), gone(), 0);
    let beyond = &ledger.beyond[&place("a").store];
    assert_eq!(beyond.judge(Some(&version(7)), 0), Judgement::Unknown);
    ledger.learn_any(&place("a").store, 1, Some(version(9)), 0);
    let beyond = &ledger.beyond[&place("a").store];
    assert_eq!(beyond.judge(Some(&version(7)), 0), Judgement::Pending);
    assert_eq!(beyond.judge(Some(&version(9)), 0), Judgement::Shown);
}

#[test]
fn a_write_without_an_answer_is_unknown_until_the_server_is_asked_and_so_is_all_that_was_written_before_it_was_set_back()
 {
    let mut ledger = Ledger::default();
    ledger.note_unknown(place("a"));
    ledger.note(place("a"), at(1, 5), 0);
    let look = |ledger: &Ledger, stored: u64, history| {
        let stored = object(1, stored);
        let sight = Sight {
            synced: true,
            low_water: None,
            stored: Some(&stored),
            history,
        };
        ledger.entries[&place("a")].judge(sight)
    };
    assert_eq!(
        look(&ledger, 9, 0),
        Judgement::Unknown,
        "whatever is known besides"
    );
    // another write is lost while the server is asked about the first
    ledger.note_unknown(place("a"));
    ledger.learn(&place("a"), 1, Some(at(1, 7)), 0);
    assert_eq!(look(&ledger, 9, 0), Judgement::Unknown);
    ledger.learn(&place("a"), 1, Some(at(1, 7)), 0);
    assert_eq!(look(&ledger, 6, 0), Judgement::Pending);
    assert_eq!(look(&ledger, 7, 0), Judgement::Shown);
    assert_eq!(
        look(&ledger, 3, 1),
        Judgement::Unknown,
        "the server was set back"
    );
    ledger.learn(&place("a"), 0, Some(at(1, 3)), 1);
    assert_eq!(look(&ledger, 3, 1), Judgement::Shown);
    ledger.learn(&place("a"), 0, None, 1);
    assert_eq!(look(&ledger, 1, 1), Judgement::Shown, "nothing to wait for");
}
