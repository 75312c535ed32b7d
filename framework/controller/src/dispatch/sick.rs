//! Whether a controller's reconciler panics on so many keys that it is the controller that is sick, not an object.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use boatswain_cache::Key;
use boatswain_supervision::Link;
use serde_json::{Value, json};

use crate::sync::lock;

/// Panics older than this do not count.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// So many keys that panicked within the window make it sick.
const KEYS: usize = 10;
/// Keys that are remembered; enough to say "many".
const REMEMBERED: usize = 1000;

/// The keys a controller panicked on lately; pure.
#[derive(Default)]
struct Panics {
    /// When each key did last.
    last: HashMap<Key, Instant>,
    is_sick: bool,
}

/// What has changed.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// It is sick: panics on so many keys.
    Sick(usize),
    /// No key has panicked for a whole window.
    Well,
}

impl Panics {
    fn tell(&mut self, key: &Key, now: Instant) -> Option<Turn> {
        if self.last.len() + 1 >= KEYS {
            self.forget(now);
        }
        if self.last.len() < REMEMBERED || self.last.contains_key(key) {
            self.last.insert(key.clone(), now);
        }
        let keys = self.last.len();
        if keys < KEYS || std::mem::replace(&mut self.is_sick, true) {
            return None;
        }
        Some(Turn::Sick(keys))
    }

    /// Looks whether time has healed it.
    fn look(&mut self, now: Instant) -> Option<Turn> {
        self.forget(now);
        (self.last.is_empty() && std::mem::take(&mut self.is_sick)).then_some(Turn::Well)
    }

    fn forget(&mut self, now: Instant) {
        self.last
            .retain(|_, at| now.saturating_duration_since(*at) < WINDOW);
        if self.last.is_empty() {
            self.last = HashMap::new();
        }
    }
}

/// The health of a controller, over all of its shards and incarnations. Told of every panic, looked at once a minute.
#[derive(Default)]
pub(crate) struct Sick {
    panics: Mutex<Panics>,
    /// The controller's place in the tree.
    node: Mutex<Option<Link>>,
}

impl Sick {
    /// A new incarnation of the controller's supervisor: it shows what there is to show.
    pub(crate) fn attach(&self, node: Link) {
        let panics = lock(&self.panics);
        node.degraded(panics.is_sick.then(|| words(panics.last.len())));
        *lock(&self.node) = Some(node);
    }

    pub(crate) fn panicked(&self, controller: &str, key: &Key, now: Instant) {
        let turn = lock(&self.panics).tell(key, now);
        self.show(controller, turn);
    }

    pub(crate) fn look(&self, controller: &str, now: Instant) {
        let turn = lock(&self.panics).look(now);
        self.show(controller, turn);
    }

    pub(crate) fn is_degraded(&self) -> bool {
        lock(&self.panics).is_sick
    }

    /// What is wrong with it.
    pub(crate) fn why(&self) -> Option<String> {
        let panics = lock(&self.panics);
        panics.is_sick.then(|| words(panics.last.len()))
    }

    /// For the tree: how many keys panicked lately, and whether that is too many.
    pub(crate) fn fact(&self) -> Value {
        let panics = lock(&self.panics);
        json!({ "panicking_keys": panics.last.len(), "degraded": panics.is_sick })
    }

    fn show(&self, controller: &str, turn: Option<Turn>) {
        let Some(turn) = turn else { return };
        let why = match turn {
            Turn::Sick(keys) => {
                let why = words(keys);
                tracing::error!(%controller, "degraded: {why}");
                Some(why)
            }
            Turn::Well => {
                tracing::info!(%controller, "no longer degraded: no key panicked within {WINDOW:?}");
                None
            }
        };
        if let Some(node) = &*lock(&self.node) {
            node.degraded(why);
        }
    }
}

fn words(keys: usize) -> String {
    format!("its reconciler panicked on {keys} keys or more within {WINDOW:?}")
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::Clock;

    use super::*;

    fn key(n: usize) -> Key {
        Key::new(Some("shop"), &format!("web-{n}"))
    }

    #[test]
    fn many_keys_make_it_sick_once_and_a_clean_window_heals_it() {
        let (mut panics, now) = (Panics::default(), Clock::system().now());
        let minute = Duration::from_secs(60);
        for _ in 0..1000 {
            assert_eq!(panics.tell(&key(0), now), None, "one key is one key");
        }
        for n in 1..KEYS - 1 {
            assert_eq!(panics.tell(&key(n), now), None);
        }
        assert_eq!(
            panics.tell(&key(KEYS), now + minute),
            Some(Turn::Sick(KEYS))
        );
        assert_eq!(
            panics.tell(&key(KEYS + 1), now + minute),
            None,
            "it is told once"
        );
        assert_eq!(panics.look(now + WINDOW), None, "not all are old");
        assert_eq!(panics.tell(&key(0), now + WINDOW), None);
        assert_eq!(panics.look(now + WINDOW + minute), None);
        assert_eq!(panics.look(now + 2 * WINDOW), Some(Turn::Well));
        assert_eq!(panics.look(now + 3 * WINDOW), None);
        assert_eq!(panics.last.capacity(), 0);
    }

    #[test]
    fn keys_that_panic_one_after_the_other_over_a_long_time_do_not_make_it_sick() {
        let (mut panics, mut now) = (Panics::default(), Clock::system().now());
        for n in 0..1000 {
            now += WINDOW / (KEYS as u32 - 2);
            assert_eq!(panics.tell(&key(n), now), None);
        }
        assert!(panics.last.len() <= KEYS);
        for n in 0..2 * REMEMBERED {
            panics.tell(&key(n), now);
        }
        assert_eq!(panics.last.len(), REMEMBERED);
    }
}
