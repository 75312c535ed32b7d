//! Decides how each object is kept.

use std::any::TypeId;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::body::Body;
use super::memo::{Decoded, Memo, MemoStatus, Outcome};
use super::press::{Hand, Press};
use crate::kind::Kind;
use crate::object::{DecodeError, Object, Recall};
use crate::opener::Opener;
use crate::selection::Selection;
use crate::transform::Transform;

#[cfg(test)]
mod tests;

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
    /// `None` where objects are not to be packed.
    press: Option<Arc<Press>>,
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
            press: (!sensitive).then(|| Arc::new(Press::new())),
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
        .packing_with(self.early_press())
    }

    /// Objects may be packed where they are read from the connection, while their bytes are at hand; not where something else is to be done with those first.
    fn early_press(&self) -> Option<Arc<Press>> {
        let plain = self.options.layout == Layout::Compact && !self.options.transform.has_closure();
        self.press.clone().filter(|_| plain)
    }

    /// The object as it is to be kept; under the very key of the `stored` state that it follows, if any. Runs the code of users.
    pub(crate) fn keep(&self, arrived: &Object, stored: Option<&Object>) -> Kept {
        let (changed, untransformed) = self.transform(arrived);
        let object = changed.as_ref().unwrap_or(arrived);
        let packed = self.pack(object);
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
                packed.unwrap_or_else(|| object.body().clone()),
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
    fn pack(&self, object: &Object) -> Option<Body> {
        match object.body() {
            Body::Plain(json) => self.press.as_ref()?.pack(Hand::Keeper, object.key(), json),
            Body::Packed(_) | Body::Head(_) => None,
        }
    }

    pub(crate) fn press(&self) -> Option<&Press> {
        self.press.as_deref()
    }

    pub(crate) fn memo(&self) -> MemoStatus {
        self.memo
            .as_ref()
            .map_or_else(MemoStatus::default, |memo| memo.status())
    }
}
