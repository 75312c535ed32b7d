//! What an informer mirrors: a kind, how much of it, and in which form.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use form_urlencoded::Serializer;
use kube::core::{Expression, SelectorExt};

use crate::kind::{Kind, Scope};

mod meets;
#[cfg(test)]
mod tests;

/// What an informer mirrors: the objects of a kind that are in a scope and have certain labels and fields, whole or without their insides.
///
/// Two selections are equal when they ask the server for the same, in whatever order their conditions were given; equal selections share an informer.
///
/// # Guarantees
///
/// The server selects, so what is not selected costs neither memory nor bandwidth. To a reader an object that is not selected is absent, and one that
/// ceases to be selected, because its labels or fields changed, is reported as deleted: the server says no more than that. So a deletion heard
/// through selectors means "is no longer among the selected", and only a live read tells whether the object still exists.
///
/// ```
/// use boatswain_cache::{Scope, Selection};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::core::Expression;
///
/// let ours = Selection::of::<Pod>()
///     .within(Scope::Namespace("harbour".into()))
///     .labels(Expression::Equal("app".into(), "crane".into()))?
///     .field_not("status.phase", "Succeeded")?
///     .metadata_only();
/// assert_eq!(ours.to_string(), "pods in harbour with labels app=crane, fields status.phase!=Succeeded, metadata only");
/// # Ok::<(), boatswain_cache::SelectionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use = "a selection says what to mirror; an informer mirrors it"]
pub struct Selection {
    kind: Kind,
    scope: Scope,
    labels: BTreeSet<LabelCondition>,
    /// Conditions as the server reads them, in order so that equal sets are equal.
    fields: BTreeSet<String>,
    form: Form,
}

/// A condition on labels; two of the same text are the same.
#[derive(Clone, Debug)]
struct LabelCondition {
    text: String,
    means: Expression,
}

impl PartialEq for LabelCondition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for LabelCondition {}

impl Hash for LabelCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for LabelCondition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LabelCondition {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl AsRef<str> for LabelCondition {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// How much of each object is mirrored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// All of it.
    #[default]
    Whole,
    /// Its metadata only, which the server cuts out; read it as `PartialObjectMeta<K>`.
    Metadata,
}

/// A condition the server would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// This is not the key of a label.
    #[error(
        "{key:?} is no label key: {why}; a key is a name of up to 63 letters, digits, '-', '_' and '.', with an optional DNS name and '/' before it"
    )]
    LabelKey {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// This is not the value of a label.
    #[error(
        "{value:?} is no value of the label {key}: {why}; a value is empty or up to 63 letters, digits, '-', '_' and '.'"
    )]
    LabelValue {
        /// The label.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A set of values without any.
    #[error("label {key} is to be in (or outside of) a set without values; name at least one")]
    NoValues {
        /// The label.
        key: String,
    },
    /// This is not the path of a field.
    #[error(
        "{path:?} is no path of a field; give names with dots between them, such as spec.nodeName"
    )]
    FieldPath {
        /// The path.
        path: String,
    },
}

impl Selection {
    /// All objects of a type known at compile time: whole, or their metadata only where the type is
    /// [`PartialObjectMeta`](kube::core::PartialObjectMeta).
    pub fn of<K: kube::Resource<DynamicType = ()> + 'static>() -> Self {
        let whole = Self::new(Kind::of::<K>());
        if K::metadata_api() {
            whole.metadata_only()
        } else {
            whole
        }
    }

    /// All objects of `kind`, whole.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            scope: Scope::All,
            labels: BTreeSet::new(),
            fields: BTreeSet::new(),
            form: Form::Whole,
        }
    }

    /// Those in `scope`. A kind without namespaces has one scope only, [`Scope::All`].
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = if self.kind.namespaced {
            scope
        } else {
            Scope::All
        };
        self
    }

    /// Those in one namespace: short for [`Selection::within`].
    pub fn in_namespace(self, namespace: impl Into<String>) -> Self {
        self.within(Scope::Namespace(namespace.into()))
    }

    /// Those that also meet `conditions` on their labels: an [`Expression`], or a [`Selector`](kube::core::Selector) of several.
    ///
    /// # Errors
    ///
    /// When a key or value is none a label can have, or a set is empty.
    pub fn labels(
        mut self,
        conditions: impl IntoIterator<Item = Expression>,
    ) -> Result<Self, SelectionError> {
        for condition in conditions {
            check(&condition)?;
            self.labels.insert(LabelCondition {
                text: condition.to_string(),
                means: condition,
            });
        }
        Ok(self)
    }

    /// Those whose field at `path` also is `value`. Which fields can be selected by is the server's choice: `metadata.name` and `metadata.namespace` for
    /// every kind, a few more for some, `selectableFields` for custom resources. It refuses others with 400, which the informer's status shows.
    ///
    /// # Errors
    ///
    /// When `path` is no path.
    pub fn field(self, path: &str, value: &str) -> Result<Self, SelectionError> {
        self.field_condition(path, "=", value)
    }

    /// Those whose field at `path` also is not `value`.
    ///
    /// # Errors
    ///
    /// When `path` is no path.
    pub fn field_not(self, path: &str, value: &str) -> Result<Self, SelectionError> {
        self.field_condition(path, "!=", value)
    }

    fn field_condition(
        mut self,
        path: &str,
        operator: &str,
        value: &str,
    ) -> Result<Self, SelectionError> {
        let named = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        if !path.split('.').all(named) {
            return Err(SelectionError::FieldPath {
                path: path.to_owned(),
            });
        }
        let mut condition = format!("{path}{operator}");
        for letter in value.chars() {
            if matches!(letter, '\\' | ',' | '=') {
                condition.push('\\');
            }
            condition.push(letter);
        }
        self.fields.insert(condition);
        Ok(self)
    }

    /// Their metadata only.
    pub fn metadata_only(mut self) -> Self {
        self.form = Form::Metadata;
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// How much of it.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// `apiVersion` and `kind` as the objects carry them.
    pub(crate) fn types(&self) -> (String, String) {
        match self.form {
            Form::Whole => (self.kind.api_version(), self.kind.kind.clone()),
            Form::Metadata => ("meta.k8s.io/v1".into(), "PartialObjectMetadata".into()),
        }
    }

    /// How much of each object.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether an object with these labels meets the conditions on labels. It may lie outside of the scope or fail those on fields.
    #[must_use]
    pub fn meets_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels
            .iter()
            .all(|condition| condition.means.matches(labels))
    }

    /// The conditions on labels as the server reads them, empty for none.
    #[must_use]
    pub fn label_selector(&self) -> String {
        joined(&self.labels)
    }

    /// The conditions on fields as the server reads them, empty for none.
    #[must_use]
    pub fn field_selector(&self) -> String {
        joined(&self.fields)
    }

    /// What is selected beyond kind and scope, empty for whole objects without conditions: a label of metrics and part of [`Selection::id`].
    #[must_use]
    pub fn qualifier(&self) -> String {
        let mut parts = Vec::new();
        if !self.labels.is_empty() {
            parts.push(format!("labels:{}", joined(&self.labels)));
        }
        if !self.fields.is_empty() {
            let fields = escaped(&joined(&self.fields));
            parts.push(format!("fields:{fields}"));
        }
        if self.form == Form::Metadata {
            parts.push("metadata".to_owned());
        }
        parts.join(";")
    }

    /// A name that no other selection has, fit to be the id of an actor: `deployments.v1.apps,*`, `pods.v1,harbour;labels:app=crane;metadata`.
    #[must_use]
    pub fn id(&self) -> String {
        let Kind {
            plural,
            version,
            group,
            ..
        } = &self.kind;
        let mut id = format!("{plural}.{version}");
        for part in [".", group].into_iter().filter(|_| !group.is_empty()) {
            id.push_str(part);
        }
        id.push(',');
        id.push_str(&escaped(&self.scope.to_string()));
        let qualifier = self.qualifier();
        if !qualifier.is_empty() {
            id.push(';');
            id.push_str(&qualifier);
        }
        id.replace('/', "%2F")
    }

    /// Adds the conditions to the query of a list or watch.
    pub(crate) fn narrow(&self, query: &mut Serializer<'_, String>) {
        for (name, conditions) in [
            ("labelSelector", self.label_selector()),
            ("fieldSelector", self.field_selector()),
        ] {
            if !conditions.is_empty() {
                query.append_pair(name, &conditions);
            }
        }
    }

    /// What a list or a watch is asked to answer with.
    pub(crate) fn accept(&self, verb: &str) -> &'static str {
        match (self.form, verb) {
            (Form::Whole, _) | (Form::Metadata, "get") => "application/json",
            (Form::Metadata, "watch") => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
            }
            (Form::Metadata, _) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"
            }
        }
    }
}

impl From<&Selection> for Selection {
    fn from(selection: &Selection) -> Self {
        selection.clone()
    }
}

impl From<Kind> for Selection {
    fn from(kind: Kind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match &self.scope {
            Scope::All => f.write_str(" in all namespaces")?,
            Scope::Namespace(namespace) => write!(f, " in {namespace}")?,
        }
        let mut parts = Vec::new();
        if !self.labels.is_empty() {
            parts.push(format!("labels {}", joined(&self.labels)));
        }
        if !self.fields.is_empty() {
            parts.push(format!("fields {}", joined(&self.fields)));
        }
        if !parts.is_empty() {
            write!(f, " with {}", parts.join(", "))?;
        }
        if self.form == Form::Metadata {
            f.write_str(", metadata only")?;
        }
        Ok(())
    }
}

/// Without what separates the parts of an id.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace(';', "%3B")
}

fn joined(conditions: &BTreeSet<impl AsRef<str>>) -> String {
    let conditions: Vec<&str> = conditions.iter().map(AsRef::as_ref).collect();
    conditions.join(",")
}

fn check(condition: &Expression) -> Result<(), SelectionError> {
    let one = |key: &str, value: &String| check_key(key).and_then(|()| check_value(key, value));
    match condition {
        Expression::Exists(key) | Expression::DoesNotExist(key) => check_key(key),
        Expression::Equal(key, value) | Expression::NotEqual(key, value) => one(key, value),
        Expression::In(key, values) | Expression::NotIn(key, values) if values.is_empty() => {
            Err(SelectionError::NoValues { key: key.clone() })
        }
        Expression::In(key, values) | Expression::NotIn(key, values) => {
            values.iter().try_for_each(|value| one(key, value))
        }
    }
}

fn check_key(key: &str) -> Result<(), SelectionError> {
    let wrong = |why| SelectionError::LabelKey {
        key: key.to_owned(),
        why,
    };
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) => {
            let part = |part: &str| {
                let dashes = part.starts_with('-') || part.ends_with('-');
                let letter =
                    |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                !part.is_empty() && !dashes && part.bytes().all(letter)
            };
            if prefix.len() > 253 || !prefix.split('.').all(part) {
                return Err(wrong("what is before '/' is no DNS name"));
            }
            name
        }
    };
    match fault(name) {
        Some(why) => Err(wrong(why)),
        None if name.is_empty() => Err(wrong("its name is empty")),
        None => Ok(()),
    }
}

fn check_value(key: &str, value: &str) -> Result<(), SelectionError> {
    fault(value).map_or(Ok(()), |why| {
        Err(SelectionError::LabelValue {
            key: key.to_owned(),
            value: value.to_owned(),
            why,
        })
    })
}

/// What keeps a text from being the name or the value of a label.
fn fault(text: &str) -> Option<&'static str> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    if bytes.len() > 63 {
        Some("it is longer than 63")
    } else if !bytes
        .iter()
        .all(|&byte| letter(byte) || b"-_.".contains(&byte))
    {
        Some("it has another character in it")
    } else if !bytes.first().copied().is_none_or(letter)
        || !bytes.last().copied().is_none_or(letter)
    {
        Some("it does not begin and end with a letter or digit")
    } else {
        None
    }
}
