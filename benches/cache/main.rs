//! Boatswain's cache beside kube-rs' reflector and client-go's informer, on the same bytes from the same server.
//!
//! `cargo bench -p boatswain-benches --bench cache [-- --help]`. The server and every contestant are processes of their own, so that memory and CPU
//! seconds are theirs alone. Contestants run with the defaults of their libraries and count what they are told of.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has failed"
)]

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;

use crate::options::{Options, Part, Role, Who};
use crate::pods::Pods;
use crate::processes::Memory;
use crate::run::{Extent, Values};

mod contestant;
mod framing;
mod http;
mod options;
mod ours;
mod peer;
mod pods;
mod processes;
mod report;
mod run;
mod serve;
mod workloads;

fn main() {
    let options = Options::chosen();
    let pods = |objects| Pods::new(options.seed, objects, options.workloads);
    match &options.role {
        Some(Role::Serve { objects }) => serve::serve(pods(*objects), options.stream_lists),
        Some(Role::Contestant { who, address }) => match who {
            Who::KubeRs | Who::KubeRsLean => peer::run(address, *who == Who::KubeRsLean),
            _ => ours::run(address, *who == Who::BoatswainTyped),
        },
        Some(Role::Show { objects }) => show(&pods(*objects)),
        None => measure(&options),
    }
}

fn measure(options: &Options) {
    let sizes = sizes(&pods_of(options, 2000));
    println!(
        "Pods of {:.0} bytes, {:.0} without managedFields, of {} workloads; medians of {} runs. Memory is what exceeds that of the same process with no pods. \
         One machine for all, JSON over plain HTTP on the loopback; Rust contestants use the allocator of the C library.",
        sizes.0, sizes.1, options.workloads, options.runs
    );
    let mut csv = report::csv_head();
    let wanted = |part| options.only.contains(&part);
    if wanted(Part::Cache) {
        caches(options, &mut csv);
    }
    if wanted(Part::Framing) {
        eprintln!("framing");
        let count = if options.test { 500 } else { 5000 };
        println!(
            "{}",
            framing::table(&pods_of(options, count), 2 * options.runs + 1)
        );
    }
    if wanted(Part::Growth) {
        growth(options, &mut csv);
    }
    if let Some(path) = &options.csv {
        std::fs::write(path, csv).expect("written");
    }
}

fn pods_of(options: &Options, count: u64) -> Pods {
    Pods::new(options.seed, count, options.workloads)
}

fn caches(options: &Options, csv: &mut String) {
    let wants_go = options.contestants.iter().any(|who| who.is_go());
    let go = wants_go.then(processes::build_go).flatten();
    let entrants: Vec<_> = options
        .contestants
        .iter()
        .copied()
        .filter(|who| !who.is_go() || go.is_some())
        .map(|who| (who, run::baseline(options, who, go.as_ref())))
        .collect();
    for &objects in &options.objects {
        let mut runs: Vec<_> = entrants.iter().map(|(who, _)| (*who, Vec::new())).collect();
        // in turns, so that a noisy minute does not hit one of them alone
        for number in 1..=options.runs {
            for ((who, empty), (_, runs)) in entrants.iter().zip(&mut runs) {
                let values = one(
                    options,
                    *who,
                    go.as_ref(),
                    objects,
                    *empty,
                    Extent::Whole,
                    number,
                );
                csv.push_str(&report::csv_line(*who, objects, number, &values));
                runs.push(values);
            }
        }
        let medians: Vec<_> = runs
            .into_iter()
            .map(|(who, runs)| (who, run::median(&runs)))
            .collect();
        println!("{}", report::table(objects, &medians));
    }
}

fn growth(options: &Options, csv: &mut String) {
    let who = Who::Boatswain;
    let empty = run::baseline(options, who, None);
    let mut steps = Vec::new();
    for &objects in &options.growth {
        let runs: Vec<_> = (1..=options.runs)
            .map(|number| {
                let values = one(options, who, None, objects, empty, Extent::Synced, number);
                csv.push_str(&report::csv_line(who, objects, number, &values));
                values
            })
            .collect();
        steps.push((objects, run::median(&runs)));
    }
    println!("{}", report::growth(&steps));
    if let Some(path) = &options.svg {
        std::fs::write(path, report::svg(&steps)).expect("drawn");
    }
}

/// One run, told of on the standard error.
fn one(
    options: &Options,
    who: Who,
    go: Option<&PathBuf>,
    objects: u64,
    empty: Memory,
    extent: Extent,
    number: usize,
) -> Values {
    eprintln!(
        "{objects} pods, run {number} of {}: {}",
        options.runs,
        who.name()
    );
    let values = run::run(options, who, go, objects, empty, extent);
    let shown: Vec<_> = values
        .iter()
        .map(|(measure, value)| format!("{} {}", measure.column(), report::number(*value)))
        .collect();
    eprintln!("    {}", shown.join(", "));
    values
}

/// Average bytes of a pod, with and without `managedFields`.
fn sizes(pods: &Pods) -> (f64, f64) {
    let (mut whole, mut slim) = (0, 0);
    let mut json = Vec::new();
    for pod in 0..pods.count() {
        json.clear();
        pods.write(pod, 1_000_000, true, &mut json);
        whole += json.len();
        slim += boatswain_cache::envelope::open(&json)
            .expect("a pod")
            .json()
            .len();
    }
    let each = |bytes: usize| bytes as f64 / pods.count().max(1) as f64;
    (each(whole), each(slim))
}

fn show(pods: &Pods) {
    let mut json = Vec::new();
    pods.write(pods.count() / 2, 1_000_000, true, &mut json);
    println!("{}", String::from_utf8_lossy(&json));
    let (whole, slim) = sizes(pods);
    println!("{whole:.0} bytes on average, {slim:.0} without managedFields");
}

/// Looks at two fields, so that a read is one.
fn looked_at(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    std::hint::black_box((node, phase)).0.is_some()
}
