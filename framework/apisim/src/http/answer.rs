//! Answers on their way out.

use ::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::{media::Form, service::SimBody};
use crate::{audit::Outcome, failure::Failure};

/// An answer, and what the audit log keeps of it.
pub(super) struct Answer {
    pub(super) response: Response<SimBody>,
    pub(super) outcome: Outcome,
}

fn whole(code: u16, content_type: &'static str, body: Bytes) -> Response<SimBody> {
    let mut response = Response::new(SimBody::new(
        Full::new(body).map_err(|never| match never {}),
    ));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

impl Answer {
    /// A JSON document; one object per line, as the real server ends it.
    pub(super) fn json(code: u16, mut body: Vec<u8>) -> Self {
        body.push(b'\n');
        let response = whole(code, "application/json", body.into());
        Self {
            response,
            outcome: Outcome {
                code,
                ..Outcome::default()
            },
        }
    }

    pub(super) fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string().into_bytes())
    }

    /// A document in the form that is wanted.
    pub(super) fn formed(code: u16, form: &Form, value: &Value) -> Self {
        if *form != Form::Yaml {
            return Self::value(code, value);
        }
        match serde_saphyr::to_string(value) {
            Ok(text) => Self {
                response: whole(code, "application/yaml", text.into()),
                outcome: Outcome {
                    code,
                    ..Outcome::default()
                },
            },
            Err(error) => Self::failure(
                &Failure::new(
                    500,
                    "InternalError",
                    format!("the answer cannot be written as YAML: {error}"),
                ),
                None,
            ),
        }
    }

    pub(super) fn text(code: u16, text: &'static str) -> Self {
        let response = whole(
            code,
            "text/plain; charset=utf-8",
            Bytes::from_static(text.as_bytes()),
        );
        Self {
            response,
            outcome: Outcome {
                code,
                ..Outcome::default()
            },
        }
    }

    pub(super) fn bytes(content_type: &'static str, body: Bytes) -> Self {
        Self {
            response: whole(200, content_type, body),
            outcome: Outcome {
                code: 200,
                ..Outcome::default()
            },
        }
    }

    pub(super) fn stream(body: SimBody) -> Self {
        let mut response = Response::new(body);
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        response.headers_mut().insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
        Self {
            response,
            outcome: Outcome {
                code: 200,
                ..Outcome::default()
            },
        }
    }

    pub(super) fn failure(failure: &Failure, retry_after: Option<u32>) -> Self {
        let status = failure.status();
        let mut answer = Self::value(failure.code, &status);
        if let Some(seconds) = retry_after {
            answer
                .response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        answer.outcome.answered = Bytes::from(status.to_string());
        answer
    }

    /// Notes the object that a write left behind.
    pub(super) fn wrote(mut self, version: u64, changed: bool, body: Bytes) -> Self {
        self.outcome.version = Some(version);
        self.outcome.changed = changed;
        self.outcome.answered = body;
        self
    }

    /// Adds `Warning` headers.
    pub(super) fn warn(mut self, warnings: &[String]) -> Self {
        for warning in warnings {
            if let Ok(value) =
                HeaderValue::from_str(&format!("299 - \"{}\"", warning.replace('"', "\\\"")))
            {
                self.response.headers_mut().append(header::WARNING, value);
            }
        }
        self
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        let retry_after = failure
            .details
            .get("retryAfterSeconds")
            .and_then(Value::as_u64)
            .and_then(|s| u32::try_from(s).ok());
        Self::failure(&failure, retry_after)
    }
}
