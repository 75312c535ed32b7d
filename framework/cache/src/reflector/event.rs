//! One line of a watch.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Status;
use crate::delta::Delta;
use crate::envelope::{self, BadObject, Known, Text};
use crate::framing::Item;
use crate::object::Object;
use crate::opener::Opener;
use crate::redact::describe;
use crate::version::Version;

#[cfg(test)]
mod tests;

/// Annotation of the bookmark behind the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

#[derive(Debug)]
pub(crate) enum Event {
    /// News of an object, with the name client-go gives its type.
    Delta(&'static str, Delta),
    /// Everything up to here has been told.
    Bookmark {
        version: Version,
        /// Whether it ends the initial events of a streamed list.
        initial_end: bool,
    },
    /// The server ends the watch.
    Error(Status),
    /// Something was told, but not whom it is about: it must not be passed over.
    Unknown(String),
}

/// Reads a line; `limit` is what the splitter keeps of one, `known` what need not be copied again.
pub(crate) fn read(line: Item<'_>, limit: usize, opener: &mut Opener, known: Known<'_>) -> Event {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let line = match line {
        Item::Whole(line) => line,
        Item::Oversized(head) => return unreadable(envelope::oversized(inner(head), limit)),
    };
    if let Some(event) = usual(line, opener, known) {
        return event;
    }
    let raw: Raw<'_> = match serde_json::from_slice(line) {
        Ok(raw) => raw,
        Err(error) => {
            let found = opener.open(inner(line)).err();
            let (key, version) = found.map_or((None, None), |bad| (bad.key, bad.version));
            return unreadable(BadObject {
                key,
                version,
                reason: describe(&error),
                damaged: true,
                foreign: false,
            });
        }
    };
    let object = raw.object.get().as_bytes();
    match raw.kind.0.as_ref() {
        "ADDED" => seen("added", opener.open_unless(object, known)),
        "MODIFIED" => seen("modified", opener.open_unless(object, known)),
        "DELETED" => match opener.open(object) {
            Ok(last) => {
                let (key, version) = (last.key().clone(), last.meta().resource_version.clone());
                Event::Delta(
                    "deleted",
                    Delta::Gone {
                        key,
                        version: Some(version),
                        last: Some(last),
                    },
                )
            }
            Err(BadObject {
                key: Some(key),
                version,
                ..
            }) => Event::Delta(
                "deleted",
                Delta::Gone {
                    key,
                    version,
                    last: None,
                },
            ),
            Err(bad) => unreadable(bad),
        },
        "BOOKMARK" => bookmark(object),
        "ERROR" => Event::Error(Status::parse(500, None, object)),
        _ => Event::Unknown("an event of a type that is not known".to_owned()),
    }
}

/// Reads an event that is written as every server writes it, at one glance; `None` leaves it to those who look closer.
fn usual(line: &[u8], opener: &mut Opener, known: Known<'_>) -> Option<Event> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (name, rest) = match rest.strip_prefix(b"ADDED") {
        Some(rest) => ("added", rest),
        None => ("modified", rest.strip_prefix(b"MODIFIED")?),
    };
    let rest = rest.strip_prefix(b"\",\"object\":")?;
    let (object, length) = opener.front(rest, known)?;
    let end = rest.get(length..)?.trim_ascii();
    (end == b"}").then(|| Event::Delta(name, Delta::Seen(object)))
}

/// A bookmark has a version, perhaps an annotation, and nothing else.
fn bookmark(json: &[u8]) -> Event {
    #[derive(Deserialize)]
    struct Mark<'a> {
        #[serde(borrow)]
        metadata: Option<Metadata<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        resource_version: Option<Text<'a>>,
        #[serde(borrow)]
        annotations: Option<BTreeMap<String, Text<'a>>>,
    }
    let mark: Option<Mark<'_>> = serde_json::from_slice(json).ok();
    let meta = mark.and_then(|mark| mark.metadata);
    let version = meta
        .as_ref()
        .and_then(|meta| meta.resource_version.as_ref());
    let Some(version) = version.filter(|text| !text.0.is_empty()) else {
        return Event::Unknown("a bookmark without a version".to_owned());
    };
    let annotations = meta.as_ref().and_then(|meta| meta.annotations.as_ref());
    let end = annotations.and_then(|annotations| annotations.get(INITIAL_END));
    Event::Bookmark {
        version: Version::new(&version.0),
        initial_end: end.is_some_and(|end| end.0 == "true"),
    }
}

fn seen(name: &'static str, opened: Result<Object, BadObject>) -> Event {
    match opened {
        Ok(object) => Event::Delta(name, Delta::Seen(object)),
        Err(bad) => unreadable(bad),
    }
}

fn unreadable(bad: BadObject) -> Event {
    match bad.key {
        Some(key) => Event::Delta(
            "unreadable",
            Delta::Unreadable {
                key,
                version: bad.version,
                reason: bad.reason,
            },
        ),
        None => Event::Unknown(bad.reason),
    }
}

/// The bytes of the object in a line that is no JSON.
fn inner(line: &[u8]) -> &[u8] {
    const MEMBER: &[u8] = b"\"object\":";
    memchr::memmem::find(line, MEMBER)
        .and_then(|at| line.get(at + MEMBER.len()..))
        .unwrap_or_default()
}
