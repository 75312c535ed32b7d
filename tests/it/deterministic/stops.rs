//! Guarantee 11: one grace period for everything that runs, and nothing that begins after the stop.

use std::{sync::Arc, time::Duration};

use boatswain::{ClientError, Context, Controller, Manager, Options, Outcome, Reconciler};
use boatswain_apisim::Matcher;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;

use super::{Script, Scripted, Stage, end};

#[test]
fn g11_any_number_of_hanging_reconciles_of_any_number_of_controllers_get_one_grace_period() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Hang);
        for i in 0..6 {
            stage.create(&format!("map-{i}")).await;
        }
        let mut manager = Manager::new(Options::default());
        for name in ["one", "other"] {
            let scripted = scripted.clone();
            let controller = Controller::<ConfigMap>::named(name).concurrency(3);
            manager = manager.with(controller.reconciler(move |_| scripted));
        }
        let (clock, entropy) = (stage.clock.clone(), stage.options.entropy.clone());
        let running = manager
            .start(stage.client.clone(), clock, entropy)
            .await
            .expect("started");
        stage.clock.sleep(Duration::from_secs(5)).await;
        let runs = || scripted.seen().values().map(Vec::len).sum::<usize>();
        assert_eq!(runs(), 6);
        let asked = stage.clock.now();
        end(running).await;
        let took = stage.clock.now() - asked;
        let grace = Options::default().grace;
        assert!(
            (grace..grace + Duration::from_secs(1)).contains(&took),
            "{took:?}"
        );
        assert_eq!(runs(), 6, "nothing began meanwhile");
    });
}

/// Writes, and wants to run again at once.
#[derive(Clone)]
struct Writer(Scripted);

impl Reconciler<ConfigMap> for Writer {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let mut next = ConfigMap::clone(&map);
        let now = cx.wall().to_string();
        next.annotations_mut().insert("now".into(), now);
        let Ok(_) = self.0.reconcile(map, cx).await;
        cx.replace(&next).await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
    }
}

#[test]
fn g11_a_run_that_waits_for_the_cache_when_the_stop_comes_does_not_begin() {
    Stage::play(2, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let writer = Writer(scripted.clone());
        let controller = Controller::<ConfigMap>::named("writer").resync(None);
        let running = stage.start(controller.reconciler(move |_| writer)).await;
        stage.create("map").await;
        stage.clock.sleep(Duration::from_millis(100)).await;
        let held = stage.sim.faults().stall_watches(Matcher::any());
        // the last write of a run is not seen any more, so the next one waits
        stage.clock.sleep(Duration::from_secs(1)).await;
        let before = scripted.runs("map").len();
        let asked = stage.clock.now();
        end(running).await;
        assert_eq!(scripted.runs("map").len(), before);
        assert!(stage.clock.now() - asked < Duration::from_secs(1));
        held.release();
    });
}

#[test]
fn g11_a_run_whose_wait_for_the_cache_ends_after_the_stop_began_does_not_begin() {
    Stage::play(3, |stage| async move {
        stage.create("map").await;
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let slow = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_secs(10)));
        let writer = Writer(scripted.clone());
        let writer = Controller::<ConfigMap>::named("writer").reconciler(move |_| writer);
        // stopped before the other, which takes as long as its reconcile
        let slow = Controller::<ConfigMap>::named("slow").reconciler(slow.maker());
        let manager = Manager::new(Options::default()).with(writer).with(slow);
        let (clock, entropy) = (stage.clock.clone(), stage.options.entropy.clone());
        let started = manager.start(stage.client.clone(), clock, entropy).await;
        let running = started.expect("started");
        stage.clock.sleep(Duration::from_secs(2)).await;
        let held = stage.sim.faults().stall_watches(Matcher::any());
        stage.clock.sleep(Duration::from_secs(1)).await;
        let before = scripted.runs("map").len();
        let meanwhile = async {
            stage.clock.sleep(Duration::from_secs(1)).await;
            held.release();
        };
        let (stopped, ()) = tokio::join!(running.stop(), meanwhile);
        stopped.expect("nothing still runs");
        assert_eq!(scripted.runs("map").len(), before);
    });
}
