//! Whose fault a request that failed is.

use std::time::Duration;

use boatswain_cache::{LiveCause, LiveError};
use kube::core::Status;

use super::status;
use crate::reconcile::Fault;

/// Only an answer of the server can be the object's.
pub(crate) fn fault_of(error: &kube::Error) -> Fault {
    let Some(status) = status(error) else {
        return match error {
            kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Fault::Object,
            _ => Fault::Infrastructure { retry_after: None },
        };
    };
    let seconds = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
    let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    match status.code {
        409 if status.reason != "AlreadyExists" => Fault::Conflict,
        403 if is_about_the_object(status) => Fault::Object,
        // rights are given and taken away, and a server that has just started denies them for a moment
        // and no API server answers without a code
        0 | 401 | 403 | 408 | 429 | 500..=599 => Fault::Infrastructure { retry_after },
        _ => Fault::Object,
    }
}

/// A read is refused for its object only where it can never succeed.
pub(crate) fn fault_of_read(error: &LiveError) -> Fault {
    let away = Fault::Infrastructure { retry_after: None };
    match &error.cause {
        LiveCause::Throttled { retry_after, .. } => Fault::Infrastructure {
            retry_after: *retry_after,
        },
        LiveCause::Unauthorized(_) | LiveCause::Forbidden(_) | LiveCause::Unreadable(_) => away,
        _ if error.is_transient() => away,
        _ => Fault::Object,
    }
}

/// Whether a refusal (403) is about what the object asks for, by quota, limits or admission, and not about who asks.
fn is_about_the_object(status: &Status) -> bool {
    const WORDS: [&str; 7] = [
        "exceeded quota",
        "failed quota",
        "maximum ",
        "minimum ",
        "admission webhook",
        "ValidatingAdmissionPolicy",
        "violates PodSecurity",
    ];
    // as every authorizer says it, whatever the name of the user
    let is_about_rights =
        status.message.contains("User \"") && status.message.contains("\" cannot ");
    let details = status.details.as_ref();
    !is_about_rights
        && (details.is_some_and(|details| !details.causes.is_empty())
            || WORDS.iter().any(|word| status.message.contains(word)))
}

#[cfg(test)]
mod tests {
    use boatswain_cache::Key;

    use super::*;

    fn refused(code: u16, message: &str) -> Fault {
        let status = Status::failure(message, "Forbidden").with_code(code);
        fault_of(&kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn a_refusal_by_quota_limits_or_admission_is_the_objects_and_missing_rights_are_not() {
        for message in [
            r#"pods "web" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5"#,
            r#"pods "web" is forbidden: failed quota: small: must specify limits.cpu"#,
            r#"pods "web" is forbidden: maximum cpu usage per Container is 1, but limit is 2"#,
            r#"admission webhook "guard.example.com" denied the request: no"#,
            r#"deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'all' denied request: too many"#,
            r#"pods "web" is forbidden: violates PodSecurity "restricted:latest": privileged"#,
        ] {
            assert_eq!(refused(403, message), Fault::Object, "{message}");
        }
        let away = Fault::Infrastructure { retry_after: None };
        for message in [
            r#"pods is forbidden: User "exceeded quota" cannot create resource "pods" in API group "" in the namespace "shop""#,
            r#"forbidden: User "system:anonymous" cannot get path "/""#,
            "the proxy says no",
        ] {
            assert_eq!(refused(403, message), away, "{message}");
        }
    }

    #[test]
    fn json_that_some_proxy_answers_with_is_not_the_objects_fault() {
        let status =
            serde_json::from_str(r#"{"message":"upstream down"}"#).expect("all is optional");
        let error = kube::Error::Api(Box::new(status));
        let away = Fault::Infrastructure { retry_after: None };
        assert_eq!(fault_of(&error), away);
    }

    #[test]
    fn a_read_past_the_cache_that_fails_for_the_time_being_is_not_the_objects_fault() {
        let fault = |cause| {
            fault_of_read(&LiveError {
                resource: "pods".into(),
                key: Key::new(Some("shop"), "web"),
                cause,
            })
        };
        let away = Fault::Infrastructure { retry_after: None };
        let text = String::new;
        for cause in [
            LiveCause::Unreachable(text()),
            LiveCause::TimedOut(Duration::from_secs(10)),
            LiveCause::Unauthorized(text()),
            LiveCause::Forbidden(text()),
            LiveCause::Unreadable(text()),
            LiveCause::Refused {
                code: 503,
                message: text(),
            },
        ] {
            let words = cause.to_string();
            assert_eq!(fault(cause), away, "{words}");
        }
        let retry_after = Some(Duration::from_secs(7));
        let throttled = LiveCause::Throttled {
            retry_after,
            message: text(),
        };
        assert_eq!(fault(throttled), Fault::Infrastructure { retry_after });
        for cause in [
            LiveCause::InvalidKey("no"),
            LiveCause::NoSuchResource(text()),
            LiveCause::Refused {
                code: 400,
                message: text(),
            },
        ] {
            let words = cause.to_string();
            assert_eq!(fault(cause), Fault::Object, "{words}");
        }
    }
}
