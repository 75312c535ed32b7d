//! Why a request is not answered, always in the same form: JSON with one sentence.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{BODY, json};
use crate::{source::Refused, view::Problem};

/// Bytes of a sentence of the framework's.
const SENTENCE: usize = 4096;
/// How a sentence of the framework's begins that is about a query, which says so itself by naming the parameter.
const QUERY: &str = "Failed to deserialize query string: ";
/// Where there is something to post to.
const ACTIONS: &str = "/api/v1/actions/";

pub(super) fn problem(code: StatusCode, error: impl Into<String>) -> Response {
    let error = error.into();
    (code, json(&Problem { error })).into_response()
}

pub(super) fn refused(why: Refused) -> Response {
    let code = match why {
        Refused::Invalid(_) => StatusCode::BAD_REQUEST,
        Refused::Unknown(_) => StatusCode::NOT_FOUND,
        Refused::Impossible(_) => StatusCode::CONFLICT,
    };
    problem(code, why.to_string())
}

pub(super) fn starting() -> Response {
    problem(StatusCode::SERVICE_UNAVAILABLE, "the manager is starting")
}

/// Puts refusals that the framework words itself, of a method, a path or a query that does not fit or of a body that is too long, into the form of all others.
pub(super) async fn in_one_form(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    // the header that says so is added to the answer later on
    let allowed = match request.uri().path().starts_with(ACTIONS) {
        true => "POST",
        false => "GET",
    };
    let response = next.run(request).await;
    let code = response.status();
    if !(code.is_client_error() || code.is_server_error()) || is_json(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let why = match code {
        StatusCode::METHOD_NOT_ALLOWED => {
            format!("{method} is not allowed here; allowed: {allowed}; see /openapi.yaml")
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the body is longer than {} kB", BODY / 1024)
        }
        code => {
            let said = to_bytes(body, SENTENCE).await.unwrap_or_default();
            match String::from_utf8_lossy(&said).trim() {
                "" => code.canonical_reason().unwrap_or("it failed").to_owned(),
                said => {
                    let said = said.strip_prefix(QUERY).unwrap_or(said);
                    format!("{said}; see /openapi.yaml")
                }
            }
        }
    };
    let told = problem(code, why);
    let kind = HeaderValue::from_static("application/json");
    parts.headers.insert(CONTENT_TYPE, kind);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::new(told.into_body()))
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}
