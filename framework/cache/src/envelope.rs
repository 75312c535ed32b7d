//! What is parsed of every object when it arrives: who it is and how fresh, nothing more.
//!
//! An object that fails here is a [`BadObject`]; the search for its name is lenient, so that it can be set aside by name while all
//! others go on.

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::key::Key;
use crate::object::{Meta, Object, Uid};
use crate::opener::Opener;
use crate::redact::describe;
use crate::version::Version;

mod salvage;
#[cfg(test)]
mod tests;
pub(crate) mod twin;

/// An object that cannot be identified, with what could still be read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadObject {
    /// Its key, if the name could be found.
    pub key: Option<Key>,
    /// Its version, if it could be found.
    pub version: Option<Version>,
    /// What is wrong; quotes no value.
    pub reason: String,
    /// Whether the bytes are no JSON, so that they may have swallowed what followed them.
    pub damaged: bool,
    /// Whether it is an object, but of another kind than it should be: its name says nothing.
    pub foreign: bool,
}

/// Finds an object that is known already in exactly this state.
pub(crate) type Known<'a> = &'a dyn Fn(&Key, &Meta) -> Option<Object>;

/// Reads identity and version of the object in `json` and keeps a copy of it without `managedFields`.
///
/// # Errors
///
/// [`BadObject`] when the bytes are no JSON object, or name, version or deletion time are missing or malformed.
pub fn open(json: &[u8]) -> Result<Object, BadObject> {
    Opener::default().open(json)
}

/// What can be told of an object whose bytes are incomplete: `head` is its beginning.
#[must_use]
pub fn oversized(head: &[u8], limit: usize) -> BadObject {
    refuse(head, format!("larger than the limit of {limit} bytes"))
}

/// What can still be told of an object that is JSON, but not what it should be.
pub(crate) fn refuse(json: &[u8], reason: String) -> BadObject {
    bad(json, reason, false)
}

fn bad(json: &[u8], reason: String, damaged: bool) -> BadObject {
    let found = salvage::salvage(json);
    BadObject {
        key: found.key(),
        version: found.version(),
        reason,
        damaged,
        foreign: false,
    }
}

/// An object of another kind, whatever its name is.
pub(crate) fn foreign() -> BadObject {
    BadObject {
        key: None,
        version: None,
        reason: "it is of another kind".to_owned(),
        damaged: false,
        foreign: true,
    }
}

/// Who the object is and how fresh.
pub(crate) fn identify(shell: &Shell<'_>) -> Result<(Key, Meta), &'static str> {
    fn text<'a>(text: &'a Option<Text<'_>>) -> Option<&'a str> {
        text.as_ref().map(|text| &*text.0)
    }
    let meta = shell.metadata.as_ref().ok_or("metadata is missing")?;
    let name = text(&meta.name)
        .filter(|name| !name.is_empty())
        .ok_or("metadata.name is missing")?;
    let version = text(&meta.resource_version)
        .filter(|version| !version.is_empty())
        .ok_or("metadata.resourceVersion is missing")?;
    let namespace = text(&meta.namespace);
    if [Some(name), namespace]
        .into_iter()
        .flatten()
        .any(|part| part.contains('/'))
    {
        // two of them could have one key
        return Err("metadata.name or metadata.namespace has a slash in it");
    }
    let deleted = text(&meta.deletion_timestamp).map(str::parse::<Timestamp>);
    let identity = Meta {
        uid: Uid::from(text(&meta.uid).unwrap_or_default()),
        resource_version: Version::new(version),
        generation: meta.generation,
        deletion_timestamp: deleted
            .transpose()
            .map_err(|_| "metadata.deletionTimestamp is no RFC 3339 time")?,
    };
    Ok((Key::new(namespace, name), identity))
}

/// The few members that are read of every object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shell<'a> {
    api_version: Option<IgnoredAny>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

impl<'a> Shell<'a> {
    pub(crate) fn read(json: &'a [u8]) -> Result<Self, BadObject> {
        serde_json::from_slice(json).map_err(|error| {
            let damaged = matches!(error.classify(), Category::Syntax | Category::Eof);
            bad(json, describe(&error), damaged)
        })
    }

    /// Whether the object does not say of which kind it is.
    pub(crate) fn is_untyped(&self) -> bool {
        self.api_version.is_none() && self.kind.is_none()
    }

    /// The kind that the object says it is of.
    pub(crate) fn kind(&self) -> Option<Cow<'a, str>> {
        let text: Text<'a> = serde_json::from_str(self.kind?.get()).ok()?;
        Some(text.0)
    }

    /// Where the managed fields stand in `json`, which the shell was read from, with one comma; empty if there are none.
    pub(crate) fn managed_fields(&self, json: &[u8]) -> Range<usize> {
        let value = self.metadata.as_ref().and_then(|meta| meta.managed_fields);
        value
            .and_then(|value| member(json, value.get()))
            .unwrap_or(0..0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    #[serde(borrow)]
    deletion_timestamp: Option<Text<'a>>,
    generation: Option<i64>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

/// A string borrowed from the bytes unless it has escapes; serde borrows a bare `Cow` field, but not one inside an `Option`.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The span of the member with this value, a part of `json`, and with its name and one comma.
fn member(json: &[u8], value: &str) -> Option<Range<usize>> {
    let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let end = start + value.len();
    let before = json
        .get(..start)?
        .trim_ascii_end()
        .strip_suffix(b":")?
        .trim_ascii_end()
        .strip_suffix(b"\"")?;
    // in a name that may be written with escapes, but has no quote of its own
    let before = before.get(..memchr::memrchr(b'"', before)?)?;
    let rest = json.get(end..)?;
    let after = rest.trim_ascii_start();
    if let Some(after) = after.strip_prefix(b",") {
        return Some(before.len()..json.len() - after.len());
    }
    let before = before.trim_ascii_end();
    Some(before.strip_suffix(b",").unwrap_or(before).len()..end)
}
