//! Questions about oneself: SelfSubjectAccessReview and SelfSubjectReview.

use serde_json::{Value, json};

use super::{answer::Answer, media, route::Target, service::Asked};
use crate::{attributes::Attributes, failure::Failure, model::served::Served};

pub(super) fn is_review(served: &Served) -> bool {
    served.verbs == ["create"]
}

/// The name of the object in a body, for the attributes of a create; empty if there is none.
pub(super) fn name_in(content_type: &str, body: &[u8]) -> String {
    let value = media::decode(content_type, body).unwrap_or_default();
    value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// Answers a review.
pub(super) fn answer(asked: &Asked<'_>, target: &Target) -> Result<Answer, Failure> {
    if asked.attributes.verb != "create" {
        return Err(Failure::method_not_allowed());
    }
    let mut review = media::decode(asked.content_type, asked.body)?;
    if !review.is_object() {
        return Err(Failure::bad_request(
            "the body of the request is not an object",
        ));
    }
    let user = &asked.attributes.user;
    review["kind"] = target.served.kind.clone().into();
    review["apiVersion"] = target.served.api_version().into();
    if target.served.plural == "selfsubjectreviews" {
        review["status"] =
            json!({"userInfo": {"username": user, "groups": ["system:authenticated"]}});
        return Ok(Answer::value(201, &review));
    }
    let wanted = &review["spec"]["resourceAttributes"];
    let part = |name: &str| {
        wanted
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let verb = part("verb");
    // a verb nobody knows can only be allowed by a rule for all verbs
    let verb = VERBS
        .into_iter()
        .find(|known| *known == verb)
        .unwrap_or("*");
    let question = Attributes {
        user: user.clone(),
        verb,
        group: part("group"),
        version: part("version"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
        path: String::new(),
    };
    let allowed = wanted.is_null() || asked.inner.may(&question);
    review["status"] = json!({"allowed": allowed});
    Ok(Answer::value(201, &review))
}
