//! Names, labels and the other parts of `metadata` that are checked alike for all kinds.

use serde_json::Value;

use crate::{
    failure::Cause,
    model::{
        crd::CLEANUP,
        object::{Body, at, finalizers, text},
        served::Served,
    },
};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn alphanumeric_ends(text: &str, inner: fn(char) -> bool, ends: fn(char) -> bool) -> bool {
    text.chars().all(inner) && text.starts_with(ends) && text.ends_with(ends)
}

fn low(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Whether a text is a DNS-1123 label.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && alphanumeric_ends(text, |c| low(c) || c == '-', low)
}

/// Whether a text is a DNS-1123 subdomain.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text
            .split('.')
            .all(|part| alphanumeric_ends(part, |c| low(c) || c == '-', low))
}

fn is_qualified_part(text: &str) -> bool {
    text.len() <= 63
        && alphanumeric_ends(
            text,
            |c| c.is_ascii_alphanumeric() || "-_.".contains(c),
            |c| c.is_ascii_alphanumeric(),
        )
}

fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(text),
    }
}

/// Everything that is wrong with the metadata of an object.
pub(crate) fn check(served: &Served, body: &Body) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(body, &["metadata", "name"]).unwrap_or_default();
    // these kinds take what the authorizer takes, which is any path segment
    let path_segment = served.group == "rbac.authorization.k8s.io";
    let label =
        matches!(served.plural.as_str(), "namespaces" | "services") && served.group.is_empty();
    let valid = if path_segment {
        !name.contains(['/', '%'])
    } else if label {
        is_label(name)
    } else {
        is_subdomain(name)
    };
    if !valid {
        let why = if name.len() > 253 {
            "must be no more than 253 characters"
        } else if label {
            LABEL
        } else {
            SUBDOMAIN
        };
        causes.push(Cause::invalid("metadata.name", &name.into(), why));
    }
    for part in ["labels", "annotations"] {
        let map = at(body, &["metadata", part]).and_then(Value::as_object);
        for (name, value) in map.into_iter().flatten() {
            let here = format!("metadata.{part}");
            if !is_qualified(name) {
                causes.push(Cause::invalid(&here, &name.as_str().into(), QUALIFIED));
            }
            match value.as_str() {
                Some(text) if part == "labels" && !text.is_empty() && !is_qualified_part(text) => {
                    causes.push(Cause::invalid(&here, value, LABEL_VALUE));
                }
                Some(_) => {}
                None => causes.push(Cause::invalid(&here, value, "must be a string")),
            }
        }
    }
    // built-in kinds take no bare words but these, which are older than the rule
    const OLD: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];
    for (index, finalizer) in finalizers(body).enumerate() {
        let here = format!("metadata.finalizers[{index}]");
        if !is_qualified(finalizer) {
            causes.push(Cause::invalid(here, &finalizer.into(), QUALIFIED));
        } else if !served.custom
            && !finalizer.contains('/')
            && !OLD.contains(&finalizer)
            && finalizer != CLEANUP
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(here, &finalizer.into(), why));
        }
    }
    let refs = at(body, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let mut controllers = 0;
    for (index, reference) in refs.into_iter().flatten().enumerate() {
        for part in ["apiVersion", "kind", "name", "uid"] {
            if reference
                .get(part)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                let why = "must not be empty";
                causes.push(Cause::invalid(
                    format!("metadata.ownerReferences[{index}].{part}"),
                    &"".into(),
                    why,
                ));
            }
        }
        controllers += u32::from(reference.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true.";
        causes.push(Cause::invalid(
            "metadata.ownerReferences",
            &Value::Array(Vec::new()),
            why,
        ));
    }
    causes
}
