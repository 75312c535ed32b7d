//! How objects are taken in: what is read of their bytes when they arrive, and what is kept of them.

use std::ops::Range;
use std::sync::Arc;

use crate::envelope::{BadObject, Shell, identify, refuse};
use crate::key::Key;
use crate::kind::Kind;
use crate::object::{Meta, Object, Recall};
use crate::store::body::Body;
use crate::store::memo::Memo;
use crate::transform::Transform;

/// Finds an object that is there already in exactly this state.
pub(crate) type Known<'a> = &'a dyn Fn(&Key, &Meta) -> Option<Object>;

/// The first hand an object goes through, on the thread that hears from the server: no code of users runs here.
#[derive(Clone)]
pub(crate) struct Intake(Arc<Rules>);

struct Rules {
    transform: Transform,
    /// `"apiVersion":"v1","kind":"Pod",`: lists leave it to their reader.
    types: Option<Box<[u8]>>,
    sensitive: bool,
    recall: Recall,
}

impl Intake {
    pub(crate) fn new(
        kind: Option<&Kind>,
        transform: Transform,
        sensitive: bool,
        memo: Option<Arc<Memo>>,
    ) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let types = kind.map(|kind| {
            let (version, kind) = (quoted(&kind.api_version()), quoted(&kind.kind));
            format!("\"apiVersion\":{version},\"kind\":{kind},").into_bytes()
        });
        Self(Arc::new(Rules {
            transform,
            types: types.map(Into::into),
            sensitive,
            recall: memo.map_or(Recall::Never, Recall::Memo),
        }))
    }

    /// Reads identity and version of the object in `json` and keeps a copy of what is wanted of it.
    ///
    /// # Errors
    ///
    /// [`BadObject`] when the bytes are no JSON object, or name, version or deletion time are missing or malformed.
    pub(crate) fn open(&self, json: &[u8]) -> Result<Object, BadObject> {
        self.open_unless(json, &|_, _| None)
    }

    /// The same, unless the object is `known` already: then nothing is copied.
    pub(crate) fn open_unless(&self, json: &[u8], known: Known<'_>) -> Result<Object, BadObject> {
        let shell = Shell::read(json)?;
        let cut = self.cut(json, &shell);
        let untyped = shell.is_untyped();
        let (key, meta) = identify(shell).map_err(|reason| refuse(json, reason.to_owned()))?;
        if let Some(object) = known(&key, &meta) {
            return Ok(object);
        }
        let copy = self.copy(json, untyped, cut);
        let body = if self.0.sensitive {
            Body::sealed(copy)
        } else {
            Body::plain(copy)
        };
        Ok(Object::new(key, meta, body, self.0.recall.clone()))
    }

    fn cut(&self, json: &[u8], shell: &Shell<'_>) -> Range<usize> {
        match self.0.transform.drops_managed_fields() {
            true => shell.managed_fields(json),
            false => 0..0,
        }
    }

    fn copy(&self, json: &[u8], untyped: bool, cut: Range<usize>) -> Vec<u8> {
        let types = match &self.0.types {
            Some(types) if untyped => &types[..],
            _ => &[],
        };
        let mut kept = Vec::with_capacity(json.len() - cut.len() + types.len());
        let start = json
            .iter()
            .position(|byte| *byte == b'{')
            .map_or(0, |at| at + 1);
        kept.extend_from_slice(json.get(..start).unwrap_or_default());
        kept.extend_from_slice(types);
        kept.extend_from_slice(json.get(start..cut.start.max(start)).unwrap_or_default());
        kept.extend_from_slice(json.get(cut.end.max(start)..).unwrap_or_default());
        for path in self.0.transform.paths() {
            if let Some(cut) = path.cut(&kept) {
                kept = cut;
            }
        }
        kept
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self::new(None, Transform::default(), false, None)
    }
}
