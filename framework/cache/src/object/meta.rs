//! Who an object is and how fresh.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::version::Version;

/// One incarnation of a name: objects of the same name created one after the other differ in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    /// As every server writes them; text in lower case, so equality of bytes is equality of texts.
    Uuid([u8; 16]),
    Other(Arc<str>),
}

/// Where the dashes of a UUID stand.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    fn uuid(text: &str) -> Option<[u8; 16]> {
        let text = text.as_bytes();
        if text.len() != 36 || DASHES.iter().any(|at| text[*at] != b'-') {
            return None;
        }
        let mut digits = (0..36)
            .filter(|at| !DASHES.contains(at))
            .map(|at| match text[at] {
                digit @ b'0'..=b'9' => Some(digit - b'0'),
                digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            });
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            *byte = digits.next()?? << 4 | digits.next()??;
        }
        Some(bytes)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(Self::uuid(text).map_or_else(|| Form::Other(Arc::from(text)), Form::Uuid))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Other(text) => f.write_str(text),
            Form::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The part of an object's metadata that is parsed when it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Incarnation of the name; empty if the server gives none.
    pub uid: Uid,
    /// State of the object in the server's history.
    pub resource_version: Version,
    /// Counts changes of the desired state, for kinds that count them.
    pub generation: Option<i64>,
    /// When its deletion was asked for; it is then only waiting for finalizers.
    pub deletion_timestamp: Option<Timestamp>,
}
