//! Subresources that have no helper, through the client of a run: pods that are annotated `example.io/evict-on: WORDS` are evicted once their log has these
//! words. A disruption budget may refuse that (429), and is asked again as soon as it says.

use std::{process::ExitCode, sync::Arc, time::Duration};

use boatswain::{Right, Runnable, Verb, prelude::*};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{LogParams, PostParams},
    core::Status,
};
use serde_json::json;

const ANNOTATION: &str = "example.io/evict-on";

/// How often a log is read.
const PERIOD: Duration = Duration::from_secs(30);

struct Evictor;

impl Reconciler<Pod> for Evictor {
    type Error = kube::Error;

    async fn reconcile(&self, pod: Arc<Pod>, cx: &Context) -> Result<Outcome, kube::Error> {
        let words = match pod.annotations().get(ANNOTATION) {
            Some(words) if pod.metadata.deletion_timestamp.is_none() => words,
            _ => return Ok(Outcome::Done),
        };
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let pods = Api::<Pod>::namespaced(cx.client().clone(), &namespace);
        let last = LogParams {
            tail_lines: Some(100),
            ..LogParams::default()
        };
        let log = match pods.logs(&name, &last).await {
            Ok(log) => log,
            // it has not started, or is gone by now
            Err(kube::Error::Api(status)) if [400, 404].contains(&status.code) => String::new(),
            Err(error) => return Err(error),
        };
        if !log.contains(words) {
            return Ok(Outcome::RequeueAfter(PERIOD));
        }
        // this pod, not another one that has its name by then: what `Api::evict` of kube 5 sends names no preconditions
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": namespace },
            "deleteOptions": { "preconditions": { "uid": pod.uid() } },
        });
        let _: Status = pods
            .create_subresource("eviction", &name, &PostParams::default(), &eviction)
            .await?;
        cx.event(pod.as_ref(), "Evicted", format!("its log has {words:?}"));
        Ok(Outcome::Done)
    }
}

/// The controller, to be handed to a manager.
pub fn controller() -> Runnable {
    Controller::<Pod>::named("evictor")
        .needs(Right::on::<Pod>([Verb::Get]).subresource("log"))
        .needs(Right::on::<Pod>([Verb::Create]).subresource("eviction"))
        .reconciler(|_| Evictor)
}

fn main() -> ExitCode {
    Manager::from_args().with(controller()).run()
}
