//! What an answer of the API server means for a write.

use std::time::Duration;

use super::counts::Dropped;
use crate::{
    client::{fault_of, root_cause, status},
    reconcile::Fault,
};

/// What the API server names as the cause where a namespace is going (`NamespaceTerminating`).
const TERMINATING: &str = "NamespaceTerminating";
/// The field that the API server names as the cause where an Event about an object without a namespace is in the wrong one.
const PLACE: &str = "involvedObject.namespace";

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Taken,
    /// There is an Event of this name.
    Exists,
    /// It belongs in another namespace.
    Misplaced(String),
    /// There is no such Event, or no such namespace (any more).
    Missing(String),
    /// Trying again cannot help.
    Refused(Dropped, String),
    /// The server is busy or away.
    Busy {
        retry_after: Option<Duration>,
        why: String,
    },
}

/// Why an Event was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    pub(super) dropped: Dropped,
    pub(super) why: String,
}

impl Answer {
    pub(super) fn of(answer: &Result<(), kube::Error>) -> Self {
        let Err(error) = answer else {
            return Self::Taken;
        };
        let why = root_cause(error);
        let Some(status) = status(error) else {
            return match fault_of(error) {
                Fault::Infrastructure { retry_after } => Self::Busy { retry_after, why },
                _ => Self::Refused(Dropped::Refused, why),
            };
        };
        let causes = || status.details.iter().flat_map(|details| &details.causes);
        let terminating = causes().any(|cause| cause.reason == TERMINATING)
            || status.message.contains("because it is being terminated");
        match status.code {
            409 if status.reason == "AlreadyExists" => Self::Exists,
            403 if terminating => Self::Refused(Dropped::Namespace, why),
            403 => Self::Refused(Dropped::Forbidden, why),
            404 => Self::Missing(why),
            422 if causes().any(|cause| cause.field == PLACE) => Self::Misplaced(why),
            _ => match fault_of(error) {
                Fault::Infrastructure { retry_after } => Self::Busy { retry_after, why },
                // of a patch: somebody else wrote at that moment
                Fault::Conflict => Self::Busy {
                    retry_after: None,
                    why,
                },
                _ => Self::Refused(Dropped::Refused, why),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{
        Status,
        response::{StatusCause, StatusDetails},
    };

    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> Answer {
        let status = Status::failure(message, reason).with_code(code);
        Answer::of(&Err(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn what_cannot_succeed_is_told_from_what_may_later() {
        let text = "events is forbidden";
        assert!(matches!(
            refused(403, "Forbidden", text),
            Answer::Refused(Dropped::Forbidden, _)
        ));
        let text = "unable to create new content in namespace shop because it is being terminated";
        assert!(matches!(
            refused(403, "Forbidden", text),
            Answer::Refused(Dropped::Namespace, _)
        ));
        assert!(matches!(refused(404, "NotFound", ""), Answer::Missing(_)));
        assert!(matches!(
            refused(422, "Invalid", ""),
            Answer::Refused(Dropped::Refused, _)
        ));
        assert_eq!(refused(409, "AlreadyExists", ""), Answer::Exists);
        let mut status = Status::failure("Event \"x\" is invalid", "Invalid").with_code(422);
        let cause = StatusCause {
            field: "involvedObject.namespace".into(),
            ..StatusCause::default()
        };
        let details = StatusDetails {
            causes: vec![cause],
            ..StatusDetails::default()
        };
        status.details = Some(details);
        let misplaced = Answer::of(&Err(kube::Error::Api(Box::new(status))));
        assert!(matches!(misplaced, Answer::Misplaced(_)), "{misplaced:?}");
        for (code, reason) in [
            (409, "Conflict"),
            (401, "Unauthorized"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (503, "ServiceUnavailable"),
        ] {
            let answer = refused(code, reason, "");
            assert!(matches!(answer, Answer::Busy { .. }), "{code}: {answer:?}");
        }
        assert_eq!(Answer::of(&Ok(())), Answer::Taken);
    }
}
