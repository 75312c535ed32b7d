//! Reads an object by the one before it.
//!
//! Objects of one origin stand side by side in a list and are alike in all but some texts and numbers. Where two documents agree in every byte outside of
//! those, what the parser said of the structure of the one holds of the other: only what differs is looked at. Whatever is written in another way than
//! servers do, or differs in more, is left to the parser.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::{Metadata, Shell, Text};
use crate::key::common;
use crate::store::Packed;

#[cfg(test)]
mod tests;

/// Larger objects are rare, and not worth a copy.
const LARGE: usize = 64 << 10;

/// The last object that was read by the parser, by which those behind it may be read.
#[derive(Clone, Default)]
pub(crate) struct Twins {
    last: Option<Twin>,
    /// Where the object at hand differs from it, in order.
    moved: Vec<Moved>,
    /// Objects to leave out: a watch may tell of one origin after the other.
    patience: u8,
    /// Objects noted one after the other that none behind them was like.
    failures: u32,
}

/// An object that was read by its twin.
pub(crate) struct Found<'a> {
    pub(crate) shell: Shell<'a>,
    pub(crate) length: usize,
    /// As of [`Shell::managed_fields`].
    pub(crate) managed_fields: Range<usize>,
}

#[derive(Clone, Default)]
struct Twin {
    json: Vec<u8>,
    /// What may differ, in order.
    tokens: Vec<Token>,
    managed_fields: Range<usize>,
    /// What is kept of it, if others may refer to that.
    head: Option<Arc<Packed>>,
    has_version: bool,
    kind: Option<Range<usize>>,
    name: Option<Range<usize>>,
    namespace: Option<Range<usize>>,
    uid: Option<Range<usize>>,
    resource_version: Option<Range<usize>>,
    deletion_timestamp: Option<Range<usize>>,
    generation: Option<Range<usize>>,
    /// Whether another object was like it.
    is_proved: bool,
}

#[derive(Clone)]
struct Token {
    span: Range<usize>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    Truth,
}

/// A token that has another form: where that begins to differ and where it ends, in the twin and in the object.
#[derive(Clone, Copy)]
struct Moved {
    start: usize,
    end: usize,
    from: usize,
    to: usize,
}

/// A member that says who the object is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    ApiVersion,
    Kind,
    Metadata,
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    DeletionTimestamp,
    Generation,
    Other,
}

impl Twins {
    /// The object that `bytes` begin with; `None` if it is not like the last one, or does not end in them.
    pub(crate) fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<Found<'a>> {
        if self.patience > 0 {
            self.patience -= 1;
            return None;
        }
        let twin = self.last.as_mut()?;
        let length = twin.follow(bytes, &mut self.moved)?;
        twin.is_proved = true;
        self.failures = 0;
        twin.found(bytes.get(..length)?, &self.moved)
    }

    /// What is kept of the twin, if others may refer to that.
    pub(crate) fn head(&self) -> Option<&Arc<Packed>> {
        self.last.as_ref()?.head.as_ref()
    }

    /// Where the managed fields of the twin stand.
    pub(crate) fn managed_fields(&self) -> Option<Range<usize>> {
        Some(self.last.as_ref()?.managed_fields.clone())
    }

    /// What the object that was read last, `json`, has in the place of which part of its twin, in order.
    pub(crate) fn differences<'a>(
        &'a self,
        json: &'a [u8],
    ) -> impl Iterator<Item = Option<(Range<usize>, &'a [u8])>> {
        self.moved.iter().map(|moved| {
            let mine = self.last.as_ref()?.json.get(moved.start..moved.end)?;
            let theirs = json.get(moved.from..moved.to)?;
            let pairs = mine.iter().rev().zip(theirs.iter().rev());
            let same = pairs.take_while(|(mine, theirs)| mine == theirs).count();
            let text = theirs.get(..theirs.len() - same)?;
            Some((moved.start..moved.end - same, text))
        })
    }

    /// Whether such an object would be noted.
    pub(crate) fn wants(&self, json: &[u8]) -> bool {
        self.patience == 0 && json.len() <= LARGE
    }

    /// Others may be read by this object from now on: `json` is one that the parser has read, and `head` what is kept of it.
    pub(crate) fn note(
        &mut self,
        json: &[u8],
        managed_fields: Range<usize>,
        head: Option<Arc<Packed>>,
    ) {
        if !self.wants(json) {
            return;
        }
        if self.last.as_ref().is_some_and(|last| !last.is_proved) {
            self.failures += 1;
            // the only one of its origin is no sign
            let longer = 1u32 << self.failures.min(8);
            self.patience = u8::try_from(longer - 2).unwrap_or(u8::MAX);
        }
        let last = self.last.take().unwrap_or_default();
        if self.patience > 0 {
            return;
        }
        let mut twin = Twin {
            json: last.json,
            tokens: last.tokens,
            managed_fields,
            head,
            ..Twin::default()
        };
        twin.json.clear();
        twin.json.extend_from_slice(json);
        twin.tokens.clear();
        self.last = twin.tokenized();
    }
}

impl Twin {
    /// Finds what may differ. `None` if the document is written in a way that is not worth the trouble.
    fn tokenized(mut self) -> Option<Self> {
        let json = std::mem::take(&mut self.json);
        if json.first() != Some(&b'{') {
            return None;
        }
        let (mut at, mut depth) = (0, 0u32);
        // the member of the document, or of its metadata, whose value comes next
        let mut field = None;
        let mut in_metadata = false;
        loop {
            let rest = json.get(at..)?;
            let byte = *rest.first()?;
            let token = match byte {
                b'"' => Some((text_length(rest)?, Some(Form::Text))),
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(scalar(rest)?),
                _ => None,
            };
            let Some((length, form)) = token else {
                match byte {
                    b'{' | b'[' => {
                        match field.take() {
                            Some(Field::Metadata) if byte == b'[' => return None,
                            Some(Field::ApiVersion | Field::Kind) => return None,
                            _ => {}
                        }
                        depth += 1;
                    }
                    b'}' | b']' => depth = depth.checked_sub(1)?,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
                continue;
            };
            let span = at..at + length;
            at = span.end;
            let text = json.get(span.clone())?;
            let is_name = byte == b'"' && json.get(at..)?.trim_ascii_start().starts_with(b":");
            if is_name && (depth == 1 || (depth == 2 && in_metadata)) {
                // a name of the object's own must not differ
                field = Some(Field::of(text, depth)?);
                if depth == 1 {
                    in_metadata = field == Some(Field::Metadata);
                }
                continue;
            }
            if text != b"null" {
                self.put(field, span.clone());
            }
            field = None;
            if let Some(form) = form
                && memchr::memmem::find(text, b"\\u").is_none()
            {
                self.tokens.push(Token { span, form });
            }
        }
        self.json = json;
        self.json.truncate(at);
        Some(self)
    }

    fn put(&mut self, field: Option<Field>, span: Range<usize>) {
        match field {
            Some(Field::ApiVersion) => self.has_version = true,
            Some(Field::Kind) => self.kind = Some(span),
            Some(Field::Name) => self.name = Some(span),
            Some(Field::Namespace) => self.namespace = Some(span),
            Some(Field::Uid) => self.uid = Some(span),
            Some(Field::ResourceVersion) => self.resource_version = Some(span),
            Some(Field::DeletionTimestamp) => self.deletion_timestamp = Some(span),
            Some(Field::Generation) => self.generation = Some(span),
            Some(Field::Metadata | Field::Other) | None => {}
        }
    }

    /// How long the document is that `bytes` begin with, and where it differs from this one.
    fn follow(&self, bytes: &[u8], moved: &mut Vec<Moved>) -> Option<usize> {
        moved.clear();
        let mut tokens = self.tokens.iter();
        let (mut mine, mut theirs) = (0, 0);
        loop {
            let (rest, other) = (self.json.get(mine..)?, bytes.get(theirs..)?);
            let same = common(rest, other);
            if same == rest.len() {
                return Some(theirs + same);
            }
            mine += same;
            theirs += same;
            // a number may have ended in one of them only
            let token = tokens.find(|token| token.span.end >= mine)?;
            let start = theirs.checked_sub(mine.checked_sub(token.span.start)?)?;
            let (differs, at) = match token.form {
                Form::Text => (mine, theirs),
                Form::Number | Form::Truth => (token.span.start, start),
            };
            let length = match token.form {
                Form::Text if (token.span.start + 1..token.span.end).contains(&mine) => {
                    // what is common may end within a character or an escape
                    let before = *bytes.get(theirs - 1)?;
                    let from = match before.is_ascii() && before != b'\\' {
                        true => theirs,
                        false => start + 1,
                    };
                    from - start + rest_of_text(bytes.get(from..)?)?
                }
                Form::Text => return None,
                Form::Number => number_length(bytes.get(start..)?)?,
                Form::Truth => truth_length(bytes.get(start..)?)?,
            };
            mine = token.span.end;
            theirs = start + length;
            moved.push(Moved {
                start: differs,
                end: mine,
                from: at,
                to: theirs,
            });
        }
    }

    /// Who the object is that was followed.
    fn found<'a>(&self, json: &'a [u8], moved: &[Moved]) -> Option<Found<'a>> {
        let at = |place: usize| {
            let before = moved.partition_point(|moved| moved.end <= place);
            let last = before.checked_sub(1).and_then(|last| moved.get(last));
            last.map_or(place, |last| last.to + (place - last.end))
        };
        let part = |span: &Range<usize>| json.get(at(span.start)..at(span.end));
        let utf8 = |span: &Range<usize>| std::str::from_utf8(part(span)?).ok();
        let text = |span: &Option<Range<usize>>| -> Option<Option<Text<'a>>> {
            let Some(span) = span else { return Some(None) };
            let inside = utf8(span)?.strip_prefix('"')?.strip_suffix('"')?;
            (!inside.contains('\\')).then_some(Some(Text(Cow::Borrowed(inside))))
        };
        let generation = match &self.generation {
            Some(span) => Some(utf8(span)?.parse().ok()?),
            None => None,
        };
        let kind = match &self.kind {
            Some(span) => Some(serde_json::from_slice(part(span)?).ok()?),
            None => None,
        };
        let shell = Shell {
            api_version: self.has_version.then_some(IgnoredAny),
            kind,
            metadata: Some(Metadata {
                name: text(&self.name)?,
                namespace: text(&self.namespace)?,
                uid: text(&self.uid)?,
                resource_version: text(&self.resource_version)?,
                deletion_timestamp: text(&self.deletion_timestamp)?,
                generation,
                managed_fields: None,
            }),
        };
        Some(Found {
            shell,
            length: json.len(),
            managed_fields: at(self.managed_fields.start)..at(self.managed_fields.end),
        })
    }
}

impl Field {
    /// `None` for a name that is not written plainly.
    fn of(name: &[u8], depth: u32) -> Option<Self> {
        Some(match (depth, name) {
            (1, b"\"apiVersion\"") => Self::ApiVersion,
            (1, b"\"kind\"") => Self::Kind,
            (1, b"\"metadata\"") => Self::Metadata,
            (2, b"\"name\"") => Self::Name,
            (2, b"\"namespace\"") => Self::Namespace,
            (2, b"\"uid\"") => Self::Uid,
            (2, b"\"resourceVersion\"") => Self::ResourceVersion,
            (2, b"\"deletionTimestamp\"") => Self::DeletionTimestamp,
            (2, b"\"generation\"") => Self::Generation,
            (_, other) if other.contains(&b'\\') => return None,
            _ => Self::Other,
        })
    }
}

/// How long the text is that a valid document goes on with.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// How long the rest of a text is, with its quote; `None` if it is not valid, or has anything but ASCII and short escapes in it.
fn rest_of_text(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\'
                if matches!(
                    bytes.get(at + 1)?,
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'
                ) =>
            {
                at += 2
            }
            _ => return None,
        }
    }
}

/// How many bytes of a text come before the first that is none of printable ASCII, or a quote or backslash. Digests and ids are long, so it looks at eight at a time.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // the lowest bit that is set is that of the first such byte; those above it say nothing
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let mut at = 0;
    for word in bytes.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        let special = word | below(word, b' ') | is(word, b'"') | is(word, b'\\') | is(word, 0x7f);
        let special = special & (ONES << 7);
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\';
    at + bytes
        .iter()
        .skip(at)
        .take_while(|byte| is_plain(byte))
        .count()
}

/// How long the number is: one such as servers count with.
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let usual = match bytes.first()? {
        b'0' => digits == 1,
        _ => (1..=18).contains(&digits),
    };
    usual.then_some(digits)
}

/// How long the number or word is that a valid document goes on with, and of which form, if it may differ.
fn scalar(json: &[u8]) -> Option<(usize, Option<Form>)> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let scalar = json.get(..json.iter().position(|byte| !inside(byte))?)?;
    let form = match scalar {
        b"true" | b"false" => Some(Form::Truth),
        number => (number_length(number) == Some(number.len())).then_some(Form::Number),
    };
    Some((scalar.len(), form))
}

fn truth_length(bytes: &[u8]) -> Option<usize> {
    [&b"true"[..], b"false"]
        .into_iter()
        .find(|truth| bytes.starts_with(truth))
        .map(<[u8]>::len)
}
