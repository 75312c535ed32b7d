//! Decides how each object is kept.

use std::any::TypeId;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;

use super::body::Body;
use super::dictionary::Dictionary;
use super::memo::{Decoded, Memo, MemoStatus, Outcome};
use crate::kind::Kind;
use crate::object::{DecodeError, Object, Recall};
use crate::opener::Opener;
use crate::selection::Selection;
use crate::sync::lock;
use crate::transform::Transform;

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
/// Stored objects at which one is trained anew at the earliest while the first list is read.
const MANY: usize = 50_000;

/// Stored objects at which the dictionary trained at `trained` of them is due for another. The first ones of a list are often of one namespace and alike, so
/// another is worth its time when there are many more; once the list is in, half more are enough.
fn due(trained: usize, synced: bool) -> usize {
    match (trained, synced) {
        (0, _) => FEW,
        (trained, true) => trained + trained / 2,
        (trained, false) => (trained * 2).max(MANY),
    }
}

/// How an informer keeps its objects.
///
/// Equal options keep equal objects in the same way; closures are equal to their clones only.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreOptions {
    /// In which form. Default [`Layout::Compact`].
    pub layout: Layout,
    /// Bytes for recently decoded objects, estimated from their JSON. Default 16 MiB; 0 decodes at every read.
    pub memo: usize,
    /// What is left out of objects. Default `managedFields`.
    pub transform: Transform,
    /// Whether objects hold secrets: they are then neither packed with a dictionary made of them nor remembered in decoded form, and their bytes are wiped from
    /// memory when the last reader has let go of them. What the HTTP client buffers and what readers decode is not in our hand. Secrets are always
    /// treated so. Default false.
    pub sensitive: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Compact,
            memo: 16 << 20,
            transform: Transform::default(),
            sensitive: false,
        }
    }
}

impl StoreOptions {
    /// As they are applied to a kind.
    fn of_kind(self, kind: &Kind) -> Self {
        let secrets = kind.holds_secrets();
        Self {
            sensitive: self.sensitive || secrets,
            ..self
        }
    }
}

/// In which form objects are kept. What readers see is the same.
#[derive(Clone, PartialEq)]
pub enum Layout {
    /// As JSON, packed by zstd with a dictionary trained on the kind where an object has more than 1 KiB; decoded when it is read.
    Compact,
    /// As in `Compact`, and decoded when it arrives, for kinds of which every object is read again and again. Made by [`Layout::typed`]. Takes 5 to 8 times
    /// the bytes of the JSON.
    Typed(Decoder),
}

/// Decodes every object of a store as one type.
#[derive(Clone, Copy)]
pub struct Decoder {
    of: TypeId,
    decode: fn(&Object) -> Outcome,
}

impl PartialEq for Decoder {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Layout {
    /// Objects are kept decoded as `K`.
    #[must_use]
    pub fn typed<K: DeserializeOwned + Send + Sync + 'static>() -> Self {
        let decode = |object: &Object| {
            let decoded = catch_unwind(AssertUnwindSafe(|| object.parse::<K>()));
            let outcome = decoded.unwrap_or_else(|_| {
                Err(DecodeError {
                    key: object.key().clone(),
                    reason: "decoding it panicked".into(),
                })
            });
            (TypeId::of::<K>(), outcome.map(|object| object as Decoded))
        };
        Self::Typed(Decoder {
            of: TypeId::of::<K>(),
            decode,
        })
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "Compact",
            Self::Typed(_) => "Typed",
        })
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

/// Turns objects as they arrive into objects as they are kept.
pub(crate) struct Keeper {
    options: StoreOptions,
    memo: Option<Arc<Memo>>,
    press: Mutex<Press>,
}

struct Press {
    dictionary: Option<Arc<Dictionary>>,
    /// Objects stored when a dictionary was last trained.
    trained: usize,
}

/// An object as it is kept.
pub(crate) struct Kept {
    pub(crate) object: Object,
    /// Why the transform was not applied.
    pub(crate) untransformed: Option<String>,
}

impl Keeper {
    pub(crate) fn new(kind: &Kind, options: StoreOptions) -> Self {
        let options = options.of_kind(kind);
        let sensitive = options.sensitive;
        let memo = (!sensitive && options.memo > 0).then(|| Arc::new(Memo::new(options.memo)));
        Self {
            memo,
            press: Mutex::new(Press {
                dictionary: None,
                trained: 0,
            }),
            options,
        }
    }

    /// In what respect these objects are kept otherwise than `asked`; `None` where they are kept so.
    pub(crate) fn differs(&self, kind: &Kind, asked: StoreOptions) -> Option<&'static str> {
        let (kept, asked) = (&self.options, asked.of_kind(kind));
        let respects = [
            ("transform", kept.transform == asked.transform),
            ("sensitive", kept.sensitive == asked.sensitive),
            ("layout", kept.layout == asked.layout),
            ("memo", kept.memo == asked.memo),
        ];
        let different = respects.into_iter().find(|(_, same)| !same)?;
        Some(different.0)
    }

    /// What objects go through when they arrive.
    pub(crate) fn opener(&self, selection: &Selection) -> Opener {
        let StoreOptions {
            transform,
            sensitive,
            ..
        } = &self.options;
        Opener::new(
            Some(selection),
            transform.clone(),
            *sensitive,
            self.memo.clone(),
        )
    }

    /// The object as it is to be kept; under the very key of the `stored` state that it follows, if any. Runs the code of users.
    pub(crate) fn keep(&self, arrived: &Object, stored: Option<&Object>) -> Kept {
        let (changed, untransformed) = self.transform(arrived);
        let object = changed.as_ref().unwrap_or(arrived);
        let packed = self.pack(object.body());
        let recall = match (&self.options.layout, self.options.sensitive) {
            (Layout::Typed(Decoder { decode, .. }), false) => {
                Some(Recall::Pinned(Arc::new(decode(object))))
            }
            _ => None,
        };
        let key = stored.map_or(object.key(), Object::key);
        let object = match (packed, recall) {
            (None, None) if key.is_same_text(object.key()) => object.clone(),
            (packed, recall) => object.kept(
                key,
                packed.unwrap_or_else(|| Body::Plain(object.json())),
                recall.unwrap_or_else(|| object.recall().clone()),
            ),
        };
        Kept {
            object,
            untransformed,
        }
    }

    fn transform(&self, arrived: &Object) -> (Option<Object>, Option<String>) {
        if !self.options.transform.has_closure() {
            return (None, None);
        }
        match arrived
            .body()
            .read(|json| self.options.transform.apply(json))
        {
            Ok(None) => (None, None),
            Ok(Some(json)) => {
                let body = if self.options.sensitive {
                    Body::sealed(json)
                } else {
                    Body::plain(json)
                };
                (
                    Some(arrived.kept(arrived.key(), body, arrived.recall().clone())),
                    None,
                )
            }
            // its words may quote what it choked on
            Err(_) if self.options.sensitive => (None, Some("it failed".to_owned())),
            Err(reason) => (None, Some(reason)),
        }
    }

    /// `None` if the body is best kept as it is.
    fn pack(&self, body: &Body) -> Option<Body> {
        let Body::Plain(json) = body else { return None };
        if self.options.sensitive || json.len() < SMALL {
            return None;
        }
        let dictionary = lock(&self.press).dictionary.clone();
        if dictionary.is_none() && json.len() < LARGE {
            return None;
        }
        Body::packed(json, dictionary.as_ref())
    }

    /// Whether a dictionary is due at so many stored objects, of a list that is still being read or not.
    pub(crate) fn is_due(&self, objects: usize, synced: bool) -> bool {
        !self.options.sensitive && objects >= due(lock(&self.press).trained, synced)
    }

    /// Trains a dictionary on some of the stored objects. Whether stored ones should be packed anew.
    pub(crate) fn train(&self, stored: &[Object]) -> bool {
        let stride = (stored.len() / SAMPLES).max(1);
        let samples: Vec<_> = stored
            .iter()
            .filter(|object| object.body().json_size() >= SMALL)
            .step_by(stride)
            .take(SAMPLES)
            // only the part that is learned from: all of two hundred large objects at once would be gigabytes
            .map(|object| {
                let body = object.body();
                body.read(|json| json[..json.len().min(SAMPLE)].to_vec())
            })
            .collect();
        let samples: Vec<_> = samples.iter().map(Vec::as_slice).collect();
        let enough = samples.len() >= SAMPLES / 2;
        let trained = enough.then(|| Dictionary::train(&samples)).flatten();
        let mut press = lock(&self.press);
        press.trained = stored.len();
        match trained {
            None => false,
            Some(dictionary) => {
                press.dictionary = Some(Arc::new(dictionary));
                true
            }
        }
    }

    /// The object packed with the latest dictionary; `None` if it is, or is not to be packed.
    pub(crate) fn repack(&self, object: &Object) -> Option<Object> {
        let latest = lock(&self.press).dictionary.clone()?;
        let (used, json) = (object.body().dictionary(), object.body().json_size());
        if used.is_some_and(|used| Arc::ptr_eq(used, &latest))
            || json < SMALL
            || latest.satisfies(object.size(), json)
        {
            return None;
        }
        let body = object
            .body()
            .read(|json| Body::packed(json, Some(&latest)))?;
        (body.size() < object.body().size())
            .then(|| object.kept(object.key(), body, object.recall().clone()))
    }

    pub(crate) fn memo(&self) -> MemoStatus {
        self.memo
            .as_ref()
            .map_or_else(MemoStatus::default, |memo| memo.status())
    }

    /// Bytes of the dictionary in use.
    pub(crate) fn dictionary(&self) -> usize {
        let press = lock(&self.press);
        press
            .dictionary
            .as_ref()
            .map_or(0, |dictionary| dictionary.size())
    }
}
