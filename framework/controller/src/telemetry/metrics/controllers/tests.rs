use std::collections::BTreeMap;

use boatswain_workqueue::Lane;
use prometheus::{TextEncoder, proto::MetricType};

use super::{
    series::{PRIORITIES, RESULTS},
    *,
};
use crate::{
    dispatch::{Closing, Ended, Ending},
    reconcile::Outcome,
};

/// What controller-runtime's and client-go's dashboards ask for: name, type, labels, number of finite bounds.
const STANDARD: &[(&str, MetricType, &[&str], usize)] = {
    use MetricType::{COUNTER, GAUGE, HISTOGRAM};
    const C: &[&str] = &["controller"];
    const Q: &[&str] = &["controller", "name"];
    &[
        (
            "controller_runtime_reconcile_total",
            COUNTER,
            &["controller", "result"],
            0,
        ),
        ("controller_runtime_reconcile_errors_total", COUNTER, C, 0),
        (
            "controller_runtime_terminal_reconcile_errors_total",
            COUNTER,
            C,
            0,
        ),
        ("controller_runtime_reconcile_panics_total", COUNTER, C, 0),
        ("controller_runtime_reconcile_timeouts_total", COUNTER, C, 0),
        (
            "controller_runtime_reconcile_time_seconds",
            HISTOGRAM,
            C,
            40,
        ),
        ("controller_runtime_max_concurrent_reconciles", GAUGE, C, 0),
        ("controller_runtime_active_workers", GAUGE, C, 0),
        (
            "workqueue_depth",
            GAUGE,
            &["controller", "name", "priority"],
            0,
        ),
        ("workqueue_adds_total", COUNTER, Q, 0),
        ("workqueue_retries_total", COUNTER, Q, 0),
        ("workqueue_queue_duration_seconds", HISTOGRAM, Q, 12),
        ("workqueue_work_duration_seconds", HISTOGRAM, Q, 12),
        ("workqueue_unfinished_work_seconds", GAUGE, Q, 0),
        ("workqueue_longest_running_processor_seconds", GAUGE, Q, 0),
    ]
};

fn clock() -> Clock {
    Clock::system()
}

fn page(registry: &Registry) -> String {
    TextEncoder::new()
        .encode_to_string(&registry.gather())
        .expect("it encodes")
}

/// A registry, and a controller of two shards in it.
fn one() -> (Registry, Roster, ControllerMetrics) {
    let (registry, roster) = (Registry::new(), Roster::default());
    register_controllers(&roster, &clock(), &registry).expect("registered");
    let metrics = add("crane", &roster);
    (registry, roster, metrics)
}

fn add(name: &str, roster: &Roster) -> ControllerMetrics {
    let gate = Gate::new(Closing::default(), &Arc::default());
    let views = vec![ShardView::default(), ShardView::default()];
    ControllerMetrics::new(
        name,
        views,
        Journals::new(2),
        gate,
        Arc::default(),
        4,
        roster,
    )
}

#[test]
fn the_names_labels_and_bounds_of_controller_runtime_are_there_from_the_start() {
    let (registry, _, _metrics) = one();
    let found = registry.gather();
    let found: BTreeMap<_, _> = found.iter().map(|family| (family.name(), family)).collect();
    for (name, of, labels, bounds) in STANDARD {
        let family = found
            .get(name)
            .unwrap_or_else(|| panic!("no family {name}"));
        assert_eq!(family.get_field_type(), *of, "{name}");
        assert!(!family.get_metric().is_empty(), "{name} has no zeros");
        for metric in family.get_metric() {
            let has: Vec<_> = metric
                .get_label()
                .iter()
                .map(|label| label.name())
                .collect();
            assert_eq!(has, *labels, "{name}");
            assert_eq!(metric.get_histogram().get_bucket().len(), *bounds, "{name}");
        }
    }
    let bounds = |name: &str| -> Vec<f64> {
        let buckets = found[name].get_metric()[0].get_histogram().get_bucket();
        buckets.iter().map(|bucket| bucket.upper_bound()).collect()
    };
    #[rustfmt::skip]
    let reconcile = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5,
        4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ];
    assert_eq!(
        bounds("controller_runtime_reconcile_time_seconds"),
        reconcile
    );
    let queue = [
        1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0,
    ];
    assert_eq!(bounds("workqueue_queue_duration_seconds"), queue);
    assert_eq!(bounds("workqueue_work_duration_seconds"), queue);
}

#[test]
fn every_way_a_run_ends_is_one_of_four_results_and_all_begin_at_zero() {
    let (registry, _, metrics) = one();
    let results = |page: &str| -> Vec<String> {
        let lines = page.lines();
        lines
            .filter_map(|line| {
                line.strip_prefix("controller_runtime_reconcile_total{controller=\"crane\",result=")
            })
            .map(str::to_owned)
            .collect()
    };
    let zeros = [
        "\"success\"} 0",
        "\"requeue_after\"} 0",
        "\"requeue\"} 0",
        "\"error\"} 0",
    ];
    let mut found = results(&page(&registry));
    found.sort();
    let mut expected = zeros.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let covered: usize = RESULTS.iter().map(|(_, endings)| endings.len()).sum();
    assert_eq!(covered, Ending::ALL.len());

    let second = Duration::from_secs(1);
    let failed = |fault| Ended::Failed {
        message: "no".into(),
        fault,
    };
    use crate::reconcile::Fault;
    for (shard, ended) in [
        (0, Ended::Outcome(Outcome::Done)),
        (1, Ended::Outcome(Outcome::Done)),
        (0, Ended::Outcome(Outcome::Retry)),
        (0, failed(Fault::Conflict)),
        (1, failed(Fault::Permanent)),
        (1, Ended::Panicked("oh".into())),
        (0, Ended::TimedOut(second)),
    ] {
        metrics.tally(shard).ended(&ended, second);
    }
    let page = page(&registry);
    for line in [
        "controller_runtime_reconcile_total{controller=\"crane\",result=\"success\"} 2",
        "controller_runtime_reconcile_total{controller=\"crane\",result=\"requeue\"} 2",
        "controller_runtime_reconcile_total{controller=\"crane\",result=\"error\"} 3",
        "controller_runtime_reconcile_errors_total{controller=\"crane\"} 3",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"crane\"} 1",
        "controller_runtime_reconcile_panics_total{controller=\"crane\"} 1",
        "controller_runtime_reconcile_timeouts_total{controller=\"crane\"} 1",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"crane\",le=\"0.9\"} 0",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"crane\",le=\"1\"} 7",
        "workqueue_work_duration_seconds_sum{controller=\"crane\",name=\"crane\"} 7",
        "controller_reconcile_total{controller=\"crane\",result=\"permanent\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "no {line}");
    }
}

#[test]
fn the_series_of_a_controller_end_with_it_and_one_of_its_name_begins_at_zero() {
    let (registry, roster, metrics) = one();
    let other = add("other", &roster);
    metrics.tally(0).added();
    let adds = |registry: &Registry| -> Vec<String> {
        let page = page(registry);
        let adds = page
            .lines()
            .filter(|line| line.starts_with("workqueue_adds_total"));
        adds.map(str::to_owned).collect()
    };
    let (crane, zero, of_other) = (
        "workqueue_adds_total{controller=\"crane\",name=\"crane\"} 1",
        "workqueue_adds_total{controller=\"crane\",name=\"crane\"} 0",
        "workqueue_adds_total{controller=\"other\",name=\"other\"} 0",
    );
    assert_eq!(adds(&registry), [crane, of_other]);
    drop(metrics);
    assert!(!page(&registry).contains("crane"), "nothing of it is left");
    let again = add("crane", &roster);
    assert_eq!(adds(&registry), [zero, of_other]);
    drop((again, other));
    let left: Vec<_> = registry
        .gather()
        .into_iter()
        .flat_map(|mut f| f.take_metric())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn lanes_have_the_order_of_their_priorities() {
    assert_eq!(PRIORITIES.map(|(lane, ..)| lane), Lane::ALL);
}

#[test]
fn what_is_counted_in_one_place_has_its_place() {
    for (number, (what, name, _)) in Rare::ALL.into_iter().enumerate() {
        assert_eq!(what as usize, number, "{name}");
    }
}

#[test]
fn the_age_of_a_lane_is_that_of_its_head_in_any_shard() {
    let now = clock().now();
    let since = |seconds: u64| now.checked_sub(Duration::from_secs(seconds));
    let shard = |user, low| Counts {
        oldest: [since(user), None, since(low)],
        lanes: [1, 0, 2],
        ..Counts::default()
    };
    let both = Counts::sum([shard(1, 9), shard(4, 3)]);
    assert_eq!(both.oldest, [since(4), None, since(9)]);
    assert_eq!(both.lanes, [2, 0, 4]);
}
