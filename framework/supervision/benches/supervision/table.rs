//! Runs benchmarks through criterion and puts their medians side by side.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use criterion::Criterion;

pub(crate) struct Table {
    criterion: Criterion,
    rows: Vec<Row>,
}

struct Row {
    what: &'static str,
    /// By candidate, in nanoseconds.
    medians: Vec<(&'static str, f64)>,
}

impl Table {
    pub(crate) fn new(criterion: Criterion) -> Table {
        Table {
            criterion,
            rows: Vec::new(),
        }
    }

    /// Begins a row: what each of its candidates does.
    pub(crate) fn row(&mut self, what: &'static str) {
        self.rows.push(Row {
            what,
            medians: Vec::new(),
        });
    }

    /// One candidate of the row: `run` does it so many times.
    pub(crate) fn measure(&mut self, candidate: &'static str, mut run: impl FnMut(u64)) {
        let Some(row) = self.rows.last_mut() else {
            return;
        };
        // criterion gives its own figures only to files
        let samples = RefCell::new(Vec::new());
        let mut group = self.criterion.benchmark_group(row.what);
        group.bench_function(candidate, |bencher| {
            bencher.iter_custom(|times| {
                let begun = now();
                run(times);
                let took = begun.elapsed();
                samples
                    .borrow_mut()
                    .push(took.as_nanos() as f64 / times as f64);
                took
            });
        });
        group.finish();
        if let Some(median) = median(samples.into_inner()) {
            row.medians.push((candidate, median));
        }
    }

    pub(crate) fn finish(self) {
        self.criterion.final_summary();
        println!(
            "\n{:<34}{:>12}{:>12}{:>12}{:>12}",
            "median of one", "tokio", "actix", "supervised", "of actix"
        );
        for row in self.rows.iter().filter(|row| !row.medians.is_empty()) {
            let of = |name| row.medians.iter().find(|(candidate, _)| *candidate == name);
            let shown = |name| of(name).map_or(String::new(), |(_, nanos)| human(*nanos));
            let ratio = match (of("supervised"), of("actix")) {
                (Some((_, ours)), Some((_, theirs))) => format!("{:.2}", ours / theirs),
                _ => String::new(),
            };
            println!(
                "{:<34}{:>12}{:>12}{:>12}{ratio:>12}",
                row.what,
                shown("tokio"),
                shown("actix"),
                shown("supervised"),
            );
        }
    }
}

fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

fn human(nanos: f64) -> String {
    if nanos < 1_000.0 {
        format!("{nanos:.1} ns")
    } else {
        format!("{:.2?}", Duration::from_nanos(nanos as u64))
    }
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
