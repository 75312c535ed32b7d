//! Protobuf bodies, as kubectl sends them from its imperative commands since 1.33 (`create deployment`, `auth can-i`).
//!
//! Read-only and partial: the kinds and fields that those commands write. A field outside of that is refused, never
//! dropped. Answers are JSON, which every client takes.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::messages::{Kind, Message, root};
use crate::{base64, failure::Failure, time::seconds};

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// Decodes a body.
///
/// # Errors
/// 400 for what is malformed, or for a kind or field that is not understood.
pub(super) fn decode(body: &[u8]) -> Result<Value, Failure> {
    let rest = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| malformed("no Kubernetes protobuf"))?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(rest) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message = root(&kind).ok_or_else(|| {
        malformed(&format!(
            "kind {kind} is not understood in protobuf; send JSON"
        ))
    })?;
    let mut object = self::object(raw, message, &kind)?;
    object.insert("kind".into(), kind.into());
    object.insert("apiVersion".into(), api_version.into());
    Ok(Value::Object(object))
}

fn malformed(why: &str) -> Failure {
    Failure::bad_request(format!("the body of the request cannot be decoded: {why}"))
}

fn utf8(bytes: &[u8]) -> Result<String, Failure> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a string is not UTF-8"))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in the order in which they stand.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Wire::Bytes(bytes)
            }
            // Kubernetes' own types have no fixed-width fields
            _ => return None,
        };
        Some((tag >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| malformed("a field is cut short")))
    }
}

fn object(bytes: &[u8], message: Message, at: &str) -> Result<Map<String, Value>, Failure> {
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some((_, name, kind)) = message
            .iter()
            .find(|(known, ..)| u64::from(*known) == number)
        else {
            if matches!(wire, Wire::Number(0) | Wire::Bytes([])) {
                continue;
            }
            return Err(malformed(&format!(
                "field {number} of {at} is not understood in protobuf; send JSON"
            )));
        };
        let here = format!("{at}.{name}");
        match (kind, wire) {
            (Kind::Texts, Wire::Bytes(text)) => push(&mut object, name, utf8(text)?.into()),
            (Kind::Many(inner), Wire::Bytes(bytes)) => push(
                &mut object,
                name,
                Value::Object(self::object(bytes, inner, &here)?),
            ),
            (Kind::Texted | Kind::Encoded | Kind::Quantities, Wire::Bytes(bytes)) => {
                let (key, value) = entry(bytes, kind)?;
                let map = object
                    .entry(*name)
                    .or_insert_with(|| Value::Object(Map::new()));
                map[key] = value;
            }
            (kind, wire) => {
                if let Some(value) = single(*kind, wire, &here)? {
                    object.insert((*name).into(), value);
                }
            }
        }
    }
    Ok(object)
}

fn push(object: &mut Map<String, Value>, name: &str, value: Value) {
    match object.get_mut(name) {
        Some(Value::Array(list)) => list.push(value),
        _ => drop(object.insert(name.into(), Value::Array(vec![value]))),
    }
}

/// One value; `None` for the zero values that JSON leaves out.
fn single(kind: Kind, wire: Wire<'_>, at: &str) -> Result<Option<Value>, Failure> {
    Ok(match (kind, wire) {
        (Kind::Text, Wire::Bytes([])) | (Kind::Whole | Kind::Flag, Wire::Number(0)) => None,
        (Kind::Text | Kind::GivenText, Wire::Bytes(text)) => Some(utf8(text)?.into()),
        (Kind::Whole | Kind::GivenWhole, Wire::Number(n)) => Some(n.cast_signed().into()),
        (Kind::Flag | Kind::GivenFlag, Wire::Number(n)) => Some((n != 0).into()),
        (Kind::One(inner), Wire::Bytes(bytes)) => {
            let object = object(bytes, inner, at)?;
            (!object.is_empty()).then_some(Value::Object(object))
        }
        (Kind::IntOrText | Kind::GivenIntOrText, Wire::Bytes(bytes)) => {
            let (mut text, mut number, mut is_text) = (String::new(), 0, false);
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Number(kind)) => is_text = kind == 1,
                    (2, Wire::Number(n)) => number = n.cast_signed(),
                    (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
                    _ => {}
                }
            }
            let given = number != 0 || matches!(kind, Kind::GivenIntOrText);
            if is_text {
                Some(text.into())
            } else {
                given.then(|| number.into())
            }
        }
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => {
            let (mut second, mut nanos) = (0, 0);
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Number(n)) => second = n.cast_signed(),
                    (2, Wire::Number(n)) => nanos = i32::try_from(n).unwrap_or(0),
                    _ => {}
                }
            }
            let time = Timestamp::new(second, nanos)
                .map_err(|_| malformed(&format!("{at} is no time")))?;
            let text = match kind {
                Kind::MicroTime => time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
                _ => seconds(time),
            };
            (second != 0).then(|| text.into())
        }
        _ => return Err(malformed(&format!("{at} is of another type"))),
    })
}

fn entry(bytes: &[u8], kind: &Kind) -> Result<(String, Value), Failure> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(bytes)) => key = utf8(bytes)?,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    let value = match kind {
        Kind::Encoded => base64::encode(value),
        Kind::Quantities => match Fields(value).next().transpose()? {
            Some((1, Wire::Bytes(text))) => utf8(text)?,
            _ => String::new(),
        },
        _ => utf8(value)?,
    };
    Ok((key, value.into()))
}

#[cfg(test)]
mod tests;
