use boatswain_cache::Key;

use super::*;
use crate::reconcile::Causes;

fn told(now: Doing) -> Explanation {
    let last = LastRun {
        id: None,
        began: Timestamp::UNIX_EPOCH,
        took: Duration::from_millis(7),
        causes: Causes::default(),
        trigger: None,
        attempt: 0,
        seen: None,
        result: "success",
        text: None,
        decided: Some("moored".into()),
        writes: Vec::new(),
        written: 0,
    };
    Explanation {
        controller: "quay".into(),
        key: Key::new(Some("harbour"), "berth"),
        at: Timestamp::UNIX_EPOCH,
        now,
        shut: None,
        pending: Causes::default(),
        next: None,
        failing_since: None,
        failures: 0,
        last: Some(last),
        quarantined: None,
    }
}

#[test]
fn why_is_what_the_last_run_decided_but_not_while_the_next_one_runs() {
    assert_eq!(row(&told(Doing::Idle)).why.as_deref(), Some("moored"));
    let since = Timestamp::UNIX_EPOCH;
    let running = row(&told(Doing::Running {
        since,
        again: false,
    }));
    assert_eq!(running.why, None);
    assert_eq!(running.result.as_deref(), Some("success"));
}
