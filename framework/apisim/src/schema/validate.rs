//! What a [`Schema`] accepts, in the words of the real server.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{IMPLIED, ListType, Schema, Type, join};
use crate::failure::Cause;

impl Schema {
    /// Everything that is wrong with an object.
    pub(crate) fn check(&self, object: &Map<String, Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.check_object(object, true, "", &mut causes);
        self.check_junctors(&Value::Object(object.clone()), "", &mut causes);
        causes
    }

    fn check_value(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() && self.nullable {
            return;
        }
        if !self.has_type(value) {
            let (wanted, found) = (self.type_name(), type_of(value));
            let why = format!("{path} in body must be of type {wanted}: \"{found}\"");
            let mut cause = Cause::invalid(path, &found.into(), why);
            cause.reason = "FieldValueTypeInvalid";
            causes.push(cause);
            return;
        }
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            causes.push(Cause::unsupported(path, value, &self.allowed));
        }
        match value {
            Value::Object(map) => self.check_object(map, self.embedded, path, causes),
            Value::Array(list) => self.check_list(list, path, causes),
            Value::String(text) => self.check_text(text, value, path, causes),
            Value::Number(_) => self.check_number(value, path, causes),
            _ => {}
        }
        self.check_junctors(value, path, causes);
    }

    fn check_object(
        &self,
        map: &Map<String, Value>,
        whole: bool,
        path: &str,
        causes: &mut Vec<Cause>,
    ) {
        for name in &self.required {
            let implied = whole && IMPLIED.contains(&name.as_str());
            if !implied && !map.contains_key(name) {
                causes.push(Cause::required(join(path, name)));
            }
        }
        let refuse =
            |why: String| Cause::invalid(path, &"object".into(), format!("{path} in body {why}"));
        if let Some(min) = self.min_properties.filter(|min| map.len() < *min) {
            causes.push(refuse(format!("should have at least {min} properties")));
        }
        if let Some(max) = self.max_properties.filter(|max| map.len() > *max) {
            causes.push(refuse(format!("should have at most {max} properties")));
        }
        for (name, value) in map {
            if whole && IMPLIED.contains(&name.as_str()) {
                continue;
            }
            if let Some(schema) = self.properties.get(name).or(self.additional.as_deref()) {
                schema.check_value(value, &join(path, name), causes);
            }
        }
    }

    fn check_list(&self, list: &[Value], path: &str, causes: &mut Vec<Cause>) {
        let refuse =
            |why: String| Cause::invalid(path, &"array".into(), format!("{path} in body {why}"));
        if let Some(min) = self.min_items.filter(|min| list.len() < *min) {
            causes.push(refuse(format!("should have at least {min} items")));
        }
        if let Some(max) = self.max_items.filter(|max| list.len() > *max) {
            let message = format!("Too many: {}: must have at most {max} items", list.len());
            causes.push(Cause::new("FieldValueTooMany", path, message));
        }
        let identity = |item: &Value| match &self.list {
            ListType::Map(keys) => Value::Array(
                keys.iter()
                    .map(|key| item.get(key).cloned().unwrap_or_default())
                    .collect(),
            ),
            _ => item.clone(),
        };
        if self.unique_items || self.list != ListType::Atomic {
            for (index, item) in list.iter().enumerate() {
                if list[..index]
                    .iter()
                    .any(|earlier| identity(earlier) == identity(item))
                {
                    let message = format!("Duplicate value: {}", identity(item));
                    causes.push(Cause {
                        reason: "FieldValueDuplicate",
                        message,
                        field: format!("{path}[{index}]"),
                    });
                }
            }
        }
        if let Some(items) = &self.items {
            for (index, item) in list.iter().enumerate() {
                items.check_value(item, &format!("{path}[{index}]"), causes);
            }
        }
    }

    fn check_text(&self, text: &str, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let refuse = |why: String| Cause::invalid(path, value, format!("{path} in body {why}"));
        let length = text.chars().count();
        if let Some(min) = self.min_length.filter(|min| length < *min) {
            causes.push(refuse(format!("should be at least {min} chars long")));
        }
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            let message = format!("Too long: may not be more than {max} bytes");
            causes.push(Cause::new("FieldValueTooLong", path, message));
        }
        if let Some(pattern) = self
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.is_match(text))
        {
            causes.push(refuse(format!("should match '{}'", pattern.as_str())));
        }
        if self.format.as_deref() == Some("date-time") && text.parse::<Timestamp>().is_err() {
            causes.push(refuse(format!("must be of type date-time: \"{text}\"")));
        }
    }

    fn check_number(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let Some(number) = value.as_f64() else { return };
        let mut refuse =
            |why: String| causes.push(Cause::invalid(path, value, format!("{path} in body {why}")));
        let fits = match self.format.as_deref() {
            Some("int32") => {
                value.as_i64().is_none_or(|n| i32::try_from(n).is_ok()) && !value.is_u64_above_i64()
            }
            Some("int64") => !value.is_u64_above_i64(),
            _ => true,
        };
        if !fits {
            refuse(format!(
                "must be of type {}: \"{value}\"",
                self.format.as_deref().unwrap_or_default()
            ));
        }
        match self.minimum {
            Some(min) if self.exclusive_minimum && number <= min => {
                refuse(format!("should be greater than {min}"))
            }
            Some(min) if number < min => {
                refuse(format!("should be greater than or equal to {min}"))
            }
            _ => {}
        }
        match self.maximum {
            Some(max) if self.exclusive_maximum && number >= max => {
                refuse(format!("should be less than {max}"))
            }
            Some(max) if number > max => refuse(format!("should be less than or equal to {max}")),
            _ => {}
        }
        if let Some(step) = self
            .multiple_of
            .filter(|step| *step > 0.0 && (number / step).fract() != 0.0)
        {
            refuse(format!("should be a multiple of {step}"));
        }
    }

    fn check_junctors(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let errors = |schema: &Self| {
            let mut found = Vec::new();
            schema.check_value(value, path, &mut found);
            found
        };
        let refuse = |why: &str| {
            Cause::invalid(
                path,
                &type_of(value).into(),
                format!("{path} in body {why}"),
            )
        };
        causes.extend(self.all_of.iter().flat_map(errors));
        if !self.any_of.is_empty() && self.any_of.iter().all(|schema| !errors(schema).is_empty()) {
            causes.push(refuse("must validate at least one schema (anyOf)"));
        }
        if !self.one_of.is_empty()
            && self
                .one_of
                .iter()
                .filter(|schema| errors(schema).is_empty())
                .count()
                != 1
        {
            causes.push(refuse("must validate one and only one schema (oneOf)"));
        }
        if self
            .not
            .as_deref()
            .is_some_and(|schema| errors(schema).is_empty())
        {
            causes.push(refuse("must not validate the schema (not)"));
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return value.is_string() || whole(value);
        }
        match self.kind {
            None => true,
            Some(Type::Object) => value.is_object(),
            Some(Type::Array) => value.is_array(),
            Some(Type::String) => value.is_string(),
            Some(Type::Integer) => whole(value),
            Some(Type::Number) => value.is_number(),
            Some(Type::Boolean) => value.is_boolean(),
        }
    }

    fn type_name(&self) -> &'static str {
        match self.kind {
            _ if self.int_or_string => "integer,string",
            None => "any",
            Some(Type::Object) => "object",
            Some(Type::Array) => "array",
            Some(Type::String) => "string",
            Some(Type::Integer) => "integer",
            Some(Type::Number) => "number",
            Some(Type::Boolean) => "boolean",
        }
    }
}

trait Unsigned {
    fn is_u64_above_i64(&self) -> bool;
}

impl Unsigned for Value {
    fn is_u64_above_i64(&self) -> bool {
        self.as_i64().is_none() && self.as_u64().is_some()
    }
}

fn whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
