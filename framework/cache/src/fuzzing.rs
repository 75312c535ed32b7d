//! What must hold of framing and envelope for any bytes whatsoever, as functions that panic where it does not.
//!
//! The tests of this crate feed them with random and mutated documents; `fuzz/` hands them to libFuzzer. Each takes its choices, such as where chunks are cut,
//! from the beginning of its input. What is compared with is `serde_json::Value`, or its raw slices, on the whole document at once.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::envelope::{self, BadObject};
use crate::framing::{FrameError, Item, LineSplitter, ListMeta, ListSplitter, Sink};
use crate::key::Key;
use crate::object::{Meta, Object, Path};
use crate::opener::Opener;
use crate::reflector::event::{self, Event};
use crate::store::edits;

#[cfg(test)]
pub(crate) mod generate;
#[cfg(test)]
mod tests;
mod unique;

use unique::Unique;

/// Takes choices off the front of the input.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Splits up to eight bytes off as choices.
    fn of(data: &'a [u8]) -> (Self, &'a [u8]) {
        let (choices, rest) = data.split_at(data.len().min(8));
        (Self(choices), rest)
    }

    fn byte(&mut self) -> usize {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                usize::from(*first)
            }
            None => 0,
        }
    }

    /// The body in chunks.
    fn cut<'b>(&mut self, body: &'b [u8]) -> Vec<&'b [u8]> {
        let mut cuts: Vec<_> = (0..4)
            .map(|_| self.byte() * body.len() / 256)
            .chain([body.len()])
            .collect();
        cuts.sort_unstable();
        let mut from = 0;
        let chunks = cuts.into_iter().map(|to| {
            let chunk = &body[from..to];
            from = to;
            chunk
        });
        chunks.collect()
    }
}

/// What came out of an item.
#[derive(Debug, PartialEq)]
enum Read {
    Object(String, Vec<u8>),
    Bad(BadObject),
    Oversized(Vec<u8>),
}

fn read(object: Result<Object, BadObject>) -> Read {
    match object {
        Ok(object) => Read::Object(object.key().to_string(), object.json().to_vec()),
        Err(bad) => Read::Bad(bad),
    }
}

/// Reads objects as informers do: at the front of a chunk where they can be, else when they are whole.
struct Eager(Opener, Vec<Read>);

impl Sink for Eager {
    fn item(&mut self, item: Item<'_>) {
        self.1.push(match item {
            Item::Whole(json) => read(Opener::default().open(json)),
            Item::Oversized(head) => Read::Oversized(head.to_vec()),
        });
    }

    fn front(&mut self, bytes: &[u8]) -> Option<usize> {
        let (object, length) = self.0.front(bytes, &|_, _| None)?;
        self.1.push(read(Ok(object)));
        Some(length)
    }
}

fn split(chunks: &[&[u8]], limit: usize) -> (Vec<Vec<u8>>, Result<ListMeta, FrameError>) {
    let (mut items, mut splitter) = (Vec::new(), ListSplitter::new(limit));
    for chunk in chunks {
        let pushed = splitter.push(chunk, &mut |item| match item {
            Item::Whole(bytes) => items.push(bytes.to_vec()),
            Item::Oversized(head) => items.push([b"oversized ", head].concat()),
        });
        if let Err(error) = pushed {
            return (items, Err(error));
        }
    }
    (items, splitter.finish())
}

/// A list body splits into the same items wherever it is cut, whether objects are read early or late, and into those serde_json sees in it.
pub fn list(data: &[u8]) {
    let (mut choices, body) = Choices::of(data);
    let limit = match choices.byte() {
        small @ 0..32 => small * 8,
        _ => 1 << 20,
    };
    let whole = split(&[body], limit);
    let chunks = choices.cut(body);
    assert_eq!(split(&chunks, limit), whole, "cuts matter");

    let (mut eager, mut splitter) = (
        Eager(Opener::default(), Vec::new()),
        ListSplitter::new(limit),
    );
    let pushed = chunks
        .iter()
        .try_for_each(|chunk| splitter.push_to(chunk, &mut eager));
    let end = pushed.and_then(|()| splitter.finish());
    assert_eq!(end, whole.1, "reading early changes the end");
    let late = whole
        .0
        .iter()
        .map(|item| match item.strip_prefix(b"oversized ") {
            Some(head) => Read::Oversized(head.to_vec()),
            None => read(Opener::default().open(item)),
        });
    assert_eq!(
        eager.1,
        late.collect::<Vec<_>>(),
        "reading early changes items"
    );

    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        items: Option<&'a RawValue>,
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }
    let Ok(expected) = serde_json::from_slice::<Body<'_>>(body) else {
        return;
    };
    if limit < body.len() {
        return;
    }
    let items = expected.items.map(RawValue::get);
    let items: Option<Vec<&RawValue>> =
        items.and_then(|items| serde_json::from_str::<Option<_>>(items).unwrap_or_default());
    match (items, whole.1) {
        (Some(items), Ok(_)) => {
            let items: Vec<_> = items.iter().map(|item| item.get().as_bytes()).collect();
            assert_eq!(whole.0, items, "items differ from serde_json's");
        }
        (Some(_), Err(error)) => {
            let meta = expected.metadata.map_or("null", RawValue::get);
            let version = serde_json::from_str::<Unique>(meta);
            let version = version.map(|Unique(meta)| meta["resourceVersion"].clone());
            let next = serde_json::from_str::<Value>(meta).unwrap_or_default();
            let usable = matches!(version, Ok(Value::String(text)) if !text.is_empty())
                && matches!(next["continue"], Value::Null | Value::String(_));
            assert!(!usable, "a good list is refused: {error}");
        }
        (None, Ok(_)) => {
            let null = expected.items.is_none() && whole.0.is_empty();
            assert!(null, "what is no list of items counts as one");
        }
        (None, Err(_)) => {}
    }
}

/// An object that is read behind another one, which it may be like, is the one that the parser reads alone: the same, or refused as well.
///
/// The first two bytes say how long the first object is.
pub fn twins(data: &[u8]) {
    let (length, rest) = data.split_at(data.len().min(2));
    let length = length
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (first, second) = rest.split_at(length.min(rest.len()));
    let (mut opener, known) = (Opener::default(), |_: &Key, _: &Meta| None);
    let seen = |found: Option<(Object, usize)>| {
        found.map(|(object, length)| {
            let bytes = object.json();
            (object.key().clone(), object.meta().clone(), bytes, length)
        })
    };
    for json in [first, second, first, second] {
        let alone = Opener::default().front(json, &known);
        assert_eq!(seen(opener.front(json, &known)), seen(alone));
    }
    let (mut opener, mut alone) = (Opener::default(), Opener::default());
    if let Some((head, _)) = opener.front(first, &known)
        && let Some(frame) = opener.told_by_twin(second)
        && let Some((object, _)) = alone.front(second, &known)
    {
        let mut told = Vec::new();
        edits::apply(&frame, &head.json(), &mut told);
        assert_eq!(told, object.json(), "told by what differs");
    }
}

/// A watch body splits into its lines wherever it is cut.
pub fn lines(data: &[u8]) {
    let (mut choices, body) = Choices::of(data);
    let limit = match choices.byte() {
        small @ 0..64 => small,
        _ => 1 << 20,
    };
    let mut found = Vec::new();
    let mut splitter = LineSplitter::new(limit);
    for chunk in choices.cut(body) {
        splitter.push(chunk, &mut |item| {
            found.push(match item {
                Item::Whole(line) => Some(line.to_vec()),
                Item::Oversized(_) => None,
            });
        });
    }
    let mut expected: Vec<_> = body.split(|byte| *byte == b'\n').collect();
    let tail = expected.pop().unwrap_or_default();
    let expected = expected.into_iter().filter_map(|line| match line {
        line if line.len() > limit => Some(None),
        line if line.trim_ascii().is_empty() => None,
        line => Some(Some(line.trim_ascii().to_vec())),
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(splitter.unfinished(), tail.len());
}

/// What an object must say of itself to have an identity; `None` if it does not.
fn identity(value: &Value) -> Option<(Key, String)> {
    let meta = value.as_object()?.get("metadata")?.as_object()?;
    let text = |name: &str| match meta.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.as_str())),
        Some(_) => None,
    };
    let name = text("name")?.filter(|name| !name.is_empty())?;
    let version = text("resourceVersion")?.filter(|version| !version.is_empty())?;
    text("uid")?;
    match meta.get("generation") {
        None | Some(Value::Null) => {}
        Some(generation) => drop(generation.as_i64()?),
    }
    if let Some(time) = text("deletionTimestamp")? {
        time.parse::<jiff::Timestamp>().ok()?;
    }
    let namespace = text("namespace")?;
    if name.contains('/') || namespace.is_some_and(|namespace| namespace.contains('/')) {
        return None;
    }
    Some((Key::new(namespace, name), version.to_owned()))
}

fn name_of(value: &Value) -> Option<Key> {
    let meta = &value["metadata"];
    Some(Key::new(meta["namespace"].as_str(), meta["name"].as_str()?))
}

/// An object's identity is the one serde_json reads, what is kept of it is all but its managed fields, and all that is read of it later agrees; an object
/// without identity is never put down to a wrong name.
pub fn envelope(json: &[u8]) {
    let value = serde_json::from_slice::<Unique>(json);
    match (envelope::open(json), &value) {
        (Ok(object), Ok(Unique(value))) => {
            let Some((key, version)) = identity(value) else {
                panic!("an object without identity is accepted as {object:?}");
            };
            assert_eq!(*object.key(), key);
            assert_eq!(object.meta().resource_version.to_string(), version);
            let mut expected = value.clone();
            // a null is no list of managed fields
            if !expected["metadata"]["managedFields"].is_null()
                && let Some(meta) = expected["metadata"].as_object_mut()
            {
                meta.remove("managedFields");
            }
            let kept = serde_json::from_slice::<Value>(&object.json());
            assert_eq!(kept.ok(), Some(expected.clone()), "something else is kept");
            agrees(&object, &expected);
        }
        (Ok(object), Err(_)) => {
            // too deep, or twice the same name, or invalid where it is not looked at: it must not do harm
            let _ = object.decode::<Value>();
            let _ = (
                object.labels(),
                object.annotations(),
                object.owner_refs(),
                object.finalizers(),
            );
            for path in PATHS {
                let _ = object.path(path);
                let _ = Path::new(path).fragments(&object.json());
            }
        }
        (Err(bad), Ok(Unique(value))) => {
            assert!(
                identity(value).is_none(),
                "a good object is refused: {bad:?}"
            );
            if let Some(key) = bad.key {
                assert_eq!(Some(key), name_of(value), "a bad object has a wrong name");
            }
        }
        (Err(_), Err(_)) => {}
    }
}

const PATHS: &[&str] = &[
    "metadata.name",
    "metadata.labels.a",
    "metadata.annotations",
    "metadata.ownerReferences[*].name",
    "spec.replicas",
    "spec.containers[*].name",
    "spec.a[*][*].b",
    "status",
    "",
];

/// Everything that is read of an object later, against the whole document.
fn agrees(object: &Object, value: &Value) {
    let meta = &value["metadata"];
    let texts = |part: &str| {
        serde_json::from_value::<std::collections::BTreeMap<String, String>>(meta[part].clone())
            .unwrap_or_default()
    };
    assert_eq!(object.labels(), texts("labels"));
    assert_eq!(object.annotations(), texts("annotations"));
    let finalizers = serde_json::from_value::<Vec<String>>(meta["finalizers"].clone());
    assert_eq!(object.finalizers(), finalizers.unwrap_or_default());
    let owners =
        serde_json::from_value::<Vec<crate::object::OwnerRef>>(meta["ownerReferences"].clone());
    assert_eq!(object.owner_refs(), owners.unwrap_or_default());
    assert_eq!(object.decode::<Value>().ok().as_deref(), Some(value));
    for text in PATHS {
        compare(&Path::new(text), &object.json(), value);
    }
}

fn compare(path: &Path, json: &[u8], value: &Value) {
    let mut places = Vec::new();
    path.places(value, &mut places);
    let fragments = path.fragments(json).unwrap_or_default();
    let read = fragments
        .iter()
        .map(|fragment| serde_json::from_str::<Value>(fragment.get()).unwrap_or_default());
    assert_eq!(
        read.collect::<Vec<_>>(),
        places
            .iter()
            .map(|place| (*place).clone())
            .collect::<Vec<_>>(),
        "{path:?}"
    );
    let plain = places.into_iter().filter_map(|place| match place {
        Value::String(text) => Some(text.clone()),
        Value::Bool(bool) => Some(bool.to_string()),
        Value::Number(number) => Some(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => number.as_f64().unwrap_or_default().to_string(),
        }),
        _ => None,
    });
    // the empty path names nothing, not everything
    if !path.as_str().is_empty() && !path.is_empty() {
        assert_eq!(path.values(json), plain.collect::<Vec<_>>(), "{path:?}");
    }
}

/// A path finds what is there, whatever the path and the document.
pub fn path(data: &[u8]) {
    let length = data.first().map_or(0, |first| usize::from(*first % 48));
    let rest = data.get(1..).unwrap_or_default();
    let (path, json) = rest.split_at(length.min(rest.len()));
    let path = Path::new(&String::from_utf8_lossy(path));
    match serde_json::from_slice::<Unique>(json) {
        Ok(Unique(value)) => compare(&path, json, &value),
        Err(_) => drop((
            path.values(json),
            path.fragments(json).map(|found| found.len()),
        )),
    }
}

/// A line of a watch is what serde_json reads in it, and one that is not understood is never passed over.
pub fn event(line: &[u8]) {
    let read = event::read(
        Item::Whole(line),
        1 << 20,
        &mut Opener::default(),
        &|_, _| None,
    );
    let value = serde_json::from_slice::<Unique>(line);
    match read {
        Event::Delta(kind, delta) => {
            let Ok(Unique(value)) = value else { return };
            assert_eq!(Some(delta.key().clone()), name_of(&value["object"]));
            if let crate::delta::Delta::Seen(_) = delta {
                let told = value["type"].as_str().unwrap_or_default();
                assert_eq!(told.to_lowercase(), kind);
                assert!(identity(&value["object"]).is_some());
            }
        }
        Event::Bookmark { version, .. } => {
            let Ok(Unique(value)) = value else { return };
            assert_eq!(value["type"], "BOOKMARK");
            assert_eq!(
                value["object"]["metadata"]["resourceVersion"],
                version.to_string()
            );
        }
        Event::Error(_) | Event::Unknown(_) => {
            let Ok(Unique(value)) = value else { return };
            let usual = matches!(
                value["type"].as_str(),
                Some("ADDED" | "MODIFIED" | "DELETED")
            );
            assert!(
                !usual || identity(&value["object"]).is_none(),
                "a good event is refused"
            );
        }
    }
}
