//! Reads single values out of JSON without decoding the rest.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::envelope::Text;

mod fragment;

/// A place in an object, such as `spec.targetDeployment` or `spec.volumes[*].configMap.name`.
///
/// Names are separated by dots; `\.` is a dot within a name (`metadata.labels.app\.kubernetes\.io/name`) and `[*]` stands for every element of a
/// list. Every text is a path; one that names nothing in an object has no values there.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    text: Box<str>,
    pub(super) steps: Box<[Step]>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Field(Box<str>),
    Each,
}

impl Path {
    /// Reads the notation.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut name = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let (literal, length) = match next {
                '\\' => (
                    rest.chars().nth(1),
                    1 + rest.chars().nth(1).map_or(0, char::len_utf8),
                ),
                '.' => (None, 1),
                '[' if rest.starts_with("[*]") => (None, 3),
                other => (Some(other), other.len_utf8()),
            };
            if let Some(literal) = literal {
                name.push(literal);
            } else if !name.is_empty() {
                steps.push(Step::Field(std::mem::take(&mut name).into()));
            }
            if length == 3 && next == '[' {
                steps.push(Step::Each);
            }
            rest = &rest[length..];
        }
        if !name.is_empty() {
            steps.push(Step::Field(name.into()));
        }
        Self {
            text: text.into(),
            steps: steps.into(),
        }
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Every string, number and boolean at this place, in the order of the document.
    pub(crate) fn values(&self, json: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        if !self.steps.is_empty() {
            let walk = Walk {
                steps: &self.steps,
                found: &mut found,
            };
            // what the document says before a syntax error still counts: its identity was accepted
            let _ = walk.deserialize(&mut serde_json::Deserializer::from_slice(json));
        }
        found
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Walk<'a> {
    steps: &'a [Step],
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Walk<'_> {
    fn leaf(self, value: impl ToString) {
        if self.steps.is_empty() {
            self.found.push(value.to_string());
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (name, rest) = match self.steps.split_first() {
            Some((Step::Field(name), rest)) => (Some(name), rest),
            _ => (None, self.steps),
        };
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if name.is_some_and(|name| **name == *key.0) {
                map.next_value_seed(Walk {
                    steps: rest,
                    found: self.found,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        match self.steps.split_first() {
            Some((Step::Each, rest)) => {
                while seq
                    .next_element_seed(Walk {
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

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.leaf(value);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.leaf(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.leaf(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.leaf(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.leaf(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Decodes the one member that `names` lead to; `None` if it is absent or no `T`.
pub(super) fn member<T: DeserializeOwned>(json: &[u8], names: &[&str]) -> Option<T> {
    let seed = Member {
        names,
        kind: PhantomData,
    };
    seed.deserialize(&mut serde_json::Deserializer::from_slice(json))
        .ok()
        .flatten()
}

struct Member<'a, T> {
    names: &'a [&'a str],
    kind: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Member<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        if self.names.is_empty() {
            serde::Deserialize::deserialize(deserializer)
        } else {
            deserializer.deserialize_map(self)
        }
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Member<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.names.split_first() {
                Some((name, rest)) if *name == key.0 => {
                    found = map.next_value_seed(Member {
                        names: rest,
                        kind: PhantomData,
                    })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}
