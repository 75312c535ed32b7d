//! What can go wrong with a request.

use std::time::Duration;

use serde::Deserialize;

use crate::framing::FrameError;

#[cfg(test)]
mod tests;

/// A call that did not do what it was for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Refused(Status),
    /// No answer, or an answer that broke off.
    #[error("{0}")]
    Transport(String),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// An answer that does not come from an API server, whatever its code says: a proxy's page, for instance.
    #[error("the answer is no JSON but {0}; is there a proxy in between?")]
    Foreign(String),
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// Pages without end.
    #[error("the pages of the list lead back to one that was read already")]
    Circle,
    /// Objects of another kind than was asked for: none of them may be taken, and nothing follows from what is not among them.
    #[error(
        "the list that was answered is of another kind; is there a proxy in between, or is the informer's kind misspelt?"
    )]
    OtherKind,
    /// A cached list older than what is known.
    #[error(
        "the server's cached list at version {0} is older than what is known, or than its other pages"
    )]
    Old(crate::version::Version),
    /// A cached list that does not say how old it is before it is too late.
    #[error("the server's cached list tells its version after its items")]
    UnknownAge,
}

/// A refusal as the server words it. Missing parts are empty.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the server answered {code}{}{}", words(.reason), words(.message))]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// How long the server asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// The version asked for has not been reached by the server that answered.
    pub(crate) too_large: bool,
}

fn words(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

impl Status {
    /// Reads a `Status` object. A body that is none, such as a proxy's page, leaves the HTTP code alone to tell.
    pub(crate) fn parse(http: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        #[derive(Deserialize, Default)]
        struct Raw {
            code: Option<u16>,
            reason: Option<String>,
            message: Option<String>,
            details: Option<Details>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Details {
            retry_after_seconds: Option<u32>,
            causes: Option<Vec<Cause>>,
        }
        #[derive(Deserialize)]
        struct Cause {
            reason: Option<String>,
        }
        let raw: Raw = serde_json::from_slice(body).unwrap_or_default();
        let (reason, message) = (
            raw.reason.unwrap_or_default(),
            raw.message.unwrap_or_default(),
        );
        let details = raw.details.unwrap_or_default();
        let told = details
            .retry_after_seconds
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds.into()));
        let causes = details.causes.unwrap_or_default();
        // servers before 1.19 give the cause in words only
        let too_large = causes
            .iter()
            .any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"))
            || (reason == "Timeout" && message.contains("Too large resource version"));
        Self {
            code: raw.code.unwrap_or(http),
            reason,
            message,
            retry_after: retry_after.or(told),
            too_large,
        }
    }

    /// The version or token asked for is no longer known.
    pub(crate) fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }
}

impl Failure {
    pub(crate) fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    pub(crate) fn retry_after(&self) -> Duration {
        self.status()
            .and_then(|status| status.retry_after)
            .unwrap_or_default()
    }
}
