//! One run of a PodAutoscaler: read both objects from the cache, write what differs.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use boatswain::{
    Context, Controller, Fault, Key, Lister, Note, Outcome, ReconcileError, Reconciler, Right,
    Runnable, Verb, conditions, key_of,
};
use dashmap::DashMap;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use scaling::{Converged, Goal, Scaled, Scaler, State};

use crate::{
    api::{PodAutoscaler, reason},
    status::{self, Found},
};

/// The controller's name: field manager of its writes, reporter of its Events, label of its metrics.
pub(crate) const NAME: &str = "podautoscaler";

/// Where a PodAutoscaler names its Deployment.
const TARGET: &str = "spec.targetDeployment";

/// When a PodAutoscaler that came second looks again whether the older one is gone.
const QUEUE_UP: Duration = Duration::from_secs(60);

/// Failures in a row, not by the object's fault, that its status does not tell of: what passes by itself is nobody's concern.
const LASTS: u32 = 3;

/// The status of one PodAutoscaler is written at most once in this time.
const STATUS_PACE: Duration = Duration::from_secs(1);

/// The controller, to be handed to a manager.
pub fn controller() -> Runnable {
    Controller::<PodAutoscaler>::named(NAME)
        .watches::<Deployment>()
        .referenced_by(TARGET)
        .needs(Right::on::<PodAutoscaler>([Verb::Patch]).subresource("status"))
        .needs(Right::on::<Deployment>([Verb::Update]).subresource("scale"))
        .reconciler(|wiring| Autoscaler {
            deployments: wiring.lister::<Deployment>(),
            autoscalers: wiring.lister::<PodAutoscaler>(),
            scaler: Scaler::new(NAME),
            memory: DashMap::new(),
        })
}

struct Autoscaler {
    deployments: Lister<Deployment>,
    autoscalers: Lister<PodAutoscaler>,
    scaler: Scaler,
    /// One entry per PodAutoscaler that exists.
    memory: DashMap<Key, Memory>,
}

/// What is remembered of the status of one PodAutoscaler between its runs.
#[derive(Default)]
struct Memory {
    /// A scaling that is not in the status yet: the status is paced, the scaling is not.
    scaled: Option<Scaled>,
    status_written: Option<Instant>,
}

impl Reconciler<PodAutoscaler> for Autoscaler {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        pa: Arc<PodAutoscaler>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        if pa.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let key = Key::new(pa.metadata.namespace.as_deref(), &pa.spec.target_deployment);
        let run = Run {
            autoscaler: self,
            pa: &pa,
            cx,
        };
        if let Some(by) = self.older(&pa)? {
            return run.queue_up(by).await;
        }
        let seen = self.deployments.get(&key);
        let before = seen.as_ref().ok().cloned().flatten();
        let converged = match seen {
            Ok(seen) => self.scaler.converge(cx, &key, seen, &goal(&pa, cx)).await,
            Err(error) => Err(error.into()),
        };
        let converged = match converged {
            Err(error) if Fault::of(&error) == Fault::Object => {
                // whoever looks at the object is told, too
                let why = error.to_string();
                run.report(before.as_deref(), &Found::Refused { why })
                    .await?;
                return Err(error);
            }
            Err(error) if cx.attempt() >= LASTS => {
                // the status would go on saying what was true before
                run.lament(before.as_deref(), error.to_string()).await;
                return Err(error);
            }
            converged => converged?,
        };
        run.conclude(converged).await
    }

    async fn gone(
        &self,
        key: &Key,
        _: Option<Arc<PodAutoscaler>>,
        _: &Context,
    ) -> Result<Outcome, ReconcileError> {
        // the Deployment stays as it is: it is its user's
        self.memory.remove(key);
        self.scaler.forget(key);
        Ok(Outcome::Done)
    }
}

impl Autoscaler {
    /// The oldest other PodAutoscaler for the same Deployment, if it is older than `pa`. Only one may scale: a rivalry among many would
    /// spread over all of them and be seen by none.
    fn older(&self, pa: &PodAutoscaler) -> Result<Option<String>, ReconcileError> {
        let age = |pa: &PodAutoscaler| (pa.metadata.creation_timestamp.clone(), pa.name_any());
        let claims = self
            .autoscalers
            .objects_by_index(TARGET, &pa.spec.target_deployment)?;
        let oldest = claims
            .iter()
            // by the key: many namespaces have a Deployment of one name, and none of theirs is decoded for it
            .filter(|other| other.key().namespace() == pa.metadata.namespace.as_deref())
            .filter_map(|other| other.decode::<PodAutoscaler>().ok())
            .filter(|other| other.metadata.deletion_timestamp.is_none())
            .min_by_key(|other| age(other));
        let older = oldest.filter(|oldest| age(oldest) < age(pa));
        Ok(older.map(|older| older.name_any()))
    }
}

/// When to run again.
fn soonest(waits: impl Iterator<Item = Duration>) -> Outcome {
    waits.min().map_or(Outcome::Done, Outcome::RequeueAfter)
}

/// What `pa` wants.
fn goal(pa: &PodAutoscaler, cx: &Context) -> Goal {
    Goal {
        replicas: pa.spec.replicas,
        generation: pa.metadata.generation,
        wisher: format!("PodAutoscaler {}", cx.key()),
    }
}

/// One run.
struct Run<'a> {
    autoscaler: &'a Autoscaler,
    pa: &'a Arc<PodAutoscaler>,
    cx: &'a Context,
}

impl Run<'_> {
    /// Tells on the PodAutoscaler what came of it. Says when to run again.
    async fn conclude(&self, converged: Converged) -> Result<Outcome, ReconcileError> {
        let Converged {
            target,
            state,
            scaled,
            again,
        } = converged;
        if let (Some(scaled), Some(deployment)) = (scaled, &target) {
            self.memory(|memory| memory.scaled = Some(scaled));
            self.tell(scaled, deployment);
        }
        if let State::Contended(contended) = &state
            && contended.begins
        {
            let note = contended.to_string();
            self.cx.warning(self.pa.as_ref(), "Contended", note);
        }
        let paced = self.report(target.as_deref(), &state.into()).await?;
        Ok(soonest(again.into_iter().chain(paced)))
    }

    /// Tells of an accepted write on both objects.
    fn tell(&self, Scaled { from, to, .. }: Scaled, deployment: &Deployment) {
        let (pa, key, target) = (self.pa.as_ref(), self.cx.key(), key_of(deployment));
        let text = format!("replicas changed from {from} to {to}");
        let on_target = Note::normal(
            deployment,
            "Scaled",
            format!("{text} by PodAutoscaler {key}"),
        );
        self.cx.tell(&on_target.because_of(pa).action("Scale"));
        let on_pa = Note::normal(pa, "Scaled", format!("{text} on Deployment {target}"));
        self.cx.tell(&on_pa.because_of(deployment).action("Scale"));
    }

    /// Leaves the Deployment to the older PodAutoscaler and says so, in an Event the first time.
    async fn queue_up(&self, by: String) -> Result<Outcome, ReconcileError> {
        let before = self.pa.status.as_ref();
        let before = before.and_then(|status| conditions::get(&status.conditions, "Synced"));
        if !before.is_some_and(|synced| synced.message.contains(&by)) {
            let target = &self.pa.spec.target_deployment;
            let note = format!("PodAutoscaler {by} is older and scales Deployment {target}");
            self.cx.warning(self.pa.as_ref(), "Contended", note);
        }
        let paced = self.report(None, &Found::Claimed { by }).await?;
        Ok(soonest(paced.into_iter().chain([QUEUE_UP])))
    }

    /// Says in the status, and in an Event the first time, that something keeps failing. That this can fail likewise is no news.
    async fn lament(&self, target: Option<&Deployment>, why: String) {
        let before = self.pa.status.as_ref();
        if !before.is_some_and(|before| status::said(&before.conditions, reason::FAILING)) {
            self.cx.warning(self.pa.as_ref(), "Failing", why.clone());
        }
        self.report(target, &Found::Failing { why }).await.ok();
    }

    /// Writes the status if it changed, at most once per [`STATUS_PACE`]; otherwise says when it may be written.
    async fn report(
        &self,
        target: Option<&Deployment>,
        found: &Found,
    ) -> Result<Option<Duration>, ReconcileError> {
        let (scaled, written) = self.memory(|memory| (memory.scaled, memory.status_written));
        let verdict = found.verdict(self.pa, scaled);
        self.cx
            .decided(format!("{}: {}", verdict.reason, verdict.message));
        let status = status::next(self.pa, target, found, scaled, self.cx.wall());
        if self.pa.status.as_ref() == Some(&status) {
            self.memory(|memory| memory.scaled = None);
            return Ok(None);
        }
        let now = self.cx.now();
        let next = written
            .map(|at| at + STATUS_PACE)
            .filter(|next| *next > now);
        if let Some(next) = next {
            return Ok(Some(next - now));
        }
        self.memory(|memory| memory.status_written = Some(now));
        match self.cx.patch_status(self.pa.as_ref(), &status).await {
            Ok(_) => {
                self.memory(|memory| memory.scaled = None);
                Ok(None)
            }
            // deleted meanwhile: there is nothing to report on
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn memory<T>(&self, with: impl FnOnce(&mut Memory) -> T) -> T {
        with(
            &mut self
                .autoscaler
                .memory
                .entry(self.cx.key().clone())
                .or_default(),
        )
    }
}
