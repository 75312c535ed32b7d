//! Finds the end of a JSON value in chunks.

/// Where inside a value the last chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// Outside of strings, inside this many brackets.
    Nested(u32),
    /// Inside a string, inside this many brackets.
    Text(u32),
    /// Inside a string, behind a backslash.
    Escape(u32),
    /// A number, `true`, `false` or `null`: it ends where something else begins.
    Plain,
}

impl Scan {
    /// The scan of a value whose first byte is `first`; that byte is part of what [`Scan::advance`] is given.
    pub(super) fn begin(first: u8) -> Option<Self> {
        match first {
            b'{' | b'[' | b'"' => Some(Self::Nested(0)),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(Self::Plain),
            _ => None,
        }
    }

    /// Takes the next bytes: `Some(n)` when the value ends with the first `n` of them, `None` when all belong to it.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match *self {
                Self::Plain => match byte {
                    b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' => return Some(at),
                    _ => at += 1,
                },
                Self::Escape(depth) => {
                    *self = Self::Text(depth);
                    at += 1;
                }
                Self::Text(depth) => {
                    at += memchr::memchr2(b'"', b'\\', &bytes[at..])?;
                    let quote = bytes[at] == b'"';
                    *self = if quote {
                        Self::Nested(depth)
                    } else {
                        Self::Escape(depth)
                    };
                    at += 1;
                    if quote && depth == 0 {
                        return Some(at);
                    }
                }
                Self::Nested(depth) => {
                    at += 1;
                    match byte {
                        b'"' => *self = Self::Text(depth),
                        b'{' | b'[' => *self = Self::Nested(depth + 1),
                        b'}' | b']' if depth <= 1 => return Some(at),
                        b'}' | b']' => *self = Self::Nested(depth - 1),
                        _ => {}
                    }
                }
            }
        }
        None
    }
}
