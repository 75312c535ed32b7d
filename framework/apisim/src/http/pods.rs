//! What pods alone have: their logs, and evictions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{answer::Answer, media, media::Form, reading, route::Target, service::Asked, writing};
use crate::{api::delete::Deletion, audit::Outcome, failure::Failure};

/// Carries out a request to one of these subresources; `None` if it is to something else.
pub(super) fn answer(
    asked: &Asked<'_>,
    target: &Target,
    form: &Form,
) -> Option<Result<Answer, Failure>> {
    Some(match (target.subresource.as_str(), asked.attributes.verb) {
        ("log", "get") => log(asked, target),
        ("eviction", "create") => evict(asked, target, form),
        ("log" | "eviction", _) => Err(Failure::method_not_allowed()),
        _ => return None,
    })
}

/// What the pod has written so far, or its last lines.
fn log(asked: &Asked<'_>, target: &Target) -> Result<Answer, Failure> {
    let Target {
        served,
        namespace,
        name,
        ..
    } = target;
    reading::find(asked, served, namespace, name)?;
    let lines = asked.inner.pod_log(namespace, name);
    let skipped = match asked.query.get("tailLines") {
        Some(_) => {
            let wanted = reading::number(asked, "tailLines")?;
            let all = lines.lines().count();
            all.saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX))
        }
        None => 0,
    };
    let shown: String = lines.split_inclusive('\n').skip(skipped).collect();
    Ok(Answer::bytes("text/plain", Bytes::from(shown)))
}

/// Deletes the pod, as no budget forbids it; a fault may.
fn evict(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let mut eviction: Value = media::decode(asked.content_type, asked.body)?;
    let options = eviction["deleteOptions"].take();
    let deletion = Deletion::parse(&options, None)?;
    let dry_run = options.get("dryRun").is_some();
    let removed = writing::remove(asked, target, form, &deletion, dry_run)?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    let mut answer = Answer::formed(201, form, &status);
    answer.outcome = Outcome {
        code: 201,
        ..removed.outcome
    };
    Ok(answer)
}
