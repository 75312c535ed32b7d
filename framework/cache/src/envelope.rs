//! What is parsed of every object when it arrives: who it is and how fresh, nothing more.
//!
//! An object that fails here is a [`BadObject`]; the search for its name is lenient, so that it can be set aside by name while all
//! others go on.

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::key::Key;
use crate::object::{Meta, Object, Uid};
use crate::redact::describe;
use crate::version::Version;

mod salvage;
#[cfg(test)]
mod tests;

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
}

/// Finds an object that is known already in exactly this state.
pub(crate) type Known<'a> = &'a dyn Fn(&Key, &Meta) -> Option<Object>;

/// Reads identity and version of the object in `json` and keeps a copy of it without `managedFields`.
///
/// # Errors
///
/// [`BadObject`] when the bytes are no JSON object, or name, version or deletion time are missing or malformed.
pub fn open(json: &[u8]) -> Result<Object, BadObject> {
    open_unless(json, &|_, _| None)
}

/// The same, unless `known` has the object already: then its bytes are not copied.
pub(crate) fn open_unless(json: &[u8], known: Known<'_>) -> Result<Object, BadObject> {
    let shell: Shell<'_> = serde_json::from_slice(json).map_err(|error| {
        let damaged = matches!(error.classify(), Category::Syntax | Category::Eof);
        bad(json, describe(&error), damaged)
    })?;
    identify(json, shell, known).map_err(|reason| bad(json, reason.to_owned(), false))
}

/// What can be told of an object whose bytes are incomplete: `head` is its beginning.
#[must_use]
pub fn oversized(head: &[u8], limit: usize) -> BadObject {
    bad(
        head,
        format!("larger than the limit of {limit} bytes"),
        false,
    )
}

fn bad(json: &[u8], reason: String, damaged: bool) -> BadObject {
    let found = salvage::salvage(json);
    BadObject {
        key: found.key(),
        version: found.version(),
        reason,
        damaged,
    }
}

fn identify(json: &[u8], shell: Shell<'_>, known: Known<'_>) -> Result<Object, &'static str> {
    let meta = shell.metadata.ok_or("metadata is missing")?;
    let name = meta
        .name
        .filter(|name| !name.0.is_empty())
        .ok_or("metadata.name is missing")?;
    let version = meta
        .resource_version
        .filter(|text| !text.0.is_empty())
        .ok_or("metadata.resourceVersion is missing")?;
    let deletion_timestamp = match meta.deletion_timestamp {
        None => None,
        Some(text) => Some(
            text.0
                .parse::<Timestamp>()
                .map_err(|_| "metadata.deletionTimestamp is no RFC 3339 time")?,
        ),
    };
    let key = Key::new(meta.namespace.as_ref().map(|text| text.0.as_ref()), &name.0);
    let identity = Meta {
        uid: Uid::from(meta.uid.as_ref().map_or("", |text| text.0.as_ref())),
        resource_version: Version::new(&version.0),
        generation: meta.generation,
        deletion_timestamp,
    };
    Ok(known(&key, &identity)
        .unwrap_or_else(|| Object::new(key, identity, without(json, meta.managed_fields))))
}

#[derive(Deserialize)]
struct Shell<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
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

/// A copy of `json` without the member whose value is `value`, which must be a part of `json`.
fn without(json: &[u8], value: Option<&RawValue>) -> Vec<u8> {
    let cut = value
        .and_then(|value| member(json, value.get()))
        .unwrap_or(0..0);
    let mut kept = Vec::with_capacity(json.len() - cut.len());
    kept.extend_from_slice(json.get(..cut.start).unwrap_or_default());
    kept.extend_from_slice(json.get(cut.end..).unwrap_or_default());
    kept
}

/// The span of the member `"managedFields": value` including one comma. `None` if its name is written with escapes: it then stays.
fn member(json: &[u8], value: &str) -> Option<Range<usize>> {
    const NAME: &[u8] = b"\"managedFields\"";
    let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let end = start + value.len();
    let before = json
        .get(..start)?
        .trim_ascii_end()
        .strip_suffix(b":")?
        .trim_ascii_end()
        .strip_suffix(NAME)?;
    let rest = json.get(end..)?;
    let after = rest.trim_ascii_start();
    if let Some(after) = after.strip_prefix(b",") {
        return Some(before.len()..json.len() - after.len());
    }
    let before = before.trim_ascii_end();
    Some(before.strip_suffix(b",").unwrap_or(before).len()..end)
}
