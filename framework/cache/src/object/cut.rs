//! Takes members out of a document without parsing the rest of it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::path::{Path, Step};

impl Path {
    /// The document without what this path leads to; `None` if it leads to nothing.
    pub(crate) fn cut(&self, json: &[u8]) -> Option<Vec<u8>> {
        let mut found = Vec::new();
        let search = Search {
            json,
            steps: &self.steps,
            found: &mut found,
        };
        // a document with a syntax error was refused before
        let _ = search.deserialize(&mut serde_json::Deserializer::from_slice(json));
        if found.is_empty() {
            return None;
        }
        let mut kept = Vec::with_capacity(json.len());
        let mut at = 0;
        let mut spans = found.into_iter().peekable();
        while let Some(mut span) = spans.next() {
            // neighbours go together, with the commas between them
            while let Some(next) = spans.next_if(|next| is_separator(json, span.end..next.start)) {
                span.end = next.end;
            }
            let span = with_comma(json, span);
            kept.extend_from_slice(json.get(at..span.start)?);
            at = span.end;
        }
        kept.extend_from_slice(json.get(at..)?);
        Some(kept)
    }
}

fn is_separator(json: &[u8], between: Range<usize>) -> bool {
    json.get(between)
        .is_some_and(|bytes| bytes.trim_ascii() == b",")
}

/// The span with the one comma that is too many without it.
fn with_comma(json: &[u8], span: Range<usize>) -> Range<usize> {
    let (before, after) = (
        json.get(..span.start).unwrap_or_default(),
        json.get(span.end..).unwrap_or_default(),
    );
    if let Some(rest) = after.trim_ascii_start().strip_prefix(b",") {
        return span.start..json.len() - rest.len();
    }
    match before.trim_ascii_end().strip_suffix(b",") {
        Some(rest) => rest.len()..span.end,
        None => span,
    }
}

struct Search<'a, 'f> {
    json: &'a [u8],
    steps: &'a [Step],
    found: &'f mut Vec<Range<usize>>,
}

impl Search<'_, '_> {
    /// Where a part of the document lies in it.
    fn span(&self, part: &RawValue) -> Option<Range<usize>> {
        let part = part.get();
        let start = (part.as_ptr() as usize).checked_sub(self.json.as_ptr() as usize)?;
        Some(start..start + part.len())
    }
}

impl<'de> DeserializeSeed<'de> for Search<'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let wanted = match self.steps.split_first() {
            Some((Step::Field(name), rest)) => Some((name, rest)),
            _ => None,
        };
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            let is = |name: &str| {
                key.get().get(1..key.get().len() - 1) == Some(name)
                    || serde_json::from_str::<Cow<'_, str>>(key.get()).is_ok_and(|key| key == name)
            };
            match wanted {
                Some((name, [])) if is(name) => {
                    let value = map.next_value::<&'de RawValue>()?;
                    if let (Some(key), Some(value)) = (self.span(key), self.span(value)) {
                        self.found.push(key.start..value.end);
                    }
                }
                Some((name, rest)) if is(name) => map.next_value_seed(Search {
                    json: self.json,
                    steps: rest,
                    found: self.found,
                })?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        match self.steps.split_first() {
            Some((Step::Each, [])) => {
                while let Some(element) = seq.next_element::<&'de RawValue>()? {
                    self.found.extend(self.span(element));
                }
            }
            Some((Step::Each, rest)) => {
                while seq
                    .next_element_seed(Search {
                        json: self.json,
                        steps: rest,
                        found: self.found,
                    })?
                    .is_some()
                {}
            }
            _ => while seq.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
