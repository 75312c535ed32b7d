//! The actor that campaigns for a lease, renews it and gives it back.

use std::{convert::Infallible, sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Running, WrapFuture as _,
};
use boatswain_supervision::{Clock, Context, Entropy, Link, supervised};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ObjectReference};
use kube::{Api, api::PostParams};

use super::{
    CatchUp, Leadership,
    state::{Answer, Change, Step},
};
use crate::{
    manager::Leader,
    recorder::{Note, Recorder, Severity},
};

/// Campaigns for ever; a lost lease is campaigned for again. Its client is its own: no limit, no queue and no other connection can make it late.
pub(crate) struct LeaderActor {
    campaign: Campaign,
    rested: bool,
    busy: Busy,
}

/// Whether anything that was started under the lease still runs.
pub(crate) type Busy = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Clone)]
struct Campaign {
    leadership: Leadership,
    client: kube::Client,
    recorder: Recorder,
    clock: Clock,
    entropy: Entropy,
    catch_up: CatchUp,
}

impl LeaderActor {
    pub(crate) fn new(
        leader: Leader,
        recorder: Recorder,
        catch_up: CatchUp,
        busy: Busy,
        link: &Link,
    ) -> Self {
        let Leader { leadership, client } = leader;
        let shown = leadership.clone();
        link.report("leads", move || shown.status().leads.into());
        let shown = leadership.clone();
        link.report("holder", move || shown.status().holder.into());
        Self {
            campaign: Campaign {
                leadership,
                client,
                recorder,
                catch_up,
                clock: link.clock().clone(),
                entropy: link.entropy().clone(),
            },
            rested: false,
            busy,
        }
    }
}

supervised!(LeaderActor);

impl Actor for LeaderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let campaign = self.campaign.clone();
        campaign.leadership.interrupted();
        let campaign = async move {
            tokio::select! {
                () = campaign.run() => {}
                never = campaign.announce() => match never {},
            }
        };
        ctx.spawn(campaign.into_actor(self).map(|(), actor, ctx| {
            actor.rested = true;
            ctx.stop();
        }));
    }

    // whoever worked under it has stopped before, or the lease is left to run out
    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        if self.rested {
            return Running::Stop;
        }
        if (self.busy)() {
            tracing::warn!(
                "the lease is not given back: work that was begun under it still runs; it runs out by itself"
            );
            return Running::Stop;
        }
        self.campaign.leadership.resign();
        Running::Continue
    }
}

impl Campaign {
    /// Lets work begin under each term, once the caches have caught up with the server: those of a standby may be a moment behind what the last leader did.
    async fn announce(&self) -> Infallible {
        loop {
            let term = self.leadership.unannounced().await;
            (self.catch_up)().await;
            self.leadership.announce(term);
        }
    }

    async fn run(&self) {
        let mut failing = false;
        loop {
            let (step, changes) = self.leadership.step(&self.clock);
            self.tell(changes);
            let (answer, changes) = match step {
                Step::Rest => return,
                Step::Wait(until) => {
                    let wait = until.saturating_sub(self.clock.boot());
                    tokio::select! {
                        () = self.clock.sleep(wait) => {}
                        () = self.leadership.woken() => {}
                    }
                    continue;
                }
                Step::Read(within) => {
                    let answer = self.within(within, self.read()).await;
                    let chance = self.entropy.unit();
                    (
                        answer.clone(),
                        self.leadership.read(answer, &self.clock, chance),
                    )
                }
                Step::Write(lease, within) => {
                    let sent = self.clock.boot();
                    let answer = self.within(within, self.write(&lease)).await;
                    let chance = self.entropy.unit();
                    (
                        answer.clone(),
                        self.leadership.wrote(answer, sent, &self.clock, chance),
                    )
                }
            };
            let failed = matches!(answer, Answer::Failed(_));
            if let Answer::Failed(cause) = answer
                && !failing
            {
                let lease = self.leadership.options();
                let (namespace, name) = (&lease.namespace, &lease.name);
                tracing::warn!(%namespace, %name, %cause, "the lease cannot be read or written; trying on");
            }
            failing = failed;
            self.tell(changes);
        }
    }

    async fn within(&self, patience: Duration, request: impl Future<Output = Answer>) -> Answer {
        tokio::select! {
            biased;
            answer = request => answer,
            () = self.clock.sleep(patience) => Answer::Failed(format!("no answer within {patience:?}")),
        }
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.leadership.options().namespace)
    }

    async fn read(&self) -> Answer {
        answer(self.api().get(&self.leadership.options().name).await)
    }

    async fn write(&self, lease: &Lease) -> Answer {
        let name = &self.leadership.options().name;
        let params = PostParams::default();
        if lease.metadata.resource_version.is_some() {
            return answer(self.api().replace(name, &params, lease).await);
        }
        let mut lease = lease.clone();
        lease.metadata.name = Some(name.clone());
        match self.api().create(&params, &lease).await {
            // where its namespace does not exist nothing can be made
            Err(kube::Error::Api(status)) if status.code == 404 => Answer::Failed(status.message),
            result => answer(result),
        }
    }

    fn tell(&self, changes: Vec<Change>) {
        let lease = self.leadership.options();
        let (namespace, name) = (&lease.namespace, &lease.name);
        for change in changes {
            match change {
                Change::Gained => {
                    tracing::info!(%namespace, %name, identity = %lease.identity, "leading");
                    self.recorder.lead();
                    self.note("became leader");
                }
                Change::Lost(why) => {
                    tracing::error!(%namespace, %name, %why, "leading no more: standing by, and campaigning");
                }
                Change::Holder(Some(holder)) if holder != lease.identity => {
                    tracing::info!(%namespace, %name, %holder, "standing by: another leads");
                }
                Change::Holder(_) => {}
            }
        }
    }

    /// Tells it on the Lease, as client-go does.
    fn note(&self, what: &str) {
        let lease = self.leadership.options();
        let on = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".into()),
            kind: Some("Lease".into()),
            name: Some(lease.name.clone()),
            namespace: Some(lease.namespace.clone()),
            ..ObjectReference::default()
        };
        let text = format!("{} {what}", lease.identity);
        let note = Note::on(on, Severity::Normal, "LeaderElection", text);
        self.recorder.publish(&lease.name, &note);
    }
}

fn answer(result: Result<Lease, kube::Error>) -> Answer {
    match result {
        Ok(lease) => Answer::Lease(Box::new(lease)),
        Err(kube::Error::Api(status)) if status.code == 404 => Answer::Absent,
        Err(kube::Error::Api(status)) if status.code == 409 => Answer::Conflict,
        Err(kube::Error::Api(status)) => {
            Answer::Failed(format!("{} ({})", status.message, status.code))
        }
        Err(error) => Answer::Failed(crate::client::root_cause(&error)),
    }
}
