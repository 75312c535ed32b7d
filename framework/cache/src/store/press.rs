//! Makes objects small, and learns how while there come more of them.

use std::sync::{Arc, Mutex};

use super::body::{Body, By, Packed};
use super::dictionary::Dictionary;
use super::head::{Heads, is_worth_it};
use crate::key::Key;
use crate::object::Object;
use crate::sync::lock;

#[cfg(test)]
mod tests;

/// Objects below this many bytes of JSON are kept as they are: there is little to win.
const SMALL: usize = 1 << 10;
/// Objects above this many bytes are packed without waiting for a dictionary, which would do little for them.
const LARGE: usize = 32 << 10;
/// Objects a dictionary is trained on: more cost time and gain nothing.
const SAMPLES: usize = 96;
/// Bytes of one object a dictionary is trained on.
const SAMPLE: usize = 16 << 10;
/// Stored objects at which a dictionary is first worth its while.
const FEW: usize = 200;
/// Objects without a neighbour to be packed by at which one is trained while the first list is read: it costs the time of some thousand of them.
const MANY: usize = 4_000;

/// Packs the objects of one informer.
pub(crate) struct Press {
    state: Mutex<State>,
    heads: [Mutex<Heads>; 2],
}

/// Who packs: each looks at neighbours of its own, so that none waits for the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hand {
    Opener,
    Keeper,
}

struct State {
    dictionary: Option<Arc<Dictionary>>,
    /// Objects stored when it last learned from them.
    learned: usize,
    /// Whether it was trained since, or just took a few of them as they were.
    trained: bool,
    /// Objects packed by the dictionary since then, not by a neighbour.
    referred: usize,
    /// Whether there may be objects that a dictionary of before was used for.
    behind: bool,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A dictionary is to be made of some objects as they are: it costs nothing, and packs what is like them.
    Quote,
    /// A dictionary is to be trained.
    Train,
    /// Objects are to be packed with the latest dictionary.
    Repack,
}

impl Press {
    pub(crate) fn new() -> Self {
        let state = State {
            dictionary: None,
            learned: 0,
            trained: false,
            referred: 0,
            behind: false,
        };
        Self {
            state: Mutex::new(state),
            heads: Default::default(),
        }
    }

    /// `None` if the JSON is best kept as it is. One is packed by the last one of its neighbours that was not, if it is like it: objects of one origin stand
    /// side by side in a list and are alike in all but names, times and addresses. All others are packed by the dictionary.
    pub(crate) fn pack(&self, hand: Hand, key: &Key, json: &[u8]) -> Option<Body> {
        if json.len() < SMALL {
            return None;
        }
        let dictionary = self.latest();
        if json.len() >= LARGE {
            return Packed::new(json, dictionary.as_ref()).map(Body::Packed);
        }
        let dictionary = dictionary?;
        let neighbour = lock(&self.heads[hand as usize]).pack(key, json);
        if let Some(packed) = neighbour {
            return Some(Body::Packed(packed));
        }
        self.refer(hand, key, json, &dictionary).map(Body::Head)
    }

    /// Packs what others will refer to, and so refers to no neighbour. `None` as of [`Press::pack`], and if it is large or there is no dictionary yet.
    pub(crate) fn lead(&self, key: &Key, json: &[u8]) -> Option<Arc<Packed>> {
        let fits = (SMALL..LARGE).contains(&json.len());
        let dictionary = self.latest().filter(|_| fits)?;
        self.refer(Hand::Opener, key, json, &dictionary)
    }

    /// An object in which only what `frame` says is other than in `head`; `None` if that is too much.
    pub(crate) fn edited(head: &Arc<Packed>, frame: &[u8]) -> Option<Body> {
        is_worth_it(head, frame).then(|| Body::Packed(Packed::edited(head, frame.into())))
    }

    fn latest(&self) -> Option<Arc<Dictionary>> {
        lock(&self.state).dictionary.clone()
    }

    fn refer(
        &self,
        hand: Hand,
        key: &Key,
        json: &[u8],
        dictionary: &Arc<Dictionary>,
    ) -> Option<Arc<Packed>> {
        lock(&self.state).referred += 1;
        let head = Arc::new(Packed::new(json, Some(dictionary))?);
        lock(&self.heads[hand as usize]).lead(key, json, &head);
        Some(head)
    }

    /// What is due at so many stored objects. Until the first list is in, nothing is done that could as well be done behind it.
    pub(crate) fn due(&self, objects: usize, synced: bool) -> Option<Due> {
        let state = lock(&self.state);
        let learned = state.learned;
        let train = match synced {
            true => objects >= learned + learned / 2 || !state.trained,
            // the first ones of a list are often of one namespace and alike
            false => state.referred >= if state.trained { 10 * MANY } else { MANY },
        };
        let quote = !state.trained && objects >= learned * 4;
        match () {
            () if objects < FEW => None,
            () if train => Some(Due::Train),
            () if synced && state.behind => Some(Due::Repack),
            () if quote => Some(Due::Quote),
            () => None,
        }
    }

    /// Learns from some of the objects that are stored; `stored` of them are, and `some` lie all over them.
    pub(crate) fn learn(&self, due: Due, stored: usize, some: &[Object]) {
        let fit = some
            .iter()
            .filter(|object| object.body().json_size() >= SMALL);
        let fit: Vec<_> = fit.collect();
        let stride = fit.len().div_ceil(SAMPLES).max(1);
        // only the part that is learned from: all of a hundred large objects at once would be gigabytes
        let parts = |first: usize, stride: usize| -> Vec<Vec<u8>> {
            let part = |json: &[u8]| json[..json.len().min(SAMPLE)].to_vec();
            let chosen = fit.iter().skip(first).step_by(stride);
            chosen.map(|object| object.body().read(part)).collect()
        };
        let samples = parts(0, stride);
        let enough = samples.len() >= SAMPLES / 4;
        let learned = match due {
            _ if !enough => None,
            Due::Quote => Dictionary::quote(&samples),
            Due::Train | Due::Repack => Dictionary::train(&samples, &parts(stride / 2, stride * 3)),
        };
        let mut state = lock(&self.state);
        state.learned = stored;
        state.trained = due == Due::Train;
        if state.trained {
            state.referred = 0;
        }
        if let Some(dictionary) = learned {
            state.dictionary = Some(Arc::new(dictionary));
            state.behind = true;
        }
    }

    /// The object packed with the latest dictionary; `None` if it is, or is not to be packed.
    pub(crate) fn repack(&self, object: &Object) -> Option<Object> {
        let latest = self.latest()?;
        let (body, json) = (object.body(), object.body().json_size());
        if json < SMALL || latest.satisfies(body.size(), json) {
            return None;
        }
        let used = body.as_packed().map(Packed::by);
        let newest = matches!(used, Some(By::Dictionary(used)) if Arc::ptr_eq(used, &latest));
        // what others refer to stays in any case
        let led = matches!(body, Body::Head(head) if Arc::strong_count(head) > 1);
        if newest || led {
            return None;
        }
        let packed = body.read(|json| Packed::new(json, Some(&latest)))?;
        (packed.size() < body.size())
            .then(|| object.kept(object.key(), Body::Packed(packed), object.recall().clone()))
    }

    /// All objects there were when the latest dictionary was made have been looked at.
    pub(crate) fn repacked(&self) {
        lock(&self.state).behind = false;
    }

    /// Bytes of the dictionary in use.
    pub(crate) fn dictionary(&self) -> usize {
        let state = lock(&self.state);
        let dictionary = state.dictionary.as_ref();
        dictionary.map_or(0, |dictionary| dictionary.size())
    }
}
