//! What a test ends with: nothing of its trees is left.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Clock;
use crate::stats::Registry;
use crate::tree::Observer;

/// Asserts that nothing of a tree is left: neither actors, in it or left behind by it, nor tasks.
///
/// # Panics
/// If something is; the message names it.
#[track_caller]
pub fn assert_clean(observer: &Observer) {
    assert_eq!(remains(&observer.registry), None, "the tree left something");
}

fn remains(registry: &Registry) -> Option<String> {
    let (alive, tasks) = (registry.alive(), registry.tasks.load(Ordering::Acquire));
    (tasks > 0 || !alive.is_empty()).then(|| format!("{tasks} tasks, alive: {}", alive.join(", ")))
}

/// The threads of this process before a test: what is there later was started by the test, or by another test meanwhile.
///
/// Threads are told apart by name, of which Linux keeps 15 bytes. Elsewhere none are seen.
#[derive(Clone, Debug)]
pub struct Census {
    before: BTreeSet<String>,
}

impl Census {
    /// Counts the threads there are.
    #[must_use]
    pub fn take() -> Census {
        Census {
            before: threads().into_iter().map(|(id, _)| id).collect(),
        }
    }

    /// Asserts that nothing of a tree is left, nor any thread started since whose name `is_ours` claims.
    ///
    /// # Panics
    /// If something is left; the message names it.
    #[track_caller]
    pub fn assert_clean(&self, observer: &Observer, is_ours: impl Fn(&str) -> bool) {
        assert_clean(observer);
        self.assert_no_threads(is_ours);
    }

    /// Asserts that no thread started since is left whose name `is_ours` claims.
    ///
    /// In a process that runs other tests at the same time claim only names that no other test's threads can have; in one of its own, all.
    ///
    /// # Panics
    /// If one is left; the message names it.
    #[track_caller]
    pub fn assert_no_threads(&self, is_ours: impl Fn(&str) -> bool) {
        // a thread that has been joined may be listed a moment longer: the kernel tells whoever waits first
        for _ in 0..100_000 {
            if self.started_since(&is_ours).is_empty() {
                return;
            }
            std::thread::yield_now();
        }
        let left = self.started_since(&is_ours);
        assert!(left.is_empty(), "threads are left: {}", left.join(", "));
    }

    fn started_since(&self, is_ours: impl Fn(&str) -> bool) -> Vec<String> {
        let since = threads()
            .into_iter()
            .filter(|(id, _)| !self.before.contains(id));
        since
            .map(|(_, name)| name)
            .filter(|name| is_ours(name))
            .collect()
    }
}

/// Id and name of every thread of this process, as far as the system tells.
fn threads() -> Vec<(String, String)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let thread = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_string_lossy().into_owned();
        // a thread that ends while it is looked at is none
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((id, name.trim_end().to_owned()))
    };
    tasks.flatten().filter_map(thread).collect()
}

thread_local! {
    /// The trees started on this thread since the brood was gathered.
    static STARTED: RefCell<Option<Vec<Weak<Registry>>>> = const { RefCell::new(None) };
}

/// All trees that one test starts on its thread.
pub(crate) struct Brood(());

impl Brood {
    pub(crate) fn gather() -> Brood {
        STARTED.set(Some(Vec::new()));
        Brood(())
    }

    pub(crate) fn add(registry: &Arc<Registry>) {
        STARTED.with_borrow_mut(|started| {
            if let Some(started) = started {
                started.push(Arc::downgrade(registry));
            }
        });
    }

    /// Asserts that nothing of them is left. What was killed by the last words of a test has yet to have its last turn.
    pub(crate) async fn assert_gone(self, clock: &Clock) {
        let trees = STARTED.take().unwrap_or_default();
        let remains = || {
            let trees = trees.iter().filter_map(Weak::upgrade);
            trees.filter_map(|tree| remains(&tree)).next()
        };
        for _ in 0..30 {
            if remains().is_none() {
                return;
            }
            clock.sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(remains(), None, "a tree of this test left something");
    }
}

impl Drop for Brood {
    fn drop(&mut self) {
        STARTED.take();
    }
}
