//! Refusals, worded and structured as the real server words them.

use serde_json::{Map, Value, json};

use crate::model::served::Served;

/// One reason why a field is not accepted, as listed under `details.causes` of a `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason, for example `FieldValueInvalid`.
    pub reason: &'static str,
    /// What is wrong, in words, without the field.
    pub message: String,
    /// Path of the field, for example `spec.replicas`.
    pub field: String,
}

impl Cause {
    pub(crate) fn required(field: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueRequired",
            message: "Required value".into(),
            field: field.into(),
        }
    }

    pub(crate) fn new(
        reason: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: impl AsRef<str>) -> Self {
        let message = format!("Invalid value: {}: {}", value, why.as_ref());
        Self {
            reason: "FieldValueInvalid",
            message,
            field: field.into(),
        }
    }

    pub(crate) fn unsupported(
        field: impl Into<String>,
        value: &Value,
        supported: &[Value],
    ) -> Self {
        let list = supported
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let message = format!("Unsupported value: {}: supported values: {list}", value);
        Self {
            reason: "FieldValueNotSupported",
            message,
            field: field.into(),
        }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {}", why.as_ref()),
            field: field.into(),
        }
    }
}

/// A refused request: what becomes the `Status` body of the answer.
///
/// Displays as the message a client shows to its user.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, for example `NotFound`; empty where the real server gives none.
    pub reason: &'static str,
    /// What was tried, on which object, and why it failed.
    pub message: String,
    /// The `details` of the `Status`; `Value::Null` when it has none.
    pub details: Value,
    /// A continue token that leads on from an expired one.
    pub continue_token: Option<String>,
}

impl Failure {
    /// A refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            continue_token: None,
        }
    }

    fn on(mut self, served: &Served, name: &str) -> Self {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !served.group.is_empty() {
            details.insert("group".into(), served.group.clone().into());
        }
        details.insert("kind".into(), served.plural.clone().into());
        self.details = Value::Object(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn not_found(served: &Served, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", served.qualified()),
        )
        .on(served, name)
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let mut failure = Self::new(404, "NotFound", format!("namespaces \"{name}\" not found"));
        failure.details = json!({"name": name, "kind": "namespaces"});
        failure
    }

    pub(crate) fn namespace_terminating(served: &Served, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut failure = Self::forbidden(served, name, &why);
        let cause = format!("namespace {namespace} is being terminated");
        failure.details["causes"] = json!([{"reason": "NamespaceTerminating", "message": cause, "field": "metadata.namespace"}]);
        failure
    }

    pub(crate) fn already_exists(served: &Served, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", served.qualified()),
        )
        .on(served, name)
    }

    pub(crate) fn conflict(served: &Served, name: &str, why: impl AsRef<str>) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {}",
            served.qualified(),
            why.as_ref()
        );
        Self::new(409, "Conflict", message).on(served, name)
    }

    pub(crate) fn stale(served: &Served, name: &str) -> Self {
        Self::conflict(
            served,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(served: &Served, name: &str, why: &str) -> Self {
        let message = match name {
            "" => format!("{} is forbidden: {why}", served.qualified()),
            name => format!("{} \"{name}\" is forbidden: {why}", served.qualified()),
        };
        Self::new(403, "Forbidden", message).on(served, name)
    }

    pub(crate) fn invalid(served: &Served, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_as(&served.group, &served.kind, name, causes)
    }

    /// Options of a request that are not accepted, for example `ListOptions`.
    pub(crate) fn invalid_options(kind: &str, cause: Cause) -> Self {
        Self::invalid_as("meta.k8s.io", kind, "", &[cause])
    }

    pub(crate) fn invalid_as(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let lines = causes
            .iter()
            .map(|c| format!("{}: {}", c.field, c.message))
            .collect::<Vec<_>>();
        let text = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut failure = Self::new(
            422,
            "Invalid",
            format!("{qualified} \"{name}\" is invalid: {text}"),
        );
        let causes = causes
            .iter()
            .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}));
        failure.details = json!({"kind": kind, "causes": causes.collect::<Vec<_>>()});
        for (part, value) in [("name", name), ("group", group)] {
            if !value.is_empty() {
                failure.details[part] = value.into();
            }
        }
        failure
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    pub(crate) fn not_acceptable() -> Self {
        let accepted = "application/json, application/yaml, application/json;stream=watch";
        Self::new(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {accepted}"),
        )
    }

    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types do not include {given}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn version_too_large(wanted: u64, current: u64) -> Self {
        let mut failure = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        );
        failure.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        failure
    }

    /// The `Status` object that a client receives.
    pub fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = token.clone().into();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
