//! What runs decided, as those are told who ask later.

use std::{convert::Infallible, sync::Arc, time::Duration};

use boatswain::{Context, Controller, Outcome, Reconciler};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Stage, end, retries::secs};

/// Says that it decided what its object's value says.
struct Judge;

impl Reconciler<ConfigMap> for Judge {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        let value = map.data.as_ref().and_then(|data| data.get("value"));
        cx.decided("nothing yet");
        if let Some(value) = value {
            cx.decided(format!("Contended: over {value}"));
        }
        Ok(Outcome::RequeueAfter(Duration::from_millis(55_650)))
    }
}

#[test]
fn what_a_run_decided_is_told_in_its_own_words_and_its_outcome_in_those_of_people() {
    Stage::play(1, |stage| async move {
        let controller = Controller::<ConfigMap>::named("judge").resync(None);
        let running = stage.start(controller.reconciler(|_| Judge)).await;
        let handle = running.observer().controller("judge").expect("it is there");
        stage.create("map").await;
        stage.touch("map", "the anchor").await;
        stage.clock.sleep(secs(1)).await;
        let key = boatswain::Key::new(Some("default"), "map");
        let told = handle.explain(&key);
        let last = told.last.as_ref().expect("it ran");
        assert_eq!(last.decided.as_deref(), Some("Contended: over the anchor"));
        let text = told.to_string();
        assert!(
            text.contains("\n    it decided: Contended: over the anchor\n"),
            "{text}"
        );
        assert!(text.contains("asks to run again after 55.65 s"), "{text}");
        assert!(!text.contains("RequeueAfter"), "{text}");
        end(running).await;
    });
}
