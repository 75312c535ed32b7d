//! What is known of a resource as it is served under one group and version.

use std::sync::Arc;

use serde_json::Value;

use super::{
    event,
    object::{Body, Collection},
};
use crate::schema::Schema;

/// When `metadata.generation` rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    Never,
    /// When `spec` changes.
    Spec,
    /// When anything but `metadata` and `status` changes: custom resources.
    AllButStatus,
}

/// How the stored form and the served form differ, apart from `kind` and `apiVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Same,
    /// Stored as core/v1 Event, served as events.k8s.io/v1 Event.
    Event,
}

/// Where the scale subresource finds its values, as paths of field names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    /// A string (custom resources) or a label selector object (built-in kinds).
    pub(crate) selector: Option<Vec<String>>,
}

impl ScalePaths {
    pub(crate) fn builtin() -> Self {
        let path = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        Self {
            spec_replicas: path("spec", "replicas"),
            status_replicas: path("status", "replicas"),
            selector: Some(path("spec", "selector")),
        }
    }
}

/// One column of a table as kubectl prints it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    /// Path of the value; empty for columns that are computed.
    pub(crate) path: String,
}

/// A resource under one group and version.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [&'static str],
    /// Where its objects are stored.
    pub(crate) collection: Collection,
    /// Whether objects are stored as they are served here, so that encoded events can be shared.
    pub(crate) native: bool,
    pub(crate) view: View,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) generation: Generation,
    pub(crate) schema: Option<Arc<Schema>>,
    /// The schema as its author wrote it, for the OpenAPI documents.
    pub(crate) openapi: Option<Value>,
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable: Vec<String>,
    pub(crate) custom: bool,
    /// Whether an update without a resourceVersion is accepted.
    pub(crate) unconditional: bool,
}

/// The verbs of an ordinary resource.
pub(crate) const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

impl Served {
    /// `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `pods` or `deployments.apps`, as messages name it.
    pub(crate) fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The opening of an object's JSON up to what is stored of it.
    pub(crate) fn head(&self) -> String {
        format!(
            "{{\"kind\":{},\"apiVersion\":{},",
            Value::from(self.kind.as_str()),
            Value::from(self.api_version())
        )
    }

    /// The stored form of a body that a client sent.
    pub(crate) fn stored(&self, body: Body) -> Body {
        match self.view {
            View::Same => body,
            View::Event => event::to_core(body),
        }
    }

    /// The form a client sees, without `kind` and `apiVersion`.
    pub(crate) fn shown(&self, body: &Body) -> Body {
        match self.view {
            View::Same => body.clone(),
            View::Event => event::from_core(body.clone()),
        }
    }

    /// The whole object a client sees.
    pub(crate) fn render(&self, body: &Body) -> Value {
        let mut shown = self.shown(body);
        shown.insert("kind".into(), self.kind.clone().into());
        shown.insert("apiVersion".into(), self.api_version().into());
        Value::Object(shown)
    }
}
