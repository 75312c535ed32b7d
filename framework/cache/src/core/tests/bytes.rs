//! What is left in memory, and what an object takes there.

use std::hint::black_box;

use allocation_counter::measure;
use serde_json::json;

use super::*;
use crate::store::IndexSpec;

/// Names that come, change and go, as pods of jobs do, through queue, store, index and a subscriber's backlog.
fn come_and_go(core: &InformerCore, told: &crate::Subscription, names: std::ops::Range<u64>) {
    let mut fifo = Fifo::new(core.low_water(), core.epoch());
    let hear = || {
        if let Some(batch) = told.take(usize::MAX) {
            batch.ack();
        }
    };
    for batch in names.step_by(500).map(|start| start..start + 500) {
        for version in [1, 2] {
            for number in batch.clone() {
                let object = object(&format!("job-{number}"), number, number * 3 + version);
                fifo.push(Delta::Seen(object), None);
            }
            commit_all(core, &mut fifo);
            hear();
        }
        for number in batch {
            fifo.push(gone(&format!("job-{number}"), number, number * 3 + 3), None);
        }
        commit_all(core, &mut fifo);
        hear();
    }
}

#[test]
fn names_that_come_and_go_leave_nothing_behind() {
    let core = core();
    core.add_index(IndexSpec::path("spec.on"));
    let told = core.subscribe("test", || {});
    come_and_go(&core, &told, 0..2_000);
    // a table may double for once; what leaks does so every time
    let left = [2_000..5_000, 5_000..8_000]
        .map(|names| measure(|| come_and_go(&core, &told, names)).bytes_current);
    assert_eq!(left.iter().min(), Some(&0), "{left:?} bytes are left");
    assert_eq!(core.reader().size(), Default::default());
}

#[test]
fn a_packed_object_takes_little_more_than_its_frame() {
    let core = core();
    let pod = |number: u64| {
        let env: Vec<_> = (0..60)
            .map(|at| json!({"name": format!("VARIABLE_{at}"), "value": format!("{}", number * 31 + at)}))
            .collect();
        let json = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": format!("web-7d4b9c6f5-{number:06}"), "resourceVersion": number.to_string(),
            "uid": format!("00000000-0000-4000-8000-{number:012x}")}, "spec": {"env": env}});
        core.opener().open(json.to_string().as_bytes()).unwrap()
    };
    let put = |numbers: std::ops::Range<u64>| {
        let mut fifo = Fifo::new(core.low_water(), core.epoch());
        for number in numbers {
            fifo.push(Delta::Seen(pod(number)), None);
            if number % 100 == 0 {
                commit_all(&core, &mut fifo);
            }
        }
        commit_all(&core, &mut fifo);
        let mut tended = core.tend(crate::core::Tended::Checked);
        while let Some(done) = tended {
            tended = core.tend(done);
        }
    };
    put(1..3_000);
    black_box(core.get(&key("none")));
    let before = core.reader().size();
    let bytes = measure(|| put(3_000..5_000)).bytes_current;
    let frames = core.reader().size().bytes - before.bytes;
    let beside = (usize::try_from(bytes).unwrap() - frames) / 2_000;
    assert!(beside < 330, "{beside} bytes an object beside its frame");
}
