//! How objects are taken in: what is read of their bytes when they arrive, and what is kept of them.

use std::sync::Arc;

use crate::envelope::{BadObject, Known, Shell, identify, refuse};
use crate::object::{Object, Recall};
use crate::selection::Selection;
use crate::store::body::Body;
use crate::store::memo::Memo;
use crate::transform::Transform;

/// The first hand an object goes through, on the thread that hears from the server: no code of users runs here.
#[derive(Clone)]
pub(crate) struct Opener(Arc<Rules>);

struct Rules {
    transform: Transform,
    /// `"apiVersion":"v1","kind":"Pod",`: lists leave it to their reader.
    types: Option<Box<[u8]>>,
    sensitive: bool,
    recall: Recall,
}

impl Opener {
    pub(crate) fn new(
        selection: Option<&Selection>,
        transform: Transform,
        sensitive: bool,
        memo: Option<Arc<Memo>>,
    ) -> Self {
        let types = selection.map(|selection| {
            let (version, kind) = selection.types();
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            let (version, kind) = (quoted(&version), quoted(&kind));
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

    /// The same, unless `known` has the object already: then its bytes are not copied.
    pub(crate) fn open_unless(&self, json: &[u8], known: Known<'_>) -> Result<Object, BadObject> {
        let shell = Shell::read(json)?;
        let (key, meta) = identify(&shell).map_err(|reason| refuse(json, reason.to_owned()))?;
        if let Some(object) = known(&key, &meta) {
            return Ok(object);
        }
        let copy = self.copy(json, &shell);
        let body = if self.0.sensitive {
            Body::sealed(copy)
        } else {
            Body::plain(copy)
        };
        Ok(Object::new(key, meta, body, self.0.recall.clone()))
    }

    fn copy(&self, json: &[u8], shell: &Shell<'_>) -> Vec<u8> {
        let types = match &self.0.types {
            Some(types) if shell.is_untyped() => &types[..],
            _ => &[],
        };
        let cut = match self.0.transform.drops_managed_fields() {
            true => shell.managed_fields(json),
            false => 0..0,
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

impl Default for Opener {
    fn default() -> Self {
        Self::new(None, Transform::default(), false, None)
    }
}
