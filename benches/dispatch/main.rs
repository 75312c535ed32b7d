//! Boatswain's dispatcher beside kube-rs' controller: reconciles a second, time from a change to its run, and what readers of the dashboard cost.
//!
//! `cargo bench -p boatswain-benches --bench dispatch [-- --help]`. Every measurement is a process of its own. No server takes part: both are given
//! full stores and a channel that names keys, which is the fastest way in that either has.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has failed"
)]

mod contestant;
mod options;
mod ours;
mod peer;
mod readers;
mod report;

use options::{Options, Part, Role};

fn main() {
    let options = Options::chosen();
    match &options.role {
        Some(Role::Contestant(task)) => contestant::run(task),
        None => measure(&options),
    }
}

fn measure(options: &Options) {
    let wanted = |part| options.only.contains(&part);
    if wanted(Part::Rate) {
        println!("{}", report::rates(options));
    }
    if wanted(Part::Cores) {
        println!("{}", report::cores(options));
    }
    if wanted(Part::Latency) {
        println!("{}", report::latencies(options));
    }
    if wanted(Part::Readers) {
        println!("{}", readers::latencies(options));
    }
}
