//! Content negotiation: which form is wanted, which language a body is written in.

use serde_json::Value;

use super::protobuf;
use crate::{api::patch::Dialect, failure::Failure};

/// The form an answer is wanted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Yaml,
    /// Rows for kubectl; `meta.k8s.io/v1` or `v1beta1`.
    Table(String),
    /// Metadata only.
    Metadata(String),
}

/// Chooses the first form in `Accept` that can be given.
///
/// # Errors
/// 406 when there is none.
pub(super) fn form(accept: &str) -> Result<Form, Failure> {
    let mut types = accept
        .split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .peekable();
    if types.peek().is_none() {
        return Ok(Form::Json);
    }
    let chosen = types.find_map(|media| {
        let mut parts = media.split(';').map(str::trim);
        let name = parts.next()?;
        let parameter = |wanted: &str| {
            let found = media
                .split(';')
                .skip(1)
                .filter_map(|p| p.trim().split_once('='))
                .find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value)
        };
        let version = || format!("meta.k8s.io/{}", parameter("v").unwrap_or("v1"));
        match (name, parameter("as")) {
            ("application/json", Some("Table")) => Some(Form::Table(version())),
            ("application/json", Some("PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                Some(Form::Metadata(version()))
            }
            ("application/json" | "application/*" | "*/*", None) => Some(Form::Json),
            ("application/yaml", None) => Some(Form::Yaml),
            _ => None,
        }
    });
    chosen.ok_or_else(Failure::not_acceptable)
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Decodes a body that is JSON, YAML or, in part, protobuf.
///
/// # Errors
/// 415 for another language, 400 for what is not well-formed.
pub(super) fn decode(content_type: &str, body: &[u8]) -> Result<Value, Failure> {
    match media_type(content_type) {
        "" | "application/json" => json(body),
        "application/yaml" => yaml(body),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(body),
        other => Err(Failure::unsupported_media_type(other)),
    }
}

fn json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::bad_request(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })
}

fn yaml(body: &[u8]) -> Result<Value, Failure> {
    serde_saphyr::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("error parsing the body as YAML: {error}")))
}

/// Decodes a patch and tells its dialect.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_patch(
    content_type: &str,
    body: &[u8],
    force: bool,
) -> Result<(Dialect, Value), Failure> {
    match media_type(content_type) {
        "application/json-patch+json" => Ok((Dialect::Json, json(body)?)),
        "application/merge-patch+json" => Ok((Dialect::Merge, json(body)?)),
        "application/strategic-merge-patch+json" => Ok((Dialect::Strategic, json(body)?)),
        // kubectl and kube send JSON, which YAML contains; only what is not JSON needs the slower reader
        "application/apply-patch+yaml" => Ok((
            Dialect::Apply { force },
            json(body).or_else(|_| yaml(body))?,
        )),
        other => Err(Failure::unsupported_media_type(other)),
    }
}
