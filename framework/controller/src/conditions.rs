//! Conditions in the sense of the Kubernetes API conventions: the transition time moves only when the status does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a controller says about one condition of an object; the times are filled in by [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The condition's type, for example `Synced`.
    pub type_: &'static str,
    /// `True` or `False`.
    pub status: bool,
    /// A CamelCase word a program can match on.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Writes `verdict` into `conditions`, as seen for `generation` at `now`.
///
/// A condition whose status stays the same keeps its `lastTransitionTime`; one that is equal in every respect stays untouched,
/// so that comparing old and new status tells whether a write is needed.
pub fn set(
    conditions: &mut Vec<Condition>,
    verdict: &Verdict,
    generation: Option<i64>,
    now: jiff::Timestamp,
) {
    let status = if verdict.status { "True" } else { "False" };
    let fresh = |since: Time| Condition {
        type_: verdict.type_.to_owned(),
        status: status.to_owned(),
        reason: verdict.reason.to_owned(),
        message: verdict.message.clone(),
        observed_generation: generation,
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|c| c.type_ == verdict.type_) {
        Some(old) if old.status == status => *old = fresh(old.last_transition_time.clone()),
        Some(old) => *old = fresh(Time(now)),
        None => conditions.push(fresh(Time(now))),
    }
}

#[cfg(test)]
mod tests {
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
}
