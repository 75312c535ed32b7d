//! Which other objects woke keys, lately.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Instant,
};

use boatswain_cache::{Key, Version};

use crate::sync::lock;

/// Changes that are remembered; of more the oldest are forgotten.
const REMEMBERED: usize = 1024;

/// A change of another object that woke a key.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) key: Key,
    /// What is selected where it changed.
    pub(crate) source: Arc<str>,
    pub(crate) object: Key,
    /// That of the new state, or the last of one that is gone.
    pub(crate) version: Version,
    pub(crate) at: Instant,
}

/// Written by the triggers of a controller, read by those who ask.
#[derive(Default)]
pub(crate) struct Heards(Mutex<VecDeque<Heard>>);

impl Heards {
    pub(crate) fn tell(&self, news: impl IntoIterator<Item = Heard>) {
        let mut heard = lock(&self.0);
        for news in news {
            if heard.len() >= REMEMBERED {
                heard.pop_front();
            }
            heard.push_back(news);
        }
    }

    /// The newest of `key` that was heard by `by`.
    pub(crate) fn newest(&self, key: &Key, by: Instant) -> Option<Heard> {
        let heard = lock(&self.0);
        let mut of_it = heard.iter().rev().filter(|heard| heard.key == *key);
        of_it.find(|heard| heard.at <= by).cloned()
    }
}
