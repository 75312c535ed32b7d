use std::rc::Rc;

use super::{Batch, Fifo, Replace, Step};
use crate::delta::{Cause, Delta, Trust};
use crate::key::Key;
use crate::object::Object;
use crate::version::Version;

fn object(name: &str, uid: &str, version: u64) -> Object {
    let json = serde_json::json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn seen(name: &str, version: u64) -> Delta {
    Delta::Seen(object(name, "u", version))
}

fn gone(name: &str, version: u64) -> Delta {
    Delta::Gone {
        key: Key::new(None, name),
        last: Some(object(name, "u", version)),
        version: Some(version.to_string().as_str().into()),
    }
}

fn replace(epoch: u64) -> Replace {
    Replace::new(epoch, Trust::Cached, Cause::Relist)
}

fn show<P>(batch: Option<Batch<P>>) -> String {
    let Some(batch) = batch else {
        return "nothing".to_owned();
    };
    let steps: Vec<_> = batch
        .steps
        .iter()
        .map(|step| match step {
            Step::Key(key, pending) => {
                let gone = pending.gone.as_ref().map(|gone| {
                    format!("-{:?}", gone.last.as_ref().unwrap().meta().resource_version)
                });
                let latest = pending
                    .latest
                    .as_ref()
                    .map(|object| format!("+{:?}", object.meta().resource_version));
                format!(
                    "{key}{}{}",
                    gone.unwrap_or_default(),
                    latest.unwrap_or_default()
                )
            }
            Step::End(list) => format!("end {}", list.version),
            Step::Live(watch) => format!("live {watch}"),
        })
        .collect();
    format!("{} up to {:?}", steps.join(" "), batch.watermark)
}

#[test]
fn keys_leave_in_the_order_of_their_oldest_news_with_the_newest_state() {
    let mut fifo = Fifo::new(None, 0);
    for delta in [seen("b", 1), seen("a", 2), seen("b", 3)] {
        fifo.push(delta, ());
    }
    assert_eq!((fifo.len(), fifo.high_water()), (2, 2));
    assert_eq!(show(fifo.pop(9)), "b+3 a+2 up to Some(3)");
    assert_eq!(show(fifo.pop(9)), "nothing");
}

#[test]
fn incarnations_that_came_and_went_between_are_left_out() {
    let mut fifo = Fifo::new(None, 0);
    for delta in [
        seen("a", 1),
        gone("a", 2),
        seen("a", 3),
        gone("a", 4),
        seen("a", 5),
    ] {
        fifo.push(delta, ());
    }
    assert_eq!(show(fifo.pop(9)), "a-2+5 up to Some(5)");
}

#[test]
fn the_watermark_waits_for_the_oldest_pending_news() {
    let mut fifo = Fifo::new(Some(Version::new("10")), 0);
    for delta in [seen("a", 11), seen("b", 12), seen("a", 13), seen("c", 14)] {
        fifo.push(delta, ());
    }
    fifo.bookmark(Version::new("20"));
    assert_eq!(show(fifo.pop(1)), "a+13 up to Some(11)");
    assert_eq!(show(fifo.pop(1)), "b+12 up to Some(13)");
    assert_eq!(show(fifo.pop(1)), "c+14 up to Some(20)");
    assert_eq!(show(fifo.pop(1)), "nothing");
    fifo.bookmark(Version::new("30"));
    assert_eq!(
        show(fifo.pop(1)),
        " up to Some(30)",
        "a bookmark alone moves the mark"
    );
    fifo.bookmark(Version::new("25"));
    assert_eq!(show(fifo.pop(1)), "nothing", "and never back");
}

#[test]
fn a_list_is_a_position_only_when_it_is_complete() {
    let mut fifo = Fifo::new(Some(Version::new("10")), 0);
    fifo.replace_begin(replace(1));
    fifo.push(Delta::Listed(object("a", "u", 15)), ());
    assert_eq!(show(fifo.pop(9)), "a+15 up to Some(10)");
    fifo.replace_abort();
    fifo.replace_end(Version::new("20"), true);
    assert_eq!(show(fifo.pop(9)), "nothing", "an aborted list has no end");
    fifo.replace_begin(replace(2));
    fifo.replace_end(Version::new("20"), true);
    fifo.push(seen("b", 21), ());
    assert_eq!(show(fifo.pop(9)), "end 20 b+21 up to Some(21)");
}

#[test]
fn a_new_reflector_resumes_at_the_position_and_gives_a_list_up() {
    let mut fifo = Fifo::new(None, 0);
    fifo.push(seen("a", 11), ());
    assert_eq!(fifo.resume(), (Some(Version::new("11")), true));
    fifo.replace_begin(replace(1));
    fifo.push(Delta::Listed(object("a", "u", 15)), ());
    assert_eq!(
        fifo.resume(),
        (Some(Version::new("11")), false),
        "something newer than the position was handed over"
    );
    assert_eq!(fifo.resume(), (Some(Version::new("11")), true));
}

#[test]
fn old_states_are_no_news_and_never_replace_newer_ones() {
    let mut fifo = Fifo::new(None, 0);
    assert!(fifo.push(seen("a", 10), ()));
    assert!(!fifo.push(seen("a", 9), ()));
    assert!(!fifo.push(seen("b", 9), ()), "everything up to 10 was told");
    fifo.replace_begin(replace(1));
    assert!(!fifo.push(Delta::Listed(object("a", "u", 8)), ()));
    assert!(
        fifo.push(Delta::Listed(object("b", "u", 8)), ()),
        "lists tell of the past"
    );
    fifo.replace_begin(Replace {
        trust: Trust::Quorum,
        ..replace(2)
    });
    assert!(fifo.push(Delta::Listed(object("a", "u", 7)), ()));
    assert_eq!(show(fifo.pop(9)), "a+7 b+8 up to Some(10)");
}

#[test]
fn a_permit_is_held_while_its_key_is_pending_and_no_longer() {
    let permit = Rc::new(());
    let mut fifo = Fifo::new(None, 0);
    fifo.push(seen("a", 1), permit.clone());
    fifo.push(seen("a", 2), permit.clone());
    assert_eq!(
        Rc::strong_count(&permit),
        2,
        "news that merge need one place"
    );
    let batch = fifo.pop(9);
    assert_eq!(Rc::strong_count(&permit), 2, "the indexer has it in hand");
    drop(batch);
    assert_eq!(Rc::strong_count(&permit), 1);
    fifo.push(seen("b", 3), permit.clone());
    drop(fifo);
    assert_eq!(
        Rc::strong_count(&permit),
        1,
        "a queue that dies gives its places back"
    );
}

#[test]
fn what_was_pending_when_a_server_was_set_back_refuses_nothing_of_its_new_history() {
    let mut fifo = Fifo::new(Some(Version::new("4")), 0);
    fifo.push(seen("a", 9), ());
    fifo.replace_begin(Replace::new(1, Trust::Restored, Cause::Relist));
    fifo.replace_end(Version::new("5"), true);
    assert!(fifo.push(seen("a", 6), ()));
    let batch = fifo.pop(10);
    let trust = batch
        .iter()
        .flat_map(|batch| &batch.steps)
        .find_map(|step| match step {
            Step::Key(_, pending) => Some(pending.trust),
            _ => None,
        });
    assert_eq!(trust, Some(Trust::Restored));
    assert_eq!(show(batch), "a+6 end 5 up to Some(6)");
}
