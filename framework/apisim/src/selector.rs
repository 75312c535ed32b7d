//! Label and field selectors.

use crate::{
    failure::Failure,
    model::object::{Object, at},
};
use serde_json::Value;

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector in its string form: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

impl Labels {
    /// Reads the string form; an empty string selects everything.
    ///
    /// # Errors
    /// A bad request that quotes the part which is not understood.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        split_outside_parentheses(text)
            .map(requirement)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        let labels = at(&object.body, &["metadata", "labels"]);
        let get = |name: &String| {
            labels
                .and_then(|labels| labels.get(name))
                .and_then(Value::as_str)
        };
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(name, values) => {
                get(name).is_some_and(|value| values.iter().any(|v| v == value))
            }
            Requirement::NotIn(name, values) => {
                !get(name).is_some_and(|value| values.iter().any(|v| v == value))
            }
            Requirement::Exists(name) => get(name).is_some(),
            Requirement::Absent(name) => get(name).is_none(),
            Requirement::Greater(name, bound) => get(name)
                .and_then(|v| v.parse().ok())
                .is_some_and(|v: i64| v > *bound),
            Requirement::Less(name, bound) => get(name)
                .and_then(|v| v.parse().ok())
                .is_some_and(|v: i64| v < *bound),
        })
    }
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn requirement(part: &str) -> Result<Requirement, Failure> {
    let refuse = || Failure::bad_request(format!("unable to parse requirement: found '{part}'"));
    let label = |name: &str| match name.trim() {
        name if !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) =>
        {
            Ok(name.to_owned())
        }
        _ => Err(refuse()),
    };
    if let Some(name) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(label(name)?));
    }
    for (word, negative) in [(" notin", true), (" in", false)] {
        if let Some((name, rest)) = part.split_once(word)
            && let Some(list) = rest
                .trim()
                .strip_prefix('(')
                .and_then(|list| list.strip_suffix(')'))
        {
            let values = list.split(',').map(|v| v.trim().to_owned()).collect();
            let name = label(name)?;
            return Ok(if negative {
                Requirement::NotIn(name, values)
            } else {
                Requirement::In(name, values)
            });
        }
    }
    if let Some((name, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(label(name)?, vec![value.trim().into()]));
    }
    if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(label(name)?, vec![value.trim().into()]));
    }
    if let Some((name, value)) = part.split_once('>') {
        return Ok(Requirement::Greater(
            label(name)?,
            value.trim().parse().map_err(|_| refuse())?,
        ));
    }
    if let Some((name, value)) = part.split_once('<') {
        return Ok(Requirement::Less(
            label(name)?,
            value.trim().parse().map_err(|_| refuse())?,
        ));
    }
    Ok(Requirement::Exists(label(part)?))
}

/// A field selector: `metadata.name=a,involvedObject.kind!=Pod`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(Vec<String>, String, bool)>);

impl Fields {
    /// Reads the string form, allowing the fields that `selectable` names besides name and namespace.
    ///
    /// # Errors
    /// A bad request when a field is not selectable or a part is not understood.
    pub(crate) fn parse(text: &str, selectable: &[String]) -> Result<Self, Failure> {
        let part = |part: &str| {
            let (name, value, wanted) = part
                .split_once("!=")
                .map(|(name, value)| (name, value, false))
                .or_else(|| {
                    part.split_once("==")
                        .or_else(|| part.split_once('='))
                        .map(|(n, v)| (n, v, true))
                })
                .ok_or_else(|| {
                    Failure::bad_request(format!(
                        "invalid selector: '{text}'; can't understand '{part}'"
                    ))
                })?;
            if !["metadata.name", "metadata.namespace"].contains(&name)
                && !selectable.iter().any(|s| s == name)
            {
                return Err(Failure::bad_request(match selectable {
                    [] => format!(
                        "\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    ),
                    _ => format!("field label not supported: {name}"),
                }));
            }
            Ok((
                name.split('.').map(str::to_owned).collect(),
                value.to_owned(),
                wanted,
            ))
        };
        text.split(',')
            .map(str::trim)
            .filter(|p| !p.is_empty())
            .map(part)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|(path, value, wanted)| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let found = match at(&object.body, &path) {
                Some(Value::String(text)) => text.clone(),
                None | Some(Value::Null) => String::new(),
                Some(other) => other.to_string(),
            };
            (found == *value) == *wanted
        })
    }
}

#[cfg(test)]
mod tests;
