//! The actor that writes Events to the API server.

use std::{collections::HashMap, time::Duration};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Running, WrapFuture as _,
};
use boatswain_supervision::{Context, Link, supervised};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    Recorder,
    answer::{Answer, GivenUp},
    counts::Dropped,
    state::{Next, Write},
};
use crate::dispatch::{Complaints, Tell};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of each reason to give Events up one is told aloud in this time.
const QUIET: Duration = Duration::from_secs(10 * 60);

pub(crate) struct RecorderActor {
    recorder: Recorder,
    client: kube::Client,
    drained: bool,
}

impl RecorderActor {
    pub(crate) fn new(recorder: Recorder, client: kube::Client, link: &Link) -> Self {
        let seen = recorder.clone();
        link.report("waiting", move || seen.waiting().into());
        Self {
            recorder,
            client,
            drained: false,
        }
    }
}

supervised!(RecorderActor);

impl Actor for RecorderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.recorder.open();
        let work = write_all(self.recorder.clone(), self.client.clone());
        ctx.spawn(work.into_actor(self).map(|(), actor, ctx| {
            actor.drained = true;
            ctx.stop();
        }));
    }

    // what was said before the stop is still written, within the shutdown deadline
    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        self.recorder.close();
        if self.drained {
            Running::Stop
        } else {
            Running::Continue
        }
    }
}

impl Drop for RecorderActor {
    fn drop(&mut self) {
        let lost = self.recorder.left();
        if lost > 0 {
            tracing::warn!(events = lost, "not written before the stop");
        }
    }
}

/// Writes until all is written and nothing more can come.
async fn write_all(recorder: Recorder, client: kube::Client) {
    let mut grumbler = Grumbler::default();
    let clock = recorder.0.clock.clone();
    loop {
        match recorder.next() {
            Next::Send(write) => {
                let answer = tokio::select! {
                    biased;
                    answer = send(&write, &client) => Answer::of(&answer),
                    () = clock.sleep(PATIENCE) => Answer::Busy {
                        retry_after: None,
                        why: format!("no answer within {PATIENCE:?}"),
                    },
                };
                if let Some(given_up) = recorder.answered(answer) {
                    grumbler.tell(&given_up, &write, clock.now());
                }
            }
            Next::At(time) => tokio::select! {
                biased;
                () = recorder.0.wake.notified() => {}
                () = clock.sleep_until(time) => {}
            },
            Next::Nothing => recorder.0.wake.notified().await,
            Next::Over => return,
        }
    }
}

async fn send(write: &Write, client: &kube::Client) -> Result<(), kube::Error> {
    match write {
        Write::Create(event) => {
            let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
            let api = Api::<Event>::namespaced(client.clone(), namespace);
            api.create(&PostParams::default(), event).await.map(drop)
        }
        Write::Count {
            namespace,
            name,
            series,
        } => {
            let patch = Patch::Merge(json!({ "series": series }));
            let api = Api::<Event>::namespaced(client.clone(), namespace);
            let answer = api.patch(name, &PatchParams::default(), &patch).await;
            answer.map(drop)
        }
    }
}

/// Tells of Events that were given up, seldom.
#[derive(Default)]
struct Grumbler(HashMap<&'static str, Complaints>);

impl Grumbler {
    fn tell(&mut self, given_up: &GivenUp, write: &Write, now: std::time::Instant) {
        let GivenUp { dropped, why } = given_up;
        let reason = dropped.label();
        let complaints = self
            .0
            .entry(reason)
            .or_insert_with(|| Complaints::at_most(1, QUIET));
        let namespace = match write {
            Write::Create(event) => event.metadata.namespace.as_deref().unwrap_or_default(),
            Write::Count { namespace, .. } => namespace,
        };
        match complaints.tell(true, now) {
            Tell::Aloud { unheard } => {
                let help = match dropped {
                    Dropped::Forbidden => {
                        "; give the rights to create and patch events.events.k8s.io"
                    }
                    _ => "",
                };
                tracing::warn!(
                    namespace,
                    reason,
                    unheard,
                    "an Event is not written: {why}{help}"
                );
            }
            Tell::Quietly => tracing::debug!(namespace, reason, "an Event is not written: {why}"),
        }
    }
}
