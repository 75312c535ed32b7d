//! One run of a Deployment: read its annotation, write what differs.

use std::sync::Arc;

use boatswain::{
    Context, Controller, Key, Note, Outcome, Predicate, ReconcileError, Reconciler, Right,
    Runnable, Verb,
};
use dashmap::DashMap;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use scaling::{Converged, Goal, Scaled, Scaler};

use crate::wish::{ANNOTATION, Wish};

/// The controller's name: field manager of its writes, reporter of its Events, label of its metrics.
pub(crate) const NAME: &str = "replica-fixer";

/// The controller, to be handed to a manager.
pub fn controller() -> Runnable {
    Controller::<Deployment>::named(NAME)
        // a rollout changes the status all the time
        .when(Predicate::generation_changed().or(Predicate::annotations_changed()))
        .needs(Right::on::<Deployment>([Verb::Update]).subresource("scale"))
        .reconciler(|_| Fixer {
            scaler: Scaler::new(NAME),
            malformed: DashMap::new(),
        })
}

struct Fixer {
    scaler: Scaler,
    /// What has been told of Deployments whose annotation is no number.
    malformed: DashMap<Key, String>,
}

impl Reconciler<Deployment> for Fixer {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        deployment: Arc<Deployment>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let key = cx.key();
        let replicas = match deployment.annotations().get(ANNOTATION) {
            None => {
                self.forget(key);
                return Ok(Outcome::Done);
            }
            Some(value) => match Wish::of(value) {
                Wish::Replicas(replicas) => replicas,
                Wish::Malformed(why) => {
                    self.scaler.forget(key);
                    cx.decided(format!("MalformedReplicas: {why}"));
                    let before = self.malformed.insert(key.clone(), why.clone());
                    if before.as_ref() != Some(&why) {
                        cx.warning(deployment.as_ref(), "MalformedReplicas", why);
                    }
                    return Ok(Outcome::Done);
                }
            },
        };
        self.malformed.remove(key);
        let goal = Goal {
            replicas,
            generation: None,
            wisher: format!("annotation {ANNOTATION}"),
        };
        let converged = self.scaler.converge(cx, key, Some(deployment), &goal);
        let Converged {
            target,
            state,
            scaled,
            again,
        } = converged.await?;
        cx.decided(state.to_string());
        if let (Some(Scaled { from, to, .. }), Some(target)) = (scaled, target) {
            let text = format!("replicas changed from {from} to {to} by {}", goal.wisher);
            let note = Note::normal(target.as_ref(), "Scaled", text);
            cx.tell(&note.action("Scale"));
        }
        Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter))
    }

    async fn gone(
        &self,
        key: &Key,
        _: Option<Arc<Deployment>>,
        _: &Context,
    ) -> Result<Outcome, ReconcileError> {
        self.forget(key);
        Ok(Outcome::Done)
    }
}

impl Fixer {
    fn forget(&self, key: &Key) {
        self.scaler.forget(key);
        self.malformed.remove(key);
    }
}
