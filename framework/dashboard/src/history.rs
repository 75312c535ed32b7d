//! The last minutes of each controller, a point for each picture; pure.

use std::collections::{BTreeMap, VecDeque};

use crate::view::{ControllerView, Durations, Point};

/// How long points are kept.
const SPAN_MS: u64 = 5 * 60_000;
/// Points that are kept at most, whatever clocks say.
const POINTS: usize = 300;
/// The time that percentiles are taken over.
const WINDOW_MS: u64 = 10_000;

/// What was seen of every controller there is.
#[derive(Default)]
pub(crate) struct History(BTreeMap<String, Past>);

#[derive(Default)]
struct Past {
    points: VecDeque<Point>,
    /// Histograms of the last seconds with their times, the newest last.
    took: VecDeque<(u64, Durations)>,
    /// When it was last seen, and the runs and errors by then.
    last: Option<(u64, u64, u64)>,
}

impl History {
    /// Writes down how the controllers are at a moment, and gives each its point. Those that are gone are forgotten.
    pub(crate) fn tell(&mut self, controllers: &mut [ControllerView], at_ms: u64) {
        self.0
            .retain(|name, _| controllers.iter().any(|one| one.name == *name));
        for controller in controllers {
            let past = self.0.entry(controller.name.clone()).or_default();
            controller.point = past.tell(controller, at_ms);
        }
    }

    pub(crate) fn read(&self) -> BTreeMap<String, Vec<Point>> {
        let points = |past: &Past| past.points.iter().copied().collect();
        let all = self.0.iter();
        all.map(|(name, past)| (name.clone(), points(past)))
            .collect()
    }

    /// Runs that ended within the last `seconds`, and those of them in error.
    pub(crate) fn lately(&self, controller: &str, seconds: u64) -> (f64, f64) {
        let Some(past) = self.0.get(controller) else {
            return (0.0, 0.0);
        };
        let newest = past.points.back().map_or(0, |point| point.at_ms);
        let since = newest.saturating_sub(seconds * 1000);
        let mut ended = (0.0, 0.0);
        let mut before = since;
        for point in past.points.iter().filter(|point| point.at_ms > since) {
            let seconds = point.at_ms.saturating_sub(before) as f64 / 1000.0;
            before = point.at_ms;
            ended.0 += point.rate * seconds;
            ended.1 += point.errors * seconds;
        }
        ended
    }
}

impl Past {
    fn tell(&mut self, seen: &ControllerView, at_ms: u64) -> Point {
        let (all, errors) = seen.ended();
        let (then, all_then, errors_then) = self.last.replace((at_ms, all, errors)).unwrap_or((
            // of the first moment nothing is known but how things are
            at_ms.saturating_sub(1000),
            all,
            errors,
        ));
        let seconds = (at_ms.saturating_sub(then).max(1)) as f64 / 1000.0;
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        // the first is as old as the window
        while self.took.len() >= POINTS
            || (self.took.get(1)).is_some_and(|(then, _)| at_ms.saturating_sub(*then) >= WINDOW_MS)
        {
            self.took.pop_front();
        }
        self.took.push_back((at_ms, seen.took.clone()));
        let (oldest, newest) = (self.took.front(), self.took.back());
        let percentile = |share| percentile(&oldest?.1, &newest?.1, share);
        let point = Point {
            at_ms,
            queued: seen.queued,
            oldest_ms: seen.oldest_ms,
            running: seen.running as u64,
            waiting: seen.waiting as u64,
            parked: seen.parked as u64,
            rate: per_second(all, all_then),
            errors: per_second(errors, errors_then),
            p50_ms: percentile(0.5),
            p90_ms: percentile(0.9),
            p99_ms: percentile(0.99),
        };
        while self.points.len() >= POINTS
            || (self.points.front())
                .is_some_and(|point| at_ms.saturating_sub(point.at_ms) >= SPAN_MS)
        {
            self.points.pop_front();
        }
        self.points.push_back(point);
        point
    }
}

/// The time that `share` of what was counted between two looks took at most, as Prometheus reckons it: evenly spread between two bounds.
fn percentile(then: &Durations, now: &Durations, share: f64) -> Option<f64> {
    let count = now.count.checked_sub(then.count).filter(|n| *n > 0)?;
    let rank = share * count as f64;
    let (mut low, mut under) = (0.0, 0.0);
    for (index, &bound) in now.bounds_ms.iter().enumerate() {
        let before = then.below.get(index).copied().unwrap_or(0);
        let below = now.below.get(index)?.saturating_sub(before) as f64;
        if below >= rank {
            let within = if below > under {
                (rank - under) / (below - under)
            } else {
                1.0
            };
            return Some(low + (bound - low) * within);
        }
        (low, under) = (bound, below);
    }
    // beyond the last bound
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(runs: u64, errors: u64, below: [u64; 3]) -> ControllerView {
        ControllerView {
            name: "c".into(),
            results: [("success".into(), runs - errors), ("error".into(), errors)].into(),
            errors: vec!["error".into()],
            took: Durations {
                bounds_ms: vec![1.0, 10.0, 100.0],
                below: below.to_vec(),
                count: runs,
            },
            ..ControllerView::default()
        }
    }

    #[test]
    fn rates_are_per_second_and_percentiles_of_the_last_ten_seconds() {
        let mut history = History::default();
        let mut one = [seen(100, 0, [100, 100, 100])];
        history.tell(&mut one, 1_000);
        assert_eq!((one[0].point.rate, one[0].point.p50_ms), (0.0, None));
        // half of the new ones within 10 ms, the others within 100
        let mut two = [seen(120, 4, [100, 110, 120])];
        history.tell(&mut two, 3_000);
        let point = two[0].point;
        assert_eq!((point.rate, point.errors), (10.0, 2.0));
        assert_eq!((point.p50_ms, point.p99_ms), (Some(10.0), Some(98.2)));
        assert_eq!(history.lately("c", 60), (20.0, 4.0));
        for second in 0..20 {
            history.tell(&mut two, 4_000 + second * 1000);
        }
        assert_eq!(two[0].point.p50_ms, None, "it was long ago");
    }

    #[test]
    fn points_far_apart_count_for_the_time_between_them_and_are_forgotten_in_time() {
        let mut history = History::default();
        for tenth in 0..100 {
            history.tell(&mut [seen(tenth * 20, 0, [0, 0, 0])], tenth * 10_000);
        }
        assert_eq!(history.lately("c", 60), (120.0, 0.0));
        assert_eq!(history.read()["c"].len(), 30);
    }

    #[test]
    fn history_is_bounded_and_ends_with_its_controller() {
        let mut history = History::default();
        for second in 0..1000 {
            history.tell(&mut [seen(second, 0, [0, 0, second])], second * 1000);
        }
        let points = &history.read()["c"];
        assert_eq!(points.len(), POINTS);
        assert_eq!(points.last().map(|point| point.at_ms), Some(999_000));
        history.tell(&mut [], 1_000_000);
        assert!(history.read().is_empty());
    }
}
