//! Whatever is told and whatever the server answers, every note is accounted for once, and no bound is broken.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{
    super::super::spam::{BURST, EVERY},
    *,
};

#[derive(Clone, Debug)]
enum Turn {
    Tell {
        object: u8,
        text: u8,
    },
    Sleep(u64),
    /// One request, answered in this way.
    Send(Reply),
    /// The server forgets the oldest Event.
    Expire,
    Demote,
    Promote,
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    Done,
    /// It did what was asked, and the answer is lost.
    Lost,
    Busy,
    Refused,
    NoNamespace,
}

fn turn() -> impl Strategy<Value = Turn> {
    let reply = prop_oneof![
        6 => Just(Reply::Done),
        1 => Just(Reply::Lost),
        1 => Just(Reply::Busy),
        1 => Just(Reply::Refused),
        1 => Just(Reply::NoNamespace),
    ];
    prop_oneof![
        20 => (0..3u8, 0..20u8).prop_map(|(object, text)| Turn::Tell { object, text }),
        3 => (0..400u64).prop_map(Turn::Sleep),
        12 => reply.prop_map(Turn::Send),
        1 => Just(Turn::Expire),
        1 => Just(Turn::Demote),
        1 => Just(Turn::Promote),
    ]
}

/// An API server that keeps Events: how many notes each tells of.
#[derive(Default)]
struct Server {
    events: HashMap<String, i64>,
    names: Vec<String>,
    /// Notes that expired Events told of.
    expired: i64,
    /// By the object, when an Event was created.
    created: HashMap<String, Vec<Instant>>,
    /// By the Event, when its count was written.
    counted: HashMap<String, Vec<Instant>>,
}

impl Server {
    fn take(&mut self, write: &Write, now: Instant) -> Answer {
        match write {
            Write::Create(event) => {
                let name = name(event);
                if self.events.contains_key(&name) {
                    return Answer::Exists;
                }
                let count = event.series.as_ref().map_or(1, |series| series.count);
                let object = event.regarding.as_ref().and_then(|o| o.name.clone());
                let object = object.expect("an object");
                self.created.entry(object).or_default().push(now);
                self.events.insert(name.clone(), count.into());
                self.names.push(name);
            }
            Write::Count { name, series, .. } => {
                assert!(series.count >= 2);
                let Some(count) = self.events.get_mut(name) else {
                    return Answer::Missing("no such Event".into());
                };
                assert!(*count <= series.count.into(), "a count goes back");
                *count = series.count.into();
                self.counted.entry(name.clone()).or_default().push(now);
            }
        }
        Answer::Taken
    }

    fn expire(&mut self) {
        if !self.names.is_empty() {
            let gone = self.events.remove(&self.names.remove(0));
            self.expired += gone.unwrap_or_default();
        }
    }

    fn told(&self) -> i64 {
        self.events.values().sum::<i64>() + self.expired
    }
}

/// One request, if there is one. What the server has done although it does not seem so is added to `unsure`.
fn send(desk: &mut Desk, server: &mut Server, reply: Reply, unsure: &mut i64) {
    let Next::Send(write) = desk.next() else {
        return;
    };
    let before = server.told();
    let answer = match reply {
        Reply::Done => server.take(&write, desk.now),
        Reply::Lost => {
            server.take(&write, desk.now);
            *unsure += server.told() - before;
            busy()
        }
        Reply::Busy => busy(),
        Reply::Refused => Answer::Refused(Dropped::Refused, "no".into()),
        Reply::NoNamespace => Answer::Missing("no namespace".into()),
    };
    desk.answer(answer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_note_is_told_once_or_counted_as_dropped_whatever_the_server_answers(turns in prop::collection::vec(turn(), 0..400)) {
        let (mut desk, mut server) = (Desk::new(), Server::default());
        let (mut notes, mut unsure) = (0i64, 0i64);
        for turn in turns {
            match turn {
                Turn::Tell { object, text } => {
                    notes += 1;
                    desk.tell(&object.to_string(), &text.to_string());
                }
                Turn::Sleep(seconds) => desk.sleep(Duration::from_secs(seconds)),
                Turn::Send(reply) => send(&mut desk, &mut server, reply, &mut unsure),
                Turn::Expire => server.expire(),
                Turn::Demote => desk.state.stand_by(),
                Turn::Promote => desk.state.lead(),
            }
            let state = &desk.state;
            let placed = state.ready.len() + state.resting.len() + usize::from(state.flight.is_some());
            prop_assert_eq!((state.series.len(), state.numbers.len()), (placed, placed));
        }
        desk.state.close(desk.now);
        while desk.next() != Next::Over {
            send(&mut desk, &mut server, Reply::Done, &mut unsure);
            desk.sleep(Duration::from_secs(1));
        }
        prop_assert_eq!(desk.state.series(), 0);
        let dropped: u64 = desk.state.counts.drops().map(|(_, count)| count).sum();
        let accounted = server.told() + i64::try_from(dropped).expect("small");
        prop_assert!((notes..=notes + unsure).contains(&accounted), "{notes} notes, {accounted} accounted for, {unsure} unsure");
        for times in server.counted.values().filter(|_| unsure == 0) {
            // the last may be that of the stop
            let regular = &times[..times.len() - 1];
            prop_assert!(regular.windows(2).all(|pair| pair[1] - pair[0] >= WINDOW), "{times:?}");
        }
    }

    #[test]
    fn one_object_is_told_of_so_often_and_no_more(waits in prop::collection::vec(0..120u64, 1..300)) {
        let (mut desk, mut server) = (Desk::new(), Server::default());
        for (text, wait) in waits.into_iter().enumerate() {
            desk.sleep(Duration::from_secs(wait));
            desk.tell("web", &text.to_string());
            send(&mut desk, &mut server, Reply::Done, &mut 0);
        }
        let times = server.created.get("web").cloned().unwrap_or_default();
        for (first, begun) in times.iter().enumerate() {
            for (last, ended) in times.iter().enumerate().skip(first) {
                let more = (*ended - *begun).as_secs() / EVERY.as_secs();
                prop_assert!((last - first) as u64 <= u64::from(BURST) + more);
            }
        }
    }
}
