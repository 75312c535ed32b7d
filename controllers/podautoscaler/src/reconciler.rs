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

use crate::{
    api::PodAutoscaler,
    policy::{Decision, Rivalry, Wanted},
    status::{self, Found, Scaling},
};

/// The controller's name: field manager of its writes, reporter of its Events, label of its metrics.
pub(crate) const NAME: &str = "podautoscaler";

/// Where a PodAutoscaler names its Deployment.
const TARGET: &str = "spec.targetDeployment";

/// When a PodAutoscaler that came second looks again whether the older one is gone.
const QUEUE_UP: Duration = Duration::from_secs(60);

/// The status of one PodAutoscaler is written at most once in this time.
const STATUS_PACE: Duration = Duration::from_secs(1);

/// How often a write is tried again within one run after a conflict; the next run goes on from there.
const CONFLICTS: usize = 5;

/// The controller, to be handed to a manager.
pub fn controller() -> Runnable {
    Controller::<PodAutoscaler>::named(NAME)
        .watches::<Deployment>()
        .referenced_by(TARGET)
        .needs(Right::on::<PodAutoscaler>([Verb::Patch]).subresource("status"))
        .needs(Right::on::<Deployment>([Verb::Update]).subresource("scale"))
        .reconciler(|wiring| Scaler {
            deployments: wiring.lister::<Deployment>(),
            autoscalers: wiring.lister::<PodAutoscaler>(),
            memory: DashMap::new(),
        })
}

struct Scaler {
    deployments: Lister<Deployment>,
    autoscalers: Lister<PodAutoscaler>,
    /// One entry per PodAutoscaler that exists.
    memory: DashMap<Key, Memory>,
}

/// What is remembered of one PodAutoscaler between its runs.
#[derive(Default)]
struct Memory {
    rivalry: Rivalry,
    /// A scaling that is not in the status yet: the status is paced, the scaling is not.
    scaled: Option<Scaling>,
    status_written: Option<Instant>,
    /// When the last write of the replicas was begun: a rival wrote after that.
    wrote_at: Option<jiff::Timestamp>,
    /// Who the controller has stepped back from.
    rival: Option<String>,
}

impl Reconciler<PodAutoscaler> for Scaler {
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
            scaler: self,
            pa: &pa,
            cx,
        };
        if let Some(by) = self.older(&pa)? {
            return run.queue_up(by).await;
        }
        let seen = self.deployments.get(&key);
        let target = seen.as_ref().ok().cloned().flatten();
        let converged = match seen {
            Ok(target) => run.converge(&key, target).await,
            Err(error) => Err(error.into()),
        };
        let (target, found, again) = match converged {
            Err(error) if Fault::of(&error) == Fault::Object => {
                // whoever looks at the object is told, too
                let why = error.to_string();
                run.report(target.as_deref(), &Found::Refused { why })
                    .await?;
                return Err(error);
            }
            converged => converged?,
        };
        let paced = run.report(target.as_deref(), &found).await?;
        Ok(soonest(again.into_iter().chain(paced)))
    }

    async fn gone(
        &self,
        key: &Key,
        _: Option<Arc<PodAutoscaler>>,
        _: &Context,
    ) -> Result<Outcome, ReconcileError> {
        // the Deployment stays as it is: it is its user's
        self.memory.remove(key);
        Ok(Outcome::Done)
    }
}

impl Scaler {
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

/// One run.
struct Run<'a> {
    scaler: &'a Scaler,
    pa: &'a Arc<PodAutoscaler>,
    cx: &'a Context,
}

type Target = Option<Arc<Deployment>>;

impl Run<'_> {
    /// Brings the target to the wanted replicas. Returns it as last seen, what was found, and when to look again.
    async fn converge(
        &self,
        key: &Key,
        mut target: Target,
    ) -> Result<(Target, Found, Option<Duration>), ReconcileError> {
        let mut conflicts = 0;
        loop {
            let Some(deployment) = &target else {
                return Ok((None, Found::Missing { deleting: false }, None));
            };
            if deployment.metadata.deletion_timestamp.is_some() {
                return Ok((target, Found::Missing { deleting: true }, None));
            }
            let wanted = Wanted {
                generation: self.pa.metadata.generation,
                target: deployment.uid(),
                replicas: self.pa.spec.replicas,
            };
            // the API server's default
            let current = deployment.spec.replicas.unwrap_or(1);
            let decision = self.memory(|m| m.rivalry.decide(&wanted, current, self.cx.now()));
            let (from, to) = match decision {
                Decision::InSync => return Ok((target, Found::InSync, None)),
                Decision::Hold { left, begins } => {
                    let rival = self.rival(key, current, begins).await?;
                    return Ok((target, Found::Contended { current, rival }, Some(left)));
                }
                Decision::Scale { from, to } => (from, to),
            };
            // a rival may answer before the server's answer is here
            let asked_at = self.cx.wall();
            match self.cx.scale(deployment.as_ref(), to).await {
                Ok(()) => {
                    self.scaled(deployment, &wanted, from, asked_at);
                    return Ok((target, Found::InSync, None));
                }
                Err(error) if error.is_conflict() || error.is_not_found() => {
                    conflicts += 1;
                    if conflicts > CONFLICTS {
                        return Err(error.into());
                    }
                    target = self.cx.get_live::<Deployment>(key).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
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

    /// Tells of an accepted write: in memory, in the log, on both objects.
    fn scaled(
        &self,
        deployment: &Deployment,
        wanted: &Wanted,
        from: i32,
        asked_at: jiff::Timestamp,
    ) {
        self.memory(|memory| {
            memory.rivalry.wrote(wanted, self.cx.now());
            memory.wrote_at = Some(asked_at);
            memory.scaled = Some(Scaling {
                from,
                to: wanted.replicas,
                at: self.cx.wall(),
            });
        });
        let (to, key, target) = (wanted.replicas, self.cx.key(), key_of(deployment));
        tracing::info!(deployment = %target, from, to, "scaled");
        let text = format!("replicas changed from {from} to {to}");
        let pa = self.pa.as_ref();
        let on_target = Note::normal(
            deployment,
            "Scaled",
            format!("{text} by PodAutoscaler {key}"),
        );
        self.cx.tell(&on_target.because_of(pa).action("Scale"));
        let on_pa = Note::normal(pa, "Scaled", format!("{text} on Deployment {target}"));
        self.cx.tell(&on_pa.because_of(deployment).action("Scale"));
    }

    /// The field manager that last set the replicas, and a Warning when the controller steps back from it just now.
    async fn rival(
        &self,
        key: &Key,
        current: i32,
        begins: bool,
    ) -> Result<Option<String>, ReconcileError> {
        if !begins {
            return Ok(self.named_rival());
        }
        // the cache keeps no managedFields
        let live = self.cx.get_live::<Deployment>(key).await?;
        let since = self.memory(|memory| memory.wrote_at);
        let rival = live.as_ref().and_then(|live| replicas_manager(live, since));
        if let Some(live) = &live {
            let note = format!(
                "{} keeps setting {current} replicas where PodAutoscaler {} wants {}; it has stepped back",
                rival
                    .as_deref()
                    .unwrap_or("someone whose writes carry no field manager"),
                self.cx.key(),
                self.pa.spec.replicas,
            );
            tracing::warn!(deployment = %key, rival, "contended: stepped back");
            self.cx.warning(live.as_ref(), "Contended", note.clone());
            self.cx.warning(self.pa.as_ref(), "Contended", note);
        }
        self.memory(|memory| memory.rival.clone_from(&rival));
        Ok(rival)
    }

    fn named_rival(&self) -> Option<String> {
        self.memory(|memory| memory.rival.clone())
    }

    /// Writes the status if it changed, at most once per [`STATUS_PACE`]; otherwise says when it may be written.
    async fn report(
        &self,
        target: Option<&Deployment>,
        found: &Found,
    ) -> Result<Option<Duration>, ReconcileError> {
        let (scaled, written) = self.memory(|memory| (memory.scaled, memory.status_written));
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
        with(&mut self.scaler.memory.entry(self.cx.key().clone()).or_default())
    }
}

/// The manager of the newest managedFields entry that owns the replicas, is not this controller and wrote after it did: servers before
/// 1.22 track no writes of `scale`, and whoever created the Deployment is not to blame for them.
fn replicas_manager(deployment: &Deployment, since: Option<jiff::Timestamp>) -> Option<String> {
    // entries have whole seconds
    let since = since.map_or(i64::MIN, jiff::Timestamp::as_second);
    let entries = deployment.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() != Some(NAME))
        .filter(|entry| {
            entry
                .time
                .as_ref()
                .is_some_and(|time| time.0.as_second() >= since)
        })
        .filter(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
        })
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
        .and_then(|entry| entry.manager.clone())
}
