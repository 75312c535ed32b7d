use boatswain_supervision::Clock;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{super::note::Severity, *};

mod model;

/// A recorder, and what it does as time goes by.
struct Desk {
    state: State,
    begun: Instant,
    now: Instant,
}

impl Desk {
    fn new() -> Self {
        let now = Clock::system().now();
        Self {
            state: State::new("pod".into(), 0),
            begun: now,
            now,
        }
    }

    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH + (self.now - self.begun)
    }

    fn tell(&mut self, object: &str, text: &str) -> bool {
        let at = self.wall();
        self.state
            .note("controller", &note(object, text), at, self.now)
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
    }

    fn next(&mut self) -> Next {
        self.state.next(self.now)
    }

    fn answer(&mut self, answer: Answer) -> Option<GivenUp> {
        self.state.answered(answer, self.now, 0.5)
    }

    #[track_caller]
    fn sent(&mut self) -> Write {
        match self.next() {
            Next::Send(write) => write,
            other => panic!("nothing is sent: {other:?}"),
        }
    }

    #[track_caller]
    fn created(&mut self) -> Event {
        match self.sent() {
            Write::Create(event) => *event,
            other => panic!("no Event is created: {other:?}"),
        }
    }

    #[track_caller]
    fn counted(&mut self) -> (String, i32) {
        match self.sent() {
            Write::Count { name, series, .. } => (name, series.count),
            other => panic!("no count is written: {other:?}"),
        }
    }

    fn drops(&self, why: Dropped) -> u64 {
        let mut drops = self.state.counts.drops();
        drops
            .find(|(of, _)| *of == why)
            .map_or(0, |(_, count)| count)
    }
}

fn note(object: &str, text: &str) -> Note {
    let object = ObjectReference {
        kind: Some("Deployment".into()),
        name: Some(object.into()),
        namespace: Some("shop".into()),
        uid: Some(format!("uid of {object}")),
        ..ObjectReference::default()
    };
    Note::on(object, Severity::Normal, "Scaled", text.into())
}

fn busy() -> Answer {
    Answer::Busy {
        retry_after: None,
        why: "no".into(),
    }
}

fn name(event: &Event) -> String {
    event.metadata.name.clone().expect("a name")
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_repeats_is_one_event_told_of_at_once_then_once_a_window_and_at_its_end() {
    let mut desk = Desk::new();
    assert!(desk.tell("web", "3 to 5"));
    let first = desk.created();
    assert_eq!(first.series, None);
    desk.answer(Answer::Taken);
    assert_eq!(desk.next(), Next::At(desk.now + WINDOW));

    desk.sleep(MINUTE);
    assert!(desk.tell("web", "3 to 5"), "that it is a series is news");
    assert_eq!(desk.counted(), (name(&first), 2));
    desk.answer(Answer::Taken);
    for _ in 0..100 {
        assert!(!desk.tell("web", "3 to 5"));
    }
    assert_eq!(desk.next(), Next::At(desk.now + WINDOW));
    desk.sleep(WINDOW);
    assert_eq!(desk.counted(), (name(&first), 102));
    desk.answer(Answer::Taken);

    desk.sleep(WINDOW);
    assert_eq!(desk.next(), Next::Nothing, "it has ended");
    assert_eq!(desk.state.series(), 0);
    desk.tell("web", "3 to 5");
    assert_ne!(name(&desk.created()), name(&first));
}

#[test]
fn other_words_another_object_or_another_source_make_another_event() {
    let mut desk = Desk::new();
    let now = desk.now;
    for (source, object, text) in [
        ("a", "web", "x"),
        ("a", "web", "y"),
        ("a", "db", "x"),
        ("b", "web", "x"),
    ] {
        let told = note(object, text);
        assert!(desk.state.note(source, &told, desk.wall(), now));
    }
    assert_eq!(desk.state.waiting(), 4);
}

#[test]
fn what_repeats_before_it_is_written_costs_one_request() {
    let mut desk = Desk::new();
    for _ in 0..5000 {
        desk.tell("web", "3 to 5");
    }
    let event = desk.created();
    assert_eq!(event.series.map(|series| series.count), Some(5000));
    desk.answer(Answer::Taken);
    assert!(matches!(desk.next(), Next::At(_)));
    assert_eq!(desk.state.counts.repeated, 4999);
}

#[test]
fn a_second_note_while_the_first_is_on_its_way_is_told_at_once() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    let event = desk.created();
    desk.tell("web", "x");
    desk.answer(Answer::Taken);
    assert_eq!(desk.counted(), (name(&event), 2));
}

#[test]
fn of_one_object_few_things_are_told_and_of_others_as_many() {
    let mut desk = Desk::new();
    for i in 0..100 {
        desk.tell("web", &i.to_string());
    }
    desk.tell("db", "x");
    assert_eq!((desk.state.waiting(), desk.drops(Dropped::Spam)), (26, 75));
    desk.sleep(super::super::spam::EVERY);
    assert!(desk.tell("web", "later"));
}

#[test]
fn a_full_line_drops_what_is_new_and_counts_what_repeats() {
    let mut desk = Desk::new();
    for i in 0..CAPACITY {
        assert!(desk.tell(&i.to_string(), "x"));
    }
    assert!(!desk.tell("one more", "x"));
    assert!(!desk.tell("7", "x"));
    assert_eq!(desk.drops(Dropped::Full), 1);
    assert_eq!(desk.state.counts.repeated, 1);
}

#[test]
fn a_busy_server_is_asked_ever_more_seldom_and_not_before_the_time_it_asks_for() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    let mut pauses = vec![];
    for attempt in 1..ATTEMPTS {
        desk.created();
        assert_eq!(desk.answer(busy()), None, "attempt {attempt}");
        let Next::At(until) = desk.next() else {
            panic!("it does not wait")
        };
        pauses.push((until - desk.now).as_millis());
        desk.now = until;
    }
    assert_eq!(pauses[..4], [500, 1000, 2000, 4000]);
    assert!(pauses.iter().all(|pause| *pause <= 30_000));
    desk.created();
    let given_up = desk.answer(busy()).expect("given up");
    assert_eq!(given_up.dropped, Dropped::Unreachable);
    assert_eq!(desk.drops(Dropped::Unreachable), 1);

    desk.sleep(MINUTE);
    desk.tell("db", "x");
    desk.created();
    desk.answer(Answer::Busy {
        retry_after: Some(MINUTE),
        why: "later".into(),
    });
    assert_eq!(desk.next(), Next::At(desk.now + MINUTE));
    desk.sleep(MINUTE);
    desk.created();
    desk.answer(Answer::Taken);
    assert_eq!(desk.state.failures, 0);
}

#[test]
fn an_answer_that_was_lost_makes_no_second_event() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    let event = desk.created();
    desk.answer(busy());
    desk.sleep(MINUTE);
    desk.tell("web", "x");
    assert_eq!(name(&desk.created()), name(&event));
    desk.answer(Answer::Exists);
    assert_eq!(
        desk.counted(),
        (name(&event), 2),
        "the first attempt told of one"
    );
}

#[test]
fn the_name_of_anothers_event_is_left_to_it() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    let taken = desk.created();
    desk.answer(Answer::Exists);
    assert_ne!(name(&desk.created()), name(&taken));
}

#[test]
fn an_event_that_has_expired_goes_on_as_another_with_what_is_new() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    let first = desk.created();
    desk.answer(Answer::Taken);
    desk.sleep(MINUTE);
    desk.tell("web", "x");
    desk.counted();
    assert_eq!(desk.answer(Answer::Missing("gone".into())), None);
    let second = desk.created();
    assert_ne!(name(&second), name(&first));
    assert_eq!(second.series, None, "one that the server has not heard of");
    assert_eq!(second.event_time, Some(MicroTime(desk.wall())));
}

#[test]
fn what_cannot_succeed_is_dropped_with_its_series_and_the_next_one_goes_on() {
    let mut desk = Desk::new();
    for object in ["gone", "forbidden", "web"] {
        desk.tell(object, "x");
        desk.tell(object, "x");
    }
    desk.created();
    let given_up = desk.answer(Answer::Missing("no namespace".into()));
    assert_eq!(given_up.expect("said").dropped, Dropped::Namespace);
    desk.created();
    desk.answer(Answer::Refused(Dropped::Forbidden, "no".into()));
    assert_eq!(
        (
            desk.drops(Dropped::Namespace),
            desk.drops(Dropped::Forbidden)
        ),
        (2, 2)
    );
    desk.created();
    desk.answer(Answer::Taken);
    assert_eq!(desk.state.series(), 1);
}

#[test]
fn where_a_server_wants_events_of_cluster_wide_objects_is_found_out_once() {
    let mut desk = Desk::new();
    let about = |name: &str| {
        let object = ObjectReference {
            kind: Some("Node".into()),
            name: Some(name.into()),
            ..ObjectReference::default()
        };
        Note::on(object, Severity::Normal, "Drained", "x".into())
    };
    let misplaced = || Answer::Misplaced("does not match".into());
    let (at, now) = (desk.wall(), desk.now);
    desk.state.note("controller", &about("n1"), at, now);
    let place = |event: Event| event.metadata.namespace.expect("a namespace");
    assert_eq!(place(desk.created()), "default");
    assert_eq!(desk.answer(misplaced()), None);
    assert_eq!(place(desk.created()), "kube-system");
    desk.answer(Answer::Taken);
    desk.state.note("controller", &about("n2"), at, now);
    assert_eq!(place(desk.created()), "kube-system");
    let given_up = desk.answer(misplaced()).expect("said");
    assert_eq!(given_up.dropped, Dropped::Refused);
}

#[test]
fn a_stop_writes_what_waits_and_what_rests_without_long_pauses_and_is_over() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    desk.created();
    desk.answer(Answer::Taken);
    desk.tell("web", "x");
    desk.counted();
    desk.answer(Answer::Taken);
    desk.tell("web", "x");
    desk.tell("db", "x");
    for _ in 0..8 {
        desk.sleep(MINUTE);
        desk.created();
        desk.answer(busy());
    }
    desk.state.close(desk.now);
    let Next::At(until) = desk.next() else {
        panic!("it does not wait")
    };
    assert!(until - desk.now <= LAST_PAUSE);
    desk.now = until;
    desk.created();
    desk.answer(Answer::Taken);
    assert_eq!(desk.counted().1, 3);
    desk.answer(Answer::Taken);
    assert_eq!(desk.next(), Next::Over);
    assert_eq!(desk.state.abandon(), 0);
}

#[test]
fn what_a_stop_leaves_unwritten_is_counted() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    desk.tell("web", "x");
    desk.created();
    desk.state.close(desk.now);
    assert_eq!(desk.state.abandon(), 2);
    assert_eq!(desk.drops(Dropped::Stopped), 2);
}

#[test]
fn a_standby_tells_nothing_neither_what_it_hears_nor_what_it_had_to_say() {
    let mut desk = Desk::new();
    desk.tell("web", "x");
    desk.created();
    desk.tell("db", "x");
    desk.state.stand_by();
    assert_eq!(desk.answer(Answer::Taken), None, "too late");
    desk.tell("web", "x");
    assert_eq!(desk.next(), Next::Nothing);
    assert_eq!(desk.drops(Dropped::Standby), 3);
    desk.state.lead();
    assert!(desk.tell("web", "x"));
    desk.created();
}

#[test]
fn memory_follows_bounds_and_counts_that_had_to_go_are_counted() {
    let mut desk = Desk::new();
    for i in 0..3 * SERIES {
        for _ in 0..3 {
            desk.tell(&i.to_string(), "x");
        }
        while let Next::Send(_) = desk.next() {
            desk.answer(Answer::Taken);
        }
        desk.tell(&i.to_string(), "x");
        desk.sleep(Duration::from_millis(1));
    }
    let State {
        series,
        numbers,
        resting,
        ready,
        ..
    } = &desk.state;
    assert_eq!(
        (series.len(), numbers.len(), resting.len()),
        (SERIES, SERIES, SERIES)
    );
    assert!(ready.is_empty());
    assert_eq!(desk.drops(Dropped::Forgotten), 2 * SERIES as u64);
}

#[test]
fn a_standby_whose_writer_ends_and_begins_again_is_one_still() {
    let mut desk = Desk::new();
    desk.state.stand_by();
    desk.state.close(desk.now);
    assert_eq!(desk.next(), Next::Over, "there is nothing to wait for");
    desk.state.open();
    assert!(!desk.tell("web", "3 to 5"));
    assert_eq!(desk.drops(Dropped::Standby), 1);
    desk.state.lead();
    assert!(desk.tell("web", "3 to 5"));
}

#[test]
fn who_is_demoted_while_it_stops_has_nothing_more_to_write() {
    let mut desk = Desk::new();
    desk.tell("web", "3 to 5");
    desk.state.close(desk.now);
    desk.state.stand_by();
    assert_eq!(desk.next(), Next::Over);
    assert_eq!(desk.drops(Dropped::Standby), 1);
}
