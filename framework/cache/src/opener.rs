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
    /// `"kind":"Pod","apiVersion":"v1",`: lists leave it to their reader. In the order in which watches say it, so that a state has the same
    /// bytes whichever of them told it.
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
            format!("\"kind\":{kind},\"apiVersion\":{version},").into_bytes()
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
        self.keep(json, &shell, known)
            .map_err(|reason| refuse(json, reason.to_owned()))
    }

    /// The object that `bytes` begin with and how many they are; `None` if it does not end in them, or is bad.
    pub(crate) fn front(&self, bytes: &[u8], known: Known<'_>) -> Option<(Object, usize)> {
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Shell<'_>>();
        let shell = values.next()?.ok()?;
        let length = values.byte_offset();
        let object = self.keep(bytes.get(..length)?, &shell, known).ok()?;
        Some((object, length))
    }

    fn keep(
        &self,
        json: &[u8],
        shell: &Shell<'_>,
        known: Known<'_>,
    ) -> Result<Object, &'static str> {
        // what is passed over is not looked at for that
        std::str::from_utf8(json).map_err(|_| "it is no UTF-8")?;
        let (key, meta) = identify(shell)?;
        if let Some(object) = known(&key, &meta) {
            return Ok(object);
        }
        let copy = self.copy(json, shell);
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

#[cfg(test)]
mod tests {
    use super::Opener;
    use crate::framing::{Item, ListSplitter, Sink};
    use crate::object::Object;

    struct Both(Vec<(bool, Object)>);

    impl Sink for Both {
        fn item(&mut self, item: Item<'_>) {
            if let Item::Whole(json) = item {
                self.0
                    .extend(Opener::default().open(json).map(|object| (false, object)));
            }
        }

        fn front(&mut self, bytes: &[u8]) -> Option<usize> {
            let (object, length) = Opener::default().front(bytes, &|_, _| None)?;
            self.0.push((true, object));
            Some(length)
        }
    }

    #[test]
    fn an_object_read_before_its_end_is_known_is_the_same_as_one_cut_out_first() {
        let objects: Vec<_> = (0..20)
            .map(|number| serde_json::json!({"metadata": {"name": format!("n{number}"), "resourceVersion": "1", "managedFields": [number]}, "text": "}{][\\\""}))
            .collect();
        let body =
            serde_json::json!({"items": objects, "metadata": {"resourceVersion": "1"}}).to_string();
        for size in [7, 60, 100, 1000, body.len()] {
            let (mut splitter, mut both) = (ListSplitter::new(1 << 20), Both(Vec::new()));
            for chunk in body.as_bytes().chunks(size) {
                splitter.push_to(chunk, &mut both).unwrap();
            }
            splitter.finish().unwrap();
            assert_eq!(both.0.len(), 20);
            for (number, (_, object)) in both.0.iter().enumerate() {
                let whole = crate::envelope::open(objects[number].to_string().as_bytes()).unwrap();
                assert_eq!(object.json(), whole.json());
                assert_eq!(object.key(), whole.key());
            }
            let early = both.0.iter().filter(|(early, _)| *early).count();
            assert_eq!(early > 0, size >= 100, "{size}: {early}");
        }
    }

    #[test]
    fn an_item_above_the_limit_is_not_read_before_it_is_measured() {
        let body = br#"{"items":[{"metadata":{"name":"a","resourceVersion":"1"},"x":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}]}"#;
        let (mut splitter, mut both) = (ListSplitter::new(60), Both(Vec::new()));
        splitter.push_to(body, &mut both).unwrap();
        assert!(both.0.is_empty());
    }
}
