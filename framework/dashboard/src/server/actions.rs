//! What people ask for: checked, carried out, and written down.

use std::fmt::Display;

use axum::{
    Extension,
    body::Bytes,
    extract::{ConnectInfo, Path, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use serde_json::{Map, Value};

use super::{door::Peer, json, problem, refused};
use crate::{core::Dashboard, plain::plain_line, source::Action, view::Done};

/// `POST /api/v1/actions/{action}`; `verify` does nothing but say whether the token is right.
pub(super) async fn act(
    State(dashboard): State<Dashboard>,
    peer: Option<Extension<ConnectInfo<Peer>>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let peer = peer.map_or_else(
        || "in process".into(),
        |Extension(ConnectInfo(Peer(peer)))| peer.to_string(),
    );
    if let Err(why) = dashboard.guard().authorize(&headers) {
        let name = plain_line(&name);
        tracing::warn!(target: "audit", peer, action = name, "an action of the dashboard is refused: {why}");
        return problem(StatusCode::FORBIDDEN, why);
    }
    if name == "verify" {
        return StatusCode::NO_CONTENT.into_response();
    }
    // what a form can send is no JSON
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let why = "say what is meant as application/json";
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    }
    let mut action = match parse(&name, &body) {
        Ok(action) => action,
        Err((code, why)) => return problem(code, why),
    };
    if let Action::Pause { reason, .. } = &mut action {
        // it is repeated in logs, in the tree and in terminals of people who did not write it
        *reason = plain_line(reason);
    }
    let Some(source) = dashboard.source() else {
        return super::starting();
    };
    let what = plain_line(&serde_json::to_string(&action).unwrap_or_default());
    let ended = source.act(action).await;
    match &ended {
        Ok(done) => {
            let done = plain_line(done);
            tracing::info!(target: "audit", peer, action = name, what, done, "audit");
        }
        Err(error) => {
            let error = plain_line(&error.to_string());
            tracing::warn!(target: "audit", peer, action = name, what, %error, "audit");
        }
    }
    match ended {
        Ok(done) => json(&Done { done }),
        Err(why) => refused(why),
    }
}

fn parse(name: &str, body: &[u8]) -> Result<Action, (StatusCode, String)> {
    if !Action::NAMES.contains(&name) {
        let known = Action::NAMES.join(", ");
        let why = format!("there is no action {name}; there are {known}");
        return Err((StatusCode::NOT_FOUND, why));
    }
    let complaint = |why: &dyn Display| {
        let example = Action::example(name);
        let why = format!(
            "the body does not say what is meant: {why}; expected an object such as {example}, see /openapi.yaml"
        );
        (StatusCode::BAD_REQUEST, why)
    };
    let said = serde_json::from_slice(body).map_err(|error| match body.is_empty() {
        true => complaint(&"it is empty"),
        false => complaint(&error),
    })?;
    let mut said: Map<String, Value> = match said {
        Value::Object(said) => said,
        other => return Err(complaint(&format_args!("it is {}", kind_of(&other)))),
    };
    // not the client's word: it is the name of the path
    said.insert("action".into(), name.into());
    serde_json::from_value(said.into()).map_err(|error| complaint(&error))
}

/// What a value is, in the words of JSON.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
