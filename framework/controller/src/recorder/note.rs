//! What is to be told about an object, and the Event it makes: within the limits that the API sets.

use std::borrow::Cow;

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use crate::{
    identity::Identified,
    names::{is_subdomain, qualified},
};

/// Limits of the API (`events.k8s.io/v1` validation), in bytes.
const NOTE_LIMIT: usize = 1024;
const WORD_LIMIT: usize = 128;
const NAME_LIMIT: usize = 253;
/// Where Events about objects without a namespace are.
pub(super) const NOWHERE: &str = "default";
/// Where servers such as 1.20 want them.
pub(super) const NOWHERE_BEFORE: &str = "kube-system";
/// What stands for a word that nobody gave: the API wants one.
const UNSAID: &str = "Unspecified";

/// Something to tell about an object, as an Event (`kubectl describe` shows it). Given to [`Context::tell`](crate::Context::tell).
///
/// ```
/// # use boatswain::Note;
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # let (deployment, settings) = (Deployment::default(), ConfigMap::default());
/// let note = Note::normal(&deployment, "Restarted", "its settings changed").because_of(&settings).action("Restart");
/// ```
#[derive(Clone, Debug)]
pub struct Note {
    regarding: ObjectReference,
    related: Option<ObjectReference>,
    severity: Severity,
    reason: &'static str,
    action: &'static str,
    text: String,
}

/// How an Event is shown by `kubectl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Note {
    /// That `object` was dealt with: `reason` is a CamelCase word a program can match on (128 bytes at most), `text` a sentence for people (1024 at most).
    /// What is longer is cut.
    pub fn normal<K: Identified>(
        object: &K,
        reason: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Self::on(object.identity(), Severity::Normal, reason, text.into())
    }

    /// As [`Note::normal`], for what a person should look at.
    pub fn warning<K: Identified>(
        object: &K,
        reason: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Self::on(object.identity(), Severity::Warning, reason, text.into())
    }

    pub(crate) fn on(
        regarding: ObjectReference,
        severity: Severity,
        reason: &'static str,
        text: String,
    ) -> Self {
        Self {
            regarding,
            related: None,
            severity,
            reason,
            action: reason,
            text,
        }
    }

    /// Names a second object that the story is about: the Event's `related`.
    #[must_use]
    pub fn because_of<K: Identified>(mut self, other: &K) -> Self {
        self.related = Some(other.identity());
        self
    }

    /// What was done or tried, as a CamelCase word (128 bytes at most). The reason where it is not said.
    #[must_use]
    pub fn action(mut self, action: &'static str) -> Self {
        self.action = action;
        self
    }

    /// What is one series when it repeats: all that is told, by whom, about which incarnation. Parts are kept apart, so that no two make the same.
    pub(super) fn identity(&self, source: &str) -> String {
        let subject = self.subject(source);
        let related = self.related.as_ref().map(subject_of).unwrap_or_default();
        let word = self.severity.word();
        let Self {
            reason,
            action,
            text,
            ..
        } = self;
        format!("{subject}\0{related}\0{word}\0{reason}\0{action}\0{text}")
    }

    /// Who says it about which object.
    pub(super) fn subject(&self, source: &str) -> String {
        format!("{source}\0{}", subject_of(&self.regarding))
    }

    /// The Event it makes, still without a name; in the namespace `nowhere` if the object has none.
    pub(super) fn event(
        &self,
        source: &str,
        instance: &str,
        nowhere: &str,
        at: jiff::Timestamp,
    ) -> Event {
        let namespace = self.regarding.namespace.as_deref().unwrap_or(nowhere);
        Event {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(word(self.action)),
            event_time: Some(MicroTime(at)),
            note: Some(cut(&self.text, NOTE_LIMIT).into_owned()),
            reason: Some(word(self.reason)),
            regarding: Some(self.regarding.clone()),
            related: self.related.clone(),
            reporting_controller: Some(qualified(source)),
            reporting_instance: Some(word(instance)),
            type_: Some(self.severity.word().to_owned()),
            ..Event::default()
        }
    }
}

fn subject_of(object: &ObjectReference) -> String {
    let ObjectReference {
        api_version,
        field_path,
        kind,
        name,
        namespace,
        uid,
        ..
    } = object;
    let parts = [api_version, kind, namespace, name, uid, field_path];
    parts
        .map(|part| part.as_deref().unwrap_or_default())
        .join("\0")
}

/// The name of an Event about `object`: unlike all others by `number` and the time, and one that the API takes.
pub(super) fn name_of(object: Option<&str>, at: jiff::Timestamp, number: u64) -> String {
    let suffix = format!(".{:x}.{number:x}", at.as_nanosecond());
    let object = object.filter(|name| is_subdomain(name)).unwrap_or("event");
    let room = NAME_LIMIT.saturating_sub(suffix.len());
    let stem = object[..object.floor_char_boundary(room)].trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

fn word(text: &str) -> String {
    match text {
        "" => UNSAID.to_owned(),
        text => text[..text.floor_char_boundary(WORD_LIMIT)].to_owned(),
    }
}

/// At most `limit` bytes of `text`, cut between characters and showing that it was.
fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    const MORE: &str = "…";
    if text.len() <= limit {
        return text.into();
    }
    let room = limit.saturating_sub(MORE.len());
    format!("{}{MORE}", &text[..text.floor_char_boundary(room)]).into()
}

#[cfg(test)]
mod tests;
