//! Conditions in the sense of the Kubernetes API conventions: the transition time moves only when the status does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The longest message the API takes, in bytes.
const MESSAGE_LIMIT: usize = 32 * 1024;

/// What a controller says about one condition of an object; the times are filled in by [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The condition's type, for example `Synced`.
    pub type_: &'static str,
    /// `True` or `False`.
    pub status: bool,
    /// A CamelCase word a program can match on.
    pub reason: &'static str,
    /// A sentence for people; of more than 32 KiB the rest is cut off.
    pub message: String,
}

/// The condition of this type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Writes `verdict` into `conditions`, as seen for `generation` at `now`.
///
/// A condition whose status stays the same keeps its `lastTransitionTime`; one that is equal in every respect stays untouched,
/// so that comparing old and new status tells whether a write is needed. Conditions of other types, and the order of all, stay as they are; a new one is the last.
/// Times are whole seconds, as the API server keeps them.
pub fn set(
    conditions: &mut Vec<Condition>,
    verdict: &Verdict,
    generation: Option<i64>,
    now: jiff::Timestamp,
) {
    let status = if verdict.status { "True" } else { "False" };
    let message = &verdict.message;
    let fresh = |since: Time| Condition {
        type_: verdict.type_.to_owned(),
        status: status.to_owned(),
        reason: verdict.reason.to_owned(),
        message: message[..message.floor_char_boundary(MESSAGE_LIMIT)].to_owned(),
        observed_generation: generation,
        last_transition_time: since,
    };
    let now = Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now));
    match conditions.iter_mut().find(|c| c.type_ == verdict.type_) {
        Some(old) if old.status == status => *old = fresh(old.last_transition_time.clone()),
        Some(old) => *old = fresh(now),
        None => conditions.push(fresh(now)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(status: bool, reason: &'static str) -> Verdict {
        Verdict {
            type_: "Synced",
            status,
            reason,
            message: "m".into(),
        }
    }

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_changes() {
        let mut conditions = vec![];
        set(&mut conditions, &verdict(true, "Scaled"), Some(1), at(10));
        set(&mut conditions, &verdict(true, "InSync"), Some(2), at(20));
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert_eq!(
            (
                conditions[0].reason.as_str(),
                conditions[0].observed_generation
            ),
            ("InSync", Some(2))
        );
        set(
            &mut conditions,
            &verdict(false, "Contended"),
            Some(2),
            at(30),
        );
        assert_eq!(conditions[0].last_transition_time, Time(at(30)));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn an_equal_verdict_changes_nothing_at_all() {
        let mut conditions = vec![];
        set(&mut conditions, &verdict(true, "InSync"), Some(1), at(10));
        let before = conditions.clone();
        set(&mut conditions, &verdict(true, "InSync"), Some(1), at(99));
        assert_eq!(conditions, before);
    }

    proptest! {
        #[test]
        fn whatever_is_said_in_whatever_order_times_move_with_the_status_and_others_stay_as_they_are(
            said in prop::collection::vec((0..3usize, any::<bool>(), 0..3usize, prop::option::of(0..3i64), 0..4i64), 0..30),
        ) {
            let foreign = Condition {
                type_: "Foreign".into(),
                status: "Unknown".into(),
                ..fresh()
            };
            let mut conditions = vec![foreign.clone()];
            let mut now = 1000;
            for (type_, status, reason, generation, later) in said {
                now += later;
                let verdict = Verdict {
                    type_: ["A", "B", "Foreign2"][type_],
                    status,
                    reason: ["One", "Two", "Three"][reason],
                    message: "m".repeat(20_000 * (reason + 1)),
                };
                let before = conditions.clone();
                set(&mut conditions, &verdict, generation, at(now));
                let types = |of: &[Condition]| of.iter().map(|c| c.type_.clone()).collect::<Vec<_>>();
                prop_assert!(types(&conditions).starts_with(&types(&before)), "the order stays");
                for (old, new) in before.iter().zip(&conditions) {
                    if old.type_ == verdict.type_ {
                        let moved = if old.status == new.status { old.last_transition_time.clone() } else { Time(at(now)) };
                        prop_assert_eq!(&new.last_transition_time, &moved);
                    } else {
                        prop_assert_eq!(old, new);
                    }
                }
                let new = get(&conditions, verdict.type_).expect("it is there");
                prop_assert_eq!((new.status == "True", new.reason.as_str(), new.observed_generation), (status, verdict.reason, generation));
                prop_assert!(new.message.len() <= 32 * 1024 && verdict.message.starts_with(&new.message));
                let again = conditions.clone();
                set(&mut conditions, &verdict, generation, at(now + 100));
                prop_assert_eq!(&conditions, &again);
            }
            prop_assert_eq!(&conditions[0], &foreign);
        }
    }

    fn fresh() -> Condition {
        Condition {
            type_: String::new(),
            status: String::new(),
            reason: String::new(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(at(1)),
        }
    }
}
