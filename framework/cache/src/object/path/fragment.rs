//! The bytes at a path, whatever their type.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Path, Step};
use crate::envelope::Text;

impl Path {
    /// The JSON of everything at this place, in the order of the document; all of the document for an empty path.
    ///
    /// # Errors
    ///
    /// When the bytes up to the last such place are no JSON.
    pub(crate) fn fragments<'de>(&self, json: &'de [u8]) -> serde_json::Result<Vec<&'de RawValue>> {
        let mut found = Vec::new();
        let walk = Walk {
            steps: &self.steps,
            found: &mut found,
        };
        walk.deserialize(&mut serde_json::Deserializer::from_slice(json))?;
        Ok(found)
    }
}

struct Walk<'a, 'de> {
    steps: &'a [Step],
    found: &'a mut Vec<&'de RawValue>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.steps.is_empty() {
            self.found
                .push(serde::Deserialize::deserialize(deserializer)?);
            Ok(())
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.steps.split_first() {
                Some((Step::Field(name), rest)) if **name == *key.0 => {
                    map.next_value_seed(Walk {
                        steps: rest,
                        found: self.found,
                    })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Some((Step::Each, rest)) = self.steps.split_first() {
            let mut more = Some(());
            while more.is_some() {
                more = seq.next_element_seed(Walk {
                    steps: rest,
                    found: self.found,
                })?;
            }
        } else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The same by other means, to be compared with.
#[cfg(any(test, feature = "fuzzing"))]
impl Path {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn places<'v>(
        &self,
        value: &'v serde_json::Value,
        found: &mut Vec<&'v serde_json::Value>,
    ) {
        let mut places = vec![value];
        for step in &self.steps {
            places = places
                .into_iter()
                .flat_map(|place| match step {
                    Step::Field(name) => place.get(&**name).into_iter().collect::<Vec<_>>(),
                    Step::Each => place.as_array().into_iter().flatten().collect(),
                })
                .collect();
        }
        found.extend(places);
    }
}
