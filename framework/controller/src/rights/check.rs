//! Asks the API server whether one may do what one needs to.

use std::fmt;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};

use super::{Rights, Rule, Verb};
use crate::client::root_cause;

/// The API server could not say whether something is allowed.
#[derive(Debug, thiserror::Error)]
#[error("cannot ask whether one may {verb} {resource}: {cause}")]
pub struct CheckError {
    /// What was asked about.
    pub verb: Verb,
    /// On what.
    pub resource: String,
    /// Why there is no answer.
    pub cause: String,
}

/// One verb of one rule, and what the API server says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Where and on what; of its verbs, only the one below was asked about.
    pub rule: Rule,
    /// What was asked about.
    pub verb: Verb,
    /// Whether it is allowed.
    pub allowed: bool,
    /// What the server says of its reasons, which may be nothing.
    pub reason: String,
}

/// What the API server says of all rights. Prints as a table, in the manner of kubectl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked(pub Vec<Answered>);

impl Checked {
    /// Those that are missing.
    pub fn missing(&self) -> impl Iterator<Item = &Answered> {
        self.0.iter().filter(|answered| !answered.allowed)
    }
}

impl Rights {
    /// Asks the server, as whom `client` speaks, about each right: one SelfSubjectAccessReview per verb, which everybody may ask.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn check(&self, client: &kube::Client) -> Result<Checked, CheckError> {
        let api = Api::<SelfSubjectAccessReview>::all(client.clone());
        let mut checked = Checked::default();
        for rule in self.rules() {
            for verb in rule.verbs.clone() {
                let review = review(&rule, verb);
                let answer = api.create(&PostParams::default(), &review).await;
                let answer = answer.map_err(|error| CheckError {
                    verb,
                    resource: rule.full_resource(),
                    cause: root_cause(&error),
                })?;
                let status = answer.status.unwrap_or_default();
                let reasons = [status.reason, status.evaluation_error];
                checked.0.push(Answered {
                    rule: rule.clone(),
                    verb,
                    allowed: status.allowed,
                    reason: reasons.into_iter().flatten().collect::<Vec<_>>().join("; "),
                });
            }
        }
        Ok(checked)
    }
}

fn review(rule: &Rule, verb: Verb) -> SelfSubjectAccessReview {
    let (resource, subresource) = match rule.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (rule.resource.as_str(), None),
    };
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(rule.group.clone()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: rule.namespace.clone(),
                name: rule.name.clone(),
                verb: Some(verb.to_string()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["NAMESPACE", "RESOURCE", "NAME", "VERB", "ALLOWED"];
        let rows = self.0.iter().map(|answered| {
            let allowed = if answered.allowed { "yes" } else { "no" };
            [
                answered.rule.namespace.as_deref().unwrap_or("*").to_owned(),
                answered.rule.full_resource(),
                answered.rule.name.as_deref().unwrap_or("*").to_owned(),
                answered.verb.to_string(),
                allowed.to_owned(),
            ]
        });
        let rows: Vec<_> = std::iter::once(heads.map(str::to_owned))
            .chain(rows)
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths = [0, 1, 2, 3].map(width);
        for [namespace, resource, name, verb, allowed] in &rows {
            let [w0, w1, w2, w3] = widths;
            writeln!(
                f,
                "{namespace:w0$}   {resource:w1$}   {name:w2$}   {verb:w3$}   {allowed}"
            )?;
        }
        Ok(())
    }
}
