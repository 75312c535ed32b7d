//! The actor that writes notes to the API server.

use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Running, WrapFuture as _,
};
use boatswain_supervision::{Clock, Context, Link, supervised};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    Note, Recorder,
    state::{Series, Step},
};

/// Attempts for one note before it is given up and counted; events are advice, not state.
const ATTEMPTS: u32 = 5;

pub(crate) struct RecorderActor {
    recorder: Recorder,
    client: kube::Client,
    instance: String,
    clock: Clock,
    drained: bool,
}

impl RecorderActor {
    pub(crate) fn new(
        recorder: Recorder,
        client: kube::Client,
        instance: String,
        link: &Link,
    ) -> Self {
        Self {
            recorder,
            client,
            instance,
            clock: link.clock().clone(),
            drained: false,
        }
    }
}

supervised!(RecorderActor);

impl Actor for RecorderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let work = write_all(
            self.recorder.clone(),
            self.client.clone(),
            self.instance.clone(),
            self.clock.clone(),
        );
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

async fn write_all(recorder: Recorder, client: kube::Client, instance: String, clock: Clock) {
    let mut series = Series::default();
    while let Some(note) = recorder.front().await {
        let written = write(&mut series, &note, &client, &instance, &clock).await;
        recorder.taken(written);
    }
}

async fn write(
    series: &mut Series,
    note: &Note,
    client: &kube::Client,
    instance: &str,
    clock: &Clock,
) -> bool {
    let mut step = series.step(note, instance);
    for attempt in 0..ATTEMPTS {
        let error = match send(&step, client).await {
            Ok(()) => return true,
            Err(error) => error,
        };
        if let (Step::Count { name, .. }, kube::Error::Api(status)) = (&step, &error)
            && status.code == 404
        {
            series.forget(name);
            step = series.step(note, instance);
            continue;
        }
        let refused =
            matches!(&error, kube::Error::Api(status) if status.code < 500 && status.code != 429);
        if refused || attempt + 1 == ATTEMPTS {
            tracing::warn!(
                namespace = note.regarding.namespace.as_deref(),
                name = note.regarding.name.as_deref(),
                reason = note.reason,
                cause = crate::client::root_cause(&error),
                "an event could not be written"
            );
            return false;
        }
        clock
            .sleep(Duration::from_millis(500) * 2u32.pow(attempt))
            .await;
    }
    false
}

async fn send(step: &Step, client: &kube::Client) -> Result<(), kube::Error> {
    match step {
        Step::Create(event) => {
            let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
            let api = Api::<Event>::namespaced(client.clone(), namespace);
            match api.create(&PostParams::default(), event).await {
                // a lost answer to our own earlier attempt
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
                answer => answer.map(drop),
            }
        }
        Step::Count {
            namespace,
            name,
            count,
            at,
        } => {
            let series = EventSeries {
                count: *count,
                last_observed_time: at.clone(),
            };
            let patch = Patch::Merge(json!({ "series": series }));
            let api = Api::<Event>::namespaced(client.clone(), namespace);
            api.patch(name, &PatchParams::default(), &patch)
                .await
                .map(drop)
        }
    }
}
