use boatswain_supervision::Clock;

use super::{backlog::Next, *};

fn key(name: &str) -> Key {
    Key::new(Some("shop"), name)
}

fn names(next: &[Next]) -> Vec<&str> {
    next.iter().map(|next| next.key.name()).collect()
}

#[test]
fn a_key_waits_once_however_often_it_is_sent_and_a_full_channel_hands_others_back() {
    let (sender, Source(shared)) = channel(2);
    for _ in 0..1000 {
        sender.send(key("a")).expect("room");
        sender.send(key("b")).expect("room");
    }
    sender
        .send_in(Lane::User, key("b"))
        .expect("it waits already");
    assert_eq!(sender.send(key("c")), Err(Full(key("c"))));
    let now = Clock::system().now();
    let next = shared.backlog().next(10, now);
    assert_eq!(names(&next), ["a", "b"]);
    assert_eq!(next[1].lane, Lane::User);
    // whoever took them died; nothing is lost
    assert_eq!(names(&shared.backlog().next(1, now)), ["a"]);
    shared.backlog().taken(&next[..1]);
    sender.send(key("c")).expect("room");
    let next = shared.backlog().next(10, now);
    assert_eq!(names(&next), ["b", "c"]);
    // its run may have begun before this
    sender.send(key("b")).expect("it waits");
    shared.backlog().taken(&next);
    let next = shared.backlog().next(10, now);
    assert_eq!(names(&next), ["b"]);
    shared.backlog().taken(&next);
    assert!(sender.is_empty());
}

#[test]
fn a_key_has_one_time_and_who_asks_says_which_of_two_counts() {
    let (sender, Source(shared)) = channel(3);
    let start = Clock::system().now();
    let at = |seconds| start + Duration::from_secs(seconds);
    for (name, when) in [
        ("earliest", When::Earliest),
        ("latest", When::Latest),
        ("replace", When::Replace),
    ] {
        for seconds in [20, 30, 10] {
            sender.send_at(key(name), at(seconds), when).expect("room");
        }
        let until = shared.backlog().due();
        let expected = if when == When::Latest { 30 } else { 10 };
        assert_eq!(until, Some(at(expected)), "{when:?}");
        if name != "replace" {
            assert!(sender.cancel(&key(name)));
        }
    }
    assert!(!sender.cancel(&key("latest")), "it has been taken back");
    assert_eq!(names(&shared.backlog().next(10, at(9))), [""; 0]);
    let next = shared.backlog().next(10, at(10));
    assert!(names(&next) == ["replace"] && next[0].timed);
    // it is asked for again, later, before it is handed out
    sender
        .send_at(key("replace"), at(40), When::Replace)
        .expect("room");
    shared.backlog().taken(&next);
    assert_eq!(shared.backlog().due(), Some(at(40)));
    for name in ["a", "b"] {
        sender
            .send_at(key(name), at(1), When::Earliest)
            .expect("room");
    }
    let full = sender.send_at(key("c"), at(1), When::Earliest);
    assert_eq!(full, Err(Full(key("c"))));
    sender
        .send(key("c"))
        .expect("those that wait have room of their own");
    assert_eq!(sender.len(), 4);
}

#[test]
fn a_time_that_is_sent_while_the_one_before_is_handed_out_is_not_taken_for_that() {
    let (sender, Source(shared)) = channel(3);
    let start = Clock::system().now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let send = |seconds, when| sender.send_at(key("a"), at(seconds), when).expect("room");
    for (when, expected) in [
        (When::Earliest, 20),
        (When::Latest, 40),
        (When::Replace, 40),
    ] {
        send(10, when);
        let next = shared.backlog().next(10, at(10));
        assert_eq!(names(&next), ["a"]);
        send(20, when);
        send(40, when);
        // whoever handed it out died before anybody heard of it
        assert_eq!(names(&shared.backlog().next(10, at(11))), ["a"]);
        shared.backlog().taken(&next);
        assert_eq!(shared.backlog().due(), Some(at(expected)), "{when:?}");
        assert!(sender.cancel(&key("a")));
    }
    send(5, When::Earliest);
    let next = shared.backlog().next(10, at(10));
    send(9, When::Earliest);
    shared.backlog().taken(&next);
    assert_eq!(shared.backlog().due(), Some(at(9)), "one more run, at once");
    let next = shared.backlog().next(10, at(10));
    assert!(sender.cancel(&key("a")));
    send(30, When::Earliest);
    shared.backlog().taken(&next);
    assert_eq!(shared.backlog().due(), Some(at(30)));
    assert!(shared.backlog().handed.is_empty());
}
