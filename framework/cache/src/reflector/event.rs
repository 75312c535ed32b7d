//! One line of a watch.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Status;
use crate::delta::Delta;
use crate::envelope::{self, BadObject, Text};
use crate::framing::Item;
use crate::intake::Intake;
use crate::object::Object;
use crate::redact::describe;
use crate::version::Version;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(crate) enum Event {
    /// News of an object, with the name client-go gives its type.
    Delta(&'static str, Delta),
    /// Everything up to here has been told.
    Bookmark(Version),
    /// The server ends the watch.
    Error(Status),
    /// Something was told, but not whom it is about: it must not be passed over.
    Unknown(String),
}

/// Reads a line; `limit` is what the splitter keeps of one.
pub(crate) fn read(line: Item<'_>, limit: usize, intake: &Intake) -> Event {
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
    let raw: Raw<'_> = match serde_json::from_slice(line) {
        Ok(raw) => raw,
        Err(error) => {
            let found = intake.open(inner(line)).err();
            let (key, version) = found.map_or((None, None), |bad| (bad.key, bad.version));
            return unreadable(BadObject {
                key,
                version,
                reason: describe(&error),
                damaged: true,
            });
        }
    };
    let object = raw.object.get().as_bytes();
    match raw.kind.0.as_ref() {
        "ADDED" => seen("added", intake.open(object)),
        "MODIFIED" => seen("modified", intake.open(object)),
        "DELETED" => match intake.open(object) {
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
        "BOOKMARK" => match envelope::bookmark(object) {
            Some(version) => Event::Bookmark(version),
            None => Event::Unknown("a bookmark without a version".to_owned()),
        },
        "ERROR" => Event::Error(Status::parse(500, None, object)),
        _ => Event::Unknown("an event of a type that is not known".to_owned()),
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
