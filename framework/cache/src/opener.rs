//! How objects are taken in: what is read of their bytes when they arrive, and what is kept of them.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::envelope::twin::Twins;
use crate::envelope::{BadObject, Known, Shell, foreign, identify, refuse};
use crate::key::Key;
use crate::object::{Object, Recall};
use crate::selection::{Form, Selection};
use crate::spare::spare;
use crate::store::body::Body;
use crate::store::edits::Edits;
use crate::store::memo::Memo;
use crate::store::{Hand, Press};
use crate::transform::Transform;

/// The first hand an object goes through, on the thread that hears from the server: no code of users runs here.
#[derive(Clone)]
pub(crate) struct Opener {
    rules: Arc<Rules>,
    /// Packs objects at once, where that may be.
    press: Option<Arc<Press>>,
    /// Whether it does.
    eager: bool,
    /// Objects that do not say of which kind they are come from a list of another kind.
    strange: bool,
    twins: Twins,
}

thread_local! {
    /// Where an object that is packed at once is put together.
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Rules {
    transform: Transform,
    /// `"kind":"Pod","apiVersion":"v1",`: lists leave it to their reader. In the order in which watches say it, so that a state has the same
    /// bytes whichever of them told it.
    types: Option<Box<[u8]>>,
    /// Kinds that objects may be of; whatever, where it is empty.
    kinds: Vec<String>,
    /// How objects are called of which nothing but metadata is wanted.
    outline: Option<String>,
    sensitive: bool,
    recall: Recall,
}

impl Rules {
    /// Whether nothing but managed fields is left out of objects.
    fn keep_the_rest(&self) -> bool {
        self.outline.is_none() && self.transform.paths().is_empty()
    }
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
        let kinds =
            selection.map(|selection| vec![selection.types().1, selection.kind().kind.clone()]);
        let outline = selection.filter(|selection| selection.form() == Form::Metadata);
        let rules = Rules {
            transform,
            types: types.map(Into::into),
            kinds: kinds.unwrap_or_default(),
            outline: outline.map(|selection| selection.types().1),
            sensitive,
            recall: memo.map_or(Recall::Never, Recall::Memo),
        };
        Self {
            rules: Arc::new(rules),
            press: None,
            eager: true,
            strange: false,
            twins: Twins::default(),
        }
    }

    /// Leaves what comes now to be packed by whoever keeps it, or does not.
    pub(crate) fn pack_at_once(&mut self, eager: bool) {
        self.eager = eager;
    }

    /// Packs what it keeps, where there is a press.
    pub(crate) fn packing_with(self, press: Option<Arc<Press>>) -> Self {
        Self { press, ..self }
    }

    /// What comes now is from a list that calls itself `list`: objects of built-in kinds leave it to their list to say what they are.
    pub(crate) fn listed_as(&mut self, list: &str) {
        let own = |kind: &String| list.strip_suffix("List") == Some(kind);
        self.strange =
            list != "List" && !self.rules.kinds.is_empty() && !self.rules.kinds.iter().any(own);
    }

    #[cfg(test)]
    pub(crate) fn twins(&mut self) -> &mut Twins {
        &mut self.twins
    }

    /// What makes the object that `bytes` begin with of what is kept of the one before it, if it is read by that.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn told_by_twin(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = self.twins.read(bytes)?;
        let cut = self.cut(found.managed_fields);
        self.edits(bytes.get(..found.length)?, &found.shell, &cut)
    }

    fn is_foreign(&self, shell: &Shell<'_>) -> bool {
        match shell.kind() {
            None => self.strange,
            Some(kind) => {
                !self.rules.kinds.is_empty() && !self.rules.kinds.iter().any(|own| *own == kind)
            }
        }
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
        if self.is_foreign(&shell) {
            return Err(foreign());
        }
        let refused = |reason: &str| refuse(json, reason.to_owned());
        // what is passed over is not looked at for that
        std::str::from_utf8(json).map_err(|_| refused("it is no UTF-8"))?;
        let body = |key: &Key, cut| self.body(key, json, &shell, cut, false);
        self.keep(&shell, shell.managed_fields(json), known, body)
            .map_err(refused)
    }

    /// The object that `bytes` begin with and how many they are; `None` if it does not end in them, or is bad.
    pub(crate) fn front(&mut self, bytes: &[u8], known: Known<'_>) -> Option<(Object, usize)> {
        if let Some(found) = self.twins.read(bytes) {
            let json = bytes.get(..found.length)?;
            if self.is_foreign(&found.shell) {
                return None;
            }
            let body = |key: &Key, cut: Range<usize>| {
                self.edited(json, &found.shell, &cut)
                    .unwrap_or_else(|| self.body(key, json, &found.shell, cut, false))
            };
            let object = self.keep(&found.shell, found.managed_fields, known, body);
            return Some((object.ok()?, found.length));
        }
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Shell<'_>>();
        let shell = values
            .next()?
            .ok()
            .filter(|shell| !self.is_foreign(shell))?;
        let length = values.byte_offset();
        let json = bytes.get(..length)?;
        std::str::from_utf8(json).ok()?;
        let managed_fields = shell.managed_fields(json);
        // of a Secret nothing is left behind
        let noted = !self.rules.sensitive && self.twins.wants(json);
        let mut head = None;
        let body = |key: &Key, cut| {
            let body = self.body(key, json, &shell, cut, noted);
            head = body.head().filter(|_| self.rules.keep_the_rest()).cloned();
            body
        };
        let object = self
            .keep(&shell, managed_fields.clone(), known, body)
            .ok()?;
        if noted {
            self.twins.note(json, managed_fields, head);
        }
        Some((object, length))
    }

    fn keep(
        &self,
        shell: &Shell<'_>,
        managed_fields: Range<usize>,
        known: Known<'_>,
        body: impl FnOnce(&Key, Range<usize>) -> Body,
    ) -> Result<Object, &'static str> {
        let (key, meta) = identify(shell)?;
        if let Some(object) = known(&key, &meta) {
            return Ok(object);
        }
        let body = body(&key, self.cut(managed_fields));
        Ok(Object::new(key, meta, body, self.rules.recall.clone()))
    }

    /// What is kept of the object without the part at `cut`; others may refer to it if it is to `lead` them.
    fn body(
        &self,
        key: &Key,
        json: &[u8],
        shell: &Shell<'_>,
        cut: Range<usize>,
        lead: bool,
    ) -> Body {
        let lead = lead && self.rules.keep_the_rest();
        match self.press.as_ref().filter(|_| self.eager || lead) {
            _ if self.rules.sensitive => Body::sealed(self.copy(json, shell, cut, Vec::new())),
            None => Body::plain(self.copy(json, shell, cut, Vec::new())),
            Some(press) => {
                let copy = self.copy(json, shell, cut, COPY.take());
                let head = lead.then(|| press.lead(key, &copy)).flatten();
                match head
                    .map(Body::Head)
                    .or_else(|| press.pack(Hand::Opener, key, &copy))
                {
                    None => Body::plain(copy),
                    Some(packed) => {
                        COPY.set(spare(copy));
                        packed
                    }
                }
            }
        }
    }

    /// The same of an object that was just read by its twin, told by what it has of its own. `None` if that cannot be, or is too much.
    fn edited(&self, json: &[u8], shell: &Shell<'_>, cut: &Range<usize>) -> Option<Body> {
        let head = self.twins.head()?;
        let edits = self.edits(json, shell, cut)?;
        let body = Press::edited(head, &edits);
        COPY.set(spare(edits));
        body
    }

    /// What makes of all that is kept of the twin what is kept of the object.
    fn edits(&self, json: &[u8], shell: &Shell<'_>, cut: &Range<usize>) -> Option<Vec<u8>> {
        let types = self.types(shell).len();
        let mut edits = Edits::new(json.len() - cut.len() + types, COPY.take());
        let cut = self.cut(self.twins.managed_fields()?);
        let kept = |at: usize| at + types - if at < cut.end { 0 } else { cut.len() };
        for difference in self.twins.differences(json) {
            let (place, text) = difference?;
            if !cut.contains(&place.start) {
                edits.push(kept(place.start)..kept(place.end), text)?;
            }
        }
        Some(edits.frame())
    }

    /// What is left out of an object whose managed fields stand there.
    fn cut(&self, managed_fields: Range<usize>) -> Range<usize> {
        match self.rules.transform.drops_managed_fields() {
            true => managed_fields,
            false => 0..0,
        }
    }

    /// What is put in front of what the object says of itself.
    fn types(&self, shell: &Shell<'_>) -> &[u8] {
        match &self.rules.types {
            Some(types) if shell.is_untyped() => types,
            _ => &[],
        }
    }

    /// What is to be kept, in the room of `kept`.
    fn copy(
        &self,
        json: &[u8],
        shell: &Shell<'_>,
        cut: Range<usize>,
        mut kept: Vec<u8>,
    ) -> Vec<u8> {
        let types = self.types(shell);
        kept.clear();
        kept.reserve_exact(json.len() - cut.len() + types.len());
        let start = json
            .iter()
            .position(|byte| *byte == b'{')
            .map_or(0, |at| at + 1);
        kept.extend_from_slice(json.get(..start).unwrap_or_default());
        kept.extend_from_slice(types);
        kept.extend_from_slice(json.get(start..cut.start.max(start)).unwrap_or_default());
        kept.extend_from_slice(json.get(cut.end.max(start)..).unwrap_or_default());
        for path in self.rules.transform.paths() {
            if let Some(cut) = path.cut(&kept) {
                kept = cut;
            }
        }
        match &self.rules.outline {
            Some(outline) if shell.kind().as_deref() != Some(outline) => self.outlined(&kept),
            _ => kept,
        }
    }

    /// The metadata of a whole object: a server that does not know how to leave the rest out sends it.
    fn outlined(&self, json: &[u8]) -> Vec<u8> {
        #[derive(Deserialize)]
        struct Whole<'a> {
            #[serde(borrow)]
            metadata: Option<&'a RawValue>,
        }
        let whole: Option<Whole<'_>> = serde_json::from_slice(json).ok();
        let metadata = whole
            .and_then(|whole| whole.metadata)
            .map_or("{}", RawValue::get);
        let types = self.rules.types.as_deref().unwrap_or_default();
        [b"{", types, b"\"metadata\":", metadata.as_bytes(), b"}"].concat()
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
    fn no_copy_of_a_secret_is_kept_to_read_others_by() {
        let json = br#"{"metadata":{"name":"a","resourceVersion":"1"},"data":{"a":"c2VjcmV0"}}"#;
        for sensitive in [false, true] {
            let mut opener = Opener::new(None, Default::default(), sensitive, None);
            assert!(opener.front(json, &|_, _| None).is_some());
            assert_eq!(opener.twins().read(json).is_none(), sensitive);
        }
    }

    #[test]
    fn an_item_above_the_limit_is_not_read_before_it_is_measured() {
        let body = br#"{"items":[{"metadata":{"name":"a","resourceVersion":"1"},"x":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}]}"#;
        let (mut splitter, mut both) = (ListSplitter::new(60), Both(Vec::new()));
        splitter.push_to(body, &mut both).unwrap();
        assert!(both.0.is_empty());
    }

    #[test]
    fn of_a_whole_object_an_informer_of_metadata_keeps_the_metadata() {
        let kind = crate::kind::Kind::new("", "v1", "Secret", "secrets");
        let selection = crate::selection::Selection::new(kind).metadata_only();
        let opener = Opener::new(Some(&selection), Default::default(), false, None);
        let metadata = r#""metadata":{"name":"a","resourceVersion":"1","labels":{"x":"y"}}"#;
        let kept = format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",{metadata}}}"#
        );
        for types in ["", r#""kind":"Secret","apiVersion":"v1","#] {
            let whole = format!(r#"{{{types}"data":{{"a":"c2VjcmV0"}},{metadata}}}"#);
            let object = opener.open(whole.as_bytes()).unwrap();
            assert_eq!(object.json(), kept.as_bytes());
            assert_eq!(object.labels()["x"], "y");
        }
        let object = opener.open(kept.as_bytes()).unwrap();
        assert_eq!(object.json(), kept.as_bytes());
    }
}
