//! Finds name and version in bytes that do not parse.

use crate::key::Key;
use crate::version::Version;

/// What was found; a later occurrence never replaces an earlier one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) version: Option<String>,
}

impl Found {
    pub(super) fn key(&self) -> Option<Key> {
        let name = self.name.as_deref().filter(|name| !name.is_empty())?;
        Some(Key::new(self.namespace.as_deref(), name))
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.version
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(Version::new)
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
                let content = String::from_utf8_lossy(&bytes[at..at + length]).into_owned();
                at += length + 1;
                match member.take() {
                    Some(name) if depth == 2 && in_metadata => keep(&mut found, &name, content),
                    _ => text = Some(content),
                }
            }
            b':' => member = text.take(),
            b'{' | b'[' => {
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
            _ => {}
        }
    }
    found
}

fn keep(found: &mut Found, member: &str, content: String) {
    let place = match member {
        "name" => &mut found.name,
        "namespace" => &mut found.namespace,
        "resourceVersion" => &mut found.version,
        _ => return,
    };
    place.get_or_insert(content);
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
