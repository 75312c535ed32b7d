//! Starts contestants and puts what they found into tables.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::contestant::{DASHBOARD, Found};
use crate::options::{Ask, Options, Shape, Who};

const HOT: usize = 16;
/// Keys that changes are spread over.
pub(crate) const CHANGED: usize = 1000;

/// The median of several runs of one measurement, each number for itself.
fn median(options: &Options, who: Who, task: &[String]) -> Found {
    let runs: Vec<_> = (0..options.runs)
        .map(|_| run(options, who, task, |_| {}))
        .collect();
    Found {
        rate: middle(&runs, |found| found.rate),
        cpu: middle(&runs, |found| found.cpu),
        latency: [0, 1, 2].map(|which| middle(&runs, |found| found.latency[which])),
    }
}

/// The median of one number of several runs.
pub(crate) fn middle(runs: &[Found], of: impl Fn(&Found) -> f64) -> f64 {
    let mut values: Vec<_> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One run. `dashboard` is told where the contestant serves one, before it is measured.
pub(crate) fn run(
    options: &Options,
    who: Who,
    task: &[String],
    mut dashboard: impl FnMut(SocketAddr),
) -> Found {
    let mut contestant = Command::new(std::env::current_exe().expect("this program"))
        .args(["contestant", who.name()])
        .arg(format!("--seconds={}", options.seconds))
        .args(task)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let told = BufReader::new(contestant.stdout.take().expect("piped"));
    let mut answer = String::new();
    for line in told.lines() {
        let line = line.expect("text");
        match line.strip_prefix(DASHBOARD) {
            Some(address) => dashboard(address.parse().expect("an address")),
            None => answer = line,
        }
    }
    contestant.wait().expect("ended");
    let found = serde_json::from_str(&answer)
        .expect("a contestant ended without an answer, with its reason above");
    eprintln!("{} {}: {found:?}", who.name(), task.join(" "));
    found
}

pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 10_000.0 => format!("{:.0} k", value / 1000.0),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

/// How many times the first is faster than the last.
fn ratio(rates: &[f64]) -> String {
    match rates {
        [ours, peer] => format!("{:.1} x", ours / peer),
        _ => "-".into(),
    }
}

fn head(options: &Options, first: &str, columns: &[&str], last: Option<&str>) -> String {
    let mut cells = vec![first.to_owned()];
    for who in &options.contestants {
        cells.extend(
            columns
                .iter()
                .map(|column| format!("{} {column}", who.name())),
        );
    }
    cells.extend(last.map(str::to_owned));
    let line = cells.iter().map(|_| "---|").collect::<String>();
    format!("| {} |\n|{line}\n", cells.join(" | "))
}

/// Reconciles a second, as fast as it goes.
pub(crate) fn rates(options: &Options) -> String {
    let mut table = head(
        options,
        "reconciles a second",
        &["", "CPU, µs"],
        Some("ratio"),
    );
    for keys in [options.many, HOT] {
        for shape in [Shape::Noop, Shape::Yield] {
            let task = [
                format!("--keys={keys}"),
                format!("--shape={}", shape.name()),
            ];
            let _ = write!(table, "| {keys} keys, {} |", shape.name());
            let mut all = Vec::new();
            for who in &options.contestants {
                let Found { rate, cpu, .. } = median(options, *who, &task);
                let _ = write!(table, " {} | {cpu:.2} |", number(rate));
                all.push(rate);
            }
            let _ = writeln!(table, " {} |", ratio(&all));
        }
    }
    table
}

/// The same on one core and on two.
pub(crate) fn cores(options: &Options) -> String {
    let mut table = head(
        options,
        "reconciles a second",
        &["one core", "two cores", "gain"],
        None,
    );
    for shape in [Shape::Noop, Shape::Yield] {
        let keys = options.many;
        let _ = write!(table, "| {keys} keys, {} |", shape.name());
        for who in &options.contestants {
            let rates = [1, 2].map(|cores| {
                let task = [
                    format!("--keys={keys}"),
                    format!("--shape={}", shape.name()),
                    format!("--cores={cores}"),
                    format!("--ask={}", Ask::Requeue.name()),
                ];
                median(options, *who, &task).rate
            });
            let [one, two] = rates;
            let _ = write!(
                table,
                " {} | {} | {:.2} x |",
                number(one),
                number(two),
                two / one
            );
        }
        table.push('\n');
    }
    table
}

/// Time from a change to its run.
pub(crate) fn latencies(options: &Options) -> String {
    let columns = ["p50, µs", "p99, µs", "p99.9, µs"];
    let mut table = head(options, "from a change to its run", &columns, None);
    for changes in &options.changes {
        let _ = write!(table, "| {changes} changes a second |");
        for who in &options.contestants {
            let task = [format!("--keys={CHANGED}"), format!("--changes={changes}")];
            for value in median(options, *who, &task).latency {
                let _ = write!(table, " {} |", number(value));
            }
        }
        table.push('\n');
    }
    table
}
