//! What every contestant does: fills its cache, then answers one line for each line it is told.
//!
//! The first answer comes when it is synced. After that it understands `await NAMESPACE NAME VERSION`, `hot COUNT`, `cold COUNT`, `reconcile COUNT`,
//! `raw COUNT`, `gc` and `idle`. The Go module speaks the same.

use std::io::Write as _;
use std::time::Duration;

use boatswain_supervision::Clock;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::serve::scattered;

/// Objects each reconcile of the read-heavy mode reads.
pub(crate) const READS: u64 = 20;

/// What a contestant says after each thing it did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Seconds this took, as the contestant sees it.
    pub(crate) seconds: f64,
    /// CPU seconds of its process since it began.
    pub(crate) cpu: f64,
    /// Objects in the cache.
    pub(crate) objects: u64,
    /// Times its handler was called.
    pub(crate) calls: u64,
    /// Reads that found something.
    pub(crate) found: u64,
}

/// A cache that is kept up to date by threads of its own.
pub(crate) trait Cache {
    /// What names an object in it.
    type Key;
    /// A key from its parts.
    fn key(&self, namespace: &str, name: &str) -> Self::Key;
    /// The version of an object.
    fn version(&self, key: &Self::Key) -> Option<String>;
    /// Reads an object as a typed pod and looks at two of its fields.
    fn read(&self, key: &Self::Key) -> bool;
    /// Reads one value of an object without decoding the rest, where there is such a thing.
    fn raw(&self, key: &Self::Key) -> bool;
    /// All keys, sorted.
    fn keys(&self) -> Vec<Self::Key>;
    /// Objects in the cache.
    fn objects(&self) -> u64;
    /// Times the handler was called.
    fn calls(&self) -> u64;
}

/// CPU seconds of this process.
pub(crate) fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Waits for `done` by looking every 200 µs; nothing of a contestant is asked to wake anybody.
pub(crate) fn poll(mut done: impl FnMut() -> bool) {
    while !done() {
        #[expect(
            clippy::disallowed_methods,
            reason = "the cache works on other threads"
        )]
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// What a counter says when it has stopped: the handler may still be at it.
fn settled(count: impl Fn() -> u64) -> u64 {
    let mut before = count();
    loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "the handler works on another thread"
        )]
        std::thread::sleep(Duration::from_millis(2));
        let now = count();
        if now == before {
            return now;
        }
        before = now;
    }
}

/// Reports that `cache` is synced, `seconds` after it was begun, and obeys until its input ends.
pub(crate) fn obey<C: Cache>(cache: &C, seconds: f64) {
    let clock = Clock::system();
    let answer = |seconds, found| {
        let calls = settled(|| cache.calls());
        let answer = Answer {
            seconds,
            cpu: cpu(),
            objects: cache.objects(),
            calls,
            found,
        };
        println!("{}", serde_json::to_string(&answer).expect("plain data"));
        std::io::stdout().flush().expect("told");
    };
    answer(seconds, 0);
    let mut keys = Vec::new();
    // every cold read is of an object that was not read before, until all were
    let mut cursor = 0;
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<_> = line.split(' ').collect();
        if matches!(words[0], "hot" | "cold" | "reconcile" | "raw") && keys.is_empty() {
            keys = cache.keys();
        }
        let count: u64 = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let total = keys.len() as u64;
        let mut next = || {
            cursor += 1;
            &keys[scattered(cursor, total) as usize]
        };
        let begun = clock.now();
        let found = match words[0] {
            "await" => {
                let (key, version) = (cache.key(words[1], words[2]), words[3]);
                poll(|| cache.version(&key).as_deref() == Some(version));
                1
            }
            "hot" => {
                let key = next();
                (0..count).filter(|_| cache.read(key)).count()
            }
            "cold" => (0..count).filter(|_| cache.read(next())).count(),
            "reconcile" => (0..count * READS).filter(|_| cache.read(next())).count(),
            "raw" => (0..count).filter(|_| cache.raw(next())).count(),
            _ => 0,
        };
        answer((clock.now() - begun).as_secs_f64(), found as u64);
    }
}
