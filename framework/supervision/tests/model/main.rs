//! A hundred thousand random schedules of start, crash, stop, suspend and escalate against real trees in virtual time, with the promises of
//! `docs/semantics.md` as assertions. A failure names its seed: `BOATSWAIN_SEED=<seed> cargo test -p boatswain-supervision --test model`.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod schedule;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use boatswain_supervision::{Entropy, testing};
use tracing::subscriber::NoSubscriber;

const SCHEDULES: u64 = 100_000;

#[test]
fn even_schedules_break_no_promise() {
    explore(0);
}

#[test]
fn odd_schedules_break_no_promise() {
    explore(1);
}

/// Two halves, so that two cores share the work.
fn explore(first: u64) {
    static QUIET: Once = Once::new();
    // the panics of the actors are wanted: somebody listens to the log, and it is nobody
    QUIET.call_once(|| {
        tracing::subscriber::set_global_default(NoSubscriber::new()).expect("the only one");
    });
    match std::env::var("BOATSWAIN_SEED") {
        Ok(seed) if first == 0 => play(seed.parse().expect("a seed is a number")),
        Ok(_) => {}
        Err(_) => (first..SCHEDULES).step_by(2).for_each(play),
    }
}

fn play(seed: u64) {
    let entropy = Entropy::seeded(seed);
    let played = catch_unwind(AssertUnwindSafe(|| {
        testing::run(seed, |options| schedule::play(entropy, options))
    }));
    if let Err(why) = played {
        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("seed {seed}: {why}");
    }
}
