//! Finds name and version in bytes that do not parse.

use crate::key::Key;
use crate::version::Version;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    name: Option<String>,
    namespace: Option<String>,
    version: Option<String>,
    /// Name or namespace cannot be told: they are said twice or unreadably, or may have been cut off.
    unsure: bool,
}

impl Found {
    pub(super) fn key(&self) -> Option<Key> {
        let name = self.name.as_deref().filter(|name| !name.is_empty())?;
        let mut parts = [Some(name), self.namespace.as_deref()]
            .into_iter()
            .flatten();
        if self.unsure || parts.any(|part| part.contains('/')) {
            return None;
        }
        Some(Key::new(self.namespace.as_deref(), name))
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.version
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(Version::new)
    }

    fn keep(&mut self, member: &str, content: Option<String>) {
        let place = match member {
            "name" => &mut self.name,
            "namespace" => &mut self.namespace,
            "resourceVersion" => {
                self.version = content;
                return;
            }
            _ => return,
        };
        self.unsure |= content.is_none() || place.is_some();
        *place = content;
    }
}

/// Reads the strings `metadata.name`, `.namespace` and `.resourceVersion` of the object at the start of `bytes`, as far as they can be told
/// apart in bytes that may be cut off, malformed or not UTF-8.
pub(super) fn salvage(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    let mut depth = 0_usize;
    let mut in_metadata = false;
    let mut member: Option<String> = None;
    let mut text: Option<String> = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let Some(length) = string_end(&bytes[at..]) else {
                    break;
                };
                // what cannot be read for certain is no name
                let content: Option<String> =
                    serde_json::from_slice(&bytes[at - 1..=at + length]).ok();
                at += length + 1;
                match member.take() {
                    Some(name) if depth == 2 && in_metadata => found.keep(&name, content),
                    _ => text = content,
                }
            }
            b':' => member = text.take(),
            b'{' | b'[' => {
                found.unsure |= depth == 2 && in_metadata && is_identity(member.as_deref());
                depth += 1;
                if depth == 2 {
                    in_metadata = byte == b'{' && member.as_deref() == Some("metadata");
                }
                member = None;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                (member, text) = (None, None);
            }
            b',' => (member, text) = (None, None),
            b'-' | b'0'..=b'9' | b't' | b'f' => {
                found.unsure |= depth == 2 && in_metadata && is_identity(member.as_deref());
            }
            _ => {}
        }
    }
    // servers write the namespace before the version, in whatever order they write the rest
    found.unsure |=
        depth >= 2 && in_metadata && found.namespace.is_none() && found.version.is_none();
    found
}

fn is_identity(member: Option<&str>) -> bool {
    matches!(member, Some("name" | "namespace"))
}

/// Length of the string that `bytes` continue after its opening quote.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}
