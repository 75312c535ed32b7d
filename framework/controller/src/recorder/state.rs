//! Which notes become new Events and which raise the count of an earlier one; pure.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::{
    api::events::v1::Event,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use super::{Note, Severity};

/// Series that are remembered; beyond it the one that was quiet longest is forgotten.
const SERIES: usize = 1024;
/// A series that was quiet this long starts anew, as in client-go's events.k8s.io recorder.
const QUIET: Duration = Duration::from_secs(6 * 60);
/// Limits of the API (`events.k8s.io/v1` validation).
const NOTE_LIMIT: usize = 1024;
const NAME_LIMIT: usize = 253;

/// What to do with a note.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Create(Box<Event>),
    Count {
        namespace: String,
        name: String,
        count: i32,
        at: MicroTime,
    },
}

#[derive(Default)]
pub(super) struct Series {
    known: HashMap<Identity, Run>,
    made: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    uid: Option<String>,
    severity: Severity,
    reason: &'static str,
    note: String,
}

struct Run {
    name: String,
    count: i32,
    last: jiff::Timestamp,
}

impl Series {
    /// Decides about `note`; `instance` is the process that reports.
    pub(super) fn step(&mut self, note: &Note, instance: &str) -> Step {
        let namespace = note
            .regarding
            .namespace
            .clone()
            .unwrap_or_else(|| "default".into());
        let identity = Identity {
            uid: note.regarding.uid.clone(),
            severity: note.severity,
            reason: note.reason,
            note: truncated(&note.note, NOTE_LIMIT).to_owned(),
        };
        let at = MicroTime(note.at);
        if let Some(run) = self.known.get_mut(&identity)
            && note.at.duration_since(run.last).unsigned_abs() < QUIET
        {
            run.count = run.count.saturating_add(1);
            run.last = note.at;
            return Step::Count {
                namespace,
                name: run.name.clone(),
                count: run.count,
                at,
            };
        }
        self.make_room();
        self.made += 1;
        let suffix = format!(".{:x}.{:x}", note.at.as_nanosecond(), self.made);
        let object = note.regarding.name.as_deref().unwrap_or("unknown");
        let stem = truncated(object, NAME_LIMIT - suffix.len()).trim_end_matches(['.', '-']);
        let name = format!("{stem}{suffix}");
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            action: Some(note.reason.into()),
            event_time: Some(at),
            note: Some(identity.note.clone()),
            reason: Some(note.reason.into()),
            regarding: Some(note.regarding.clone()),
            reporting_controller: Some(note.controller.clone()),
            reporting_instance: Some(truncated(instance, 128).to_owned()),
            type_: Some(match note.severity {
                Severity::Normal => "Normal".into(),
                Severity::Warning => "Warning".into(),
            }),
            ..Event::default()
        };
        self.known.insert(
            identity,
            Run {
                name,
                count: 1,
                last: note.at,
            },
        );
        Step::Create(Box::new(event))
    }

    /// The Event of `note` is gone from the server (its time to live is an hour): the next one starts a series of its own.
    pub(super) fn forget(&mut self, name: &str) {
        self.known.retain(|_, run| run.name != name);
    }

    fn make_room(&mut self) {
        if self.known.len() >= SERIES
            && let Some(oldest) = self
                .known
                .iter()
                .min_by_key(|(_, run)| run.last)
                .map(|(id, _)| id.clone())
        {
            self.known.remove(&oldest);
        }
    }
}

/// At most `limit` bytes of `text`, cut between characters.
fn truncated(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;

    fn note(text: &str, second: i64) -> Note {
        Note {
            regarding: ObjectReference {
                name: Some("web".into()),
                namespace: Some("shop".into()),
                uid: Some("u1".into()),
                ..ObjectReference::default()
            },
            severity: Severity::Normal,
            reason: "Scaled",
            note: text.into(),
            controller: "podautoscaler".into(),
            at: jiff::Timestamp::from_second(second).expect("in range"),
        }
    }

    fn created(step: Step) -> Event {
        match step {
            Step::Create(event) => *event,
            Step::Count { .. } => panic!("expected a new event"),
        }
    }

    #[test]
    fn a_repeated_note_raises_the_count_of_its_event() {
        let mut series = Series::default();
        let first = created(series.step(&note("3 to 5", 0), "pod"));
        let Step::Count { name, count, .. } = series.step(&note("3 to 5", 60), "pod") else {
            panic!("expected a count")
        };
        assert_eq!((Some(name), count), (first.metadata.name, 2));
    }

    #[test]
    fn another_note_or_a_quiet_time_starts_a_new_event() {
        let mut series = Series::default();
        let first = created(series.step(&note("3 to 5", 0), "pod"));
        let other = created(series.step(&note("5 to 3", 1), "pod"));
        let later = created(series.step(&note("3 to 5", 3600), "pod"));
        assert_ne!(first.metadata.name, other.metadata.name);
        assert_ne!(first.metadata.name, later.metadata.name);
    }

    #[test]
    fn notes_and_names_are_cut_to_what_the_api_accepts() {
        let mut series = Series::default();
        let mut long = note(&"ü".repeat(2000), 0);
        long.regarding.name = Some("n".repeat(253));
        let event = created(series.step(&long, "pod"));
        assert!(event.note.expect("a note").len() <= 1024);
        assert!(event.metadata.name.expect("a name").len() <= 253);
    }

    #[test]
    fn memory_follows_the_bound_not_the_number_of_notes() {
        let mut series = Series::default();
        for i in 0..3000 {
            series.step(&note(&format!("note {i}"), i), "pod");
        }
        assert!(series.known.len() <= SERIES);
    }
}
