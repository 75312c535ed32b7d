//! What is said of a key: one fact per thing it can be doing.

use std::{convert::Infallible, sync::Arc, time::Duration};

use boatswain::{
    Causes, Context, Controller, ControllerHandle, Doing, Explanation, Fault, Key, Lane, Needs,
    Outcome, Reconciler, Running, Shut, Waits,
};
use boatswain_apisim::Matcher;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::Deserialize;
use serde_json::json;

use super::{Stage, end, metric, retries::secs};

/// Does what its object's value says.
struct Doer;

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the disk is full")]
    Full,
    #[error("there is no such class")]
    Class,
    #[error("somebody was faster")]
    Faster,
    #[error("it cannot be written: {0}")]
    Write(#[from] kube::Error),
}

impl Reconciler<ConfigMap> for Doer {
    type Error = Failed;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Failed> {
        let value = map.data.as_ref().and_then(|data| data.get("value"));
        match value.map(String::as_str) {
            Some("requeue") => Ok(Outcome::RequeueAfter(secs(600))),
            Some("not-ready") => Ok(Outcome::Retry),
            Some("fail") => Err(Failed::Full),
            Some("permanent") => Err(Failed::Class),
            Some("conflict") => Err(Failed::Faster),
            Some("give-up") => Ok(Outcome::GiveUp("not ours".into())),
            Some("slow") => {
                tokio::time::timeout(secs(100), std::future::pending::<()>())
                    .await
                    .unwrap_or_default();
                Ok(Outcome::Done)
            }
            Some("write") if !cx.causes().contains(Causes::REQUEUED) => {
                Ok(Outcome::RequeueAfter(secs(5)))
            }
            Some("write") if !map.annotations().contains_key("written") => {
                let maps = Api::<ConfigMap>::namespaced(cx.client().clone(), "default");
                let patch = json!({ "metadata": { "annotations": { "written": "yes" } } });
                let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
                maps.patch(&map.name_any(), &params, &patch).await?;
                Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
            }
            _ => Ok(Outcome::Done),
        }
    }

    fn classify(&self, error: &Failed) -> Fault {
        match error {
            Failed::Class => Fault::Permanent,
            Failed::Faster => Fault::Conflict,
            error => Fault::of(error),
        }
    }
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

fn doer() -> Controller<ConfigMap> {
    Controller::<ConfigMap>::named("doer").resync(None)
}

async fn start(stage: &Stage, controller: Controller<ConfigMap>) -> (Running, ControllerHandle) {
    let running = stage.start(controller.reconciler(|_| Doer)).await;
    let handle = running.observer().controller("doer").expect("it is there");
    (running, handle)
}

/// An object of this value, and what is said of it a second later.
async fn told(stage: &Stage, handle: &ControllerHandle, value: &str) -> Explanation {
    stage.create(value).await;
    stage.touch(value, value).await;
    stage.clock.sleep(secs(1)).await;
    handle.explain(&key(value))
}

#[test]
fn an_idle_key_tells_of_its_last_run_and_an_unknown_one_that_there_is_none() {
    Stage::play(1, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        let idle = told(&stage, &handle, "idle").await;
        assert_eq!(
            (&idle.now, idle.next, idle.failures),
            (&Doing::Idle, None, 0)
        );
        let last = idle.last.as_ref().expect("it ran");
        let map = stage.maps().get("idle").await.expect("there");
        let version = last.seen.as_ref().map(ToString::to_string);
        assert_eq!(version, map.metadata.resource_version);
        assert_eq!((last.result, last.written, last.attempt), ("success", 0, 0));
        assert!(last.causes.to_string().contains("updated"), "{idle}");
        let text = idle.to_string();
        for part in [
            "default/idle of doer: idle",
            "because: ",
            "and ended with success",
            "it wrote nothing",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let nobody = handle.explain(&key("nobody"));
        assert!(matches!(&nobody.now, Doing::Unknown { why } if why.contains("no such object")));
        assert!(nobody.to_string().contains("no run of it is remembered"));

        stage.delete("idle").await;
        stage.clock.sleep(secs(1)).await;
        let gone = handle.explain(&key("idle"));
        assert!(matches!(gone.now, Doing::Unknown { .. }), "{gone}");
        let last = gone.last.as_ref().expect("that it is gone was a run");
        assert!(last.seen.is_none() && gone.to_string().contains("it saw no object"));
        end(running).await;
        let ended = handle.explain(&key("idle"));
        assert!(matches!(&ended.now, Doing::Unknown { why } if why.contains("has ended")));
    });
}

#[test]
fn keys_that_keep_failing_are_known_with_their_error_since_the_first_failure_until_they_park() {
    Stage::play(21, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        let gauge = |name: &str| -> f64 {
            let series = format!("controller_failing_{name}{{controller=\"doer\"}}");
            metric(&running, &series)
        };
        assert_eq!((gauge("keys"), gauge("seconds")), (0.0, 0.0));
        let begun = stage.clock.wall();
        told(&stage, &handle, "idle").await;
        told(&stage, &handle, "fail").await;
        stage.clock.sleep(secs(28)).await;
        assert_eq!(
            handle.failing_for(secs(30)),
            [],
            "retries are for what passes"
        );
        stage.clock.sleep(secs(10)).await;
        let [failing] = &handle.failing_for(secs(30))[..] else {
            panic!("one key fails");
        };
        assert_eq!(failing.key, key("fail"));
        assert!(failing.error.contains("the disk is full"), "{failing:?}");
        let since = std::time::SystemTime::from(failing.since);
        let within = since.duration_since(begun).expect("later");
        assert!(within < secs(3), "the first failure, not the last");
        assert_eq!(gauge("keys"), 1.0);
        assert!((37.0..41.0).contains(&gauge("seconds")));
        let told = handle.explain(&key("fail"));
        assert_eq!(told.failing_since, Some(failing.since));
        assert!(
            told.to_string().contains("failures in a row, the first"),
            "{told}"
        );
        stage.clock.sleep(secs(200)).await;
        assert_eq!(handle.parked().len(), 1);
        assert_eq!(
            handle.failing_for(secs(30)),
            [],
            "what is parked is told elsewhere"
        );
        assert_eq!((gauge("keys"), gauge("seconds")), (0.0, 0.0));
        end(running).await;
    });
}

#[test]
fn a_key_that_waits_says_for_what_and_until_when() {
    Stage::play(2, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        let until = |told: &Explanation| -> Duration {
            let next = told.next.expect("a time");
            next.duration_since(told.at).try_into().expect("ahead")
        };
        let requeue = told(&stage, &handle, "requeue").await;
        assert!(matches!(
            &requeue.now,
            Doing::Waiting {
                why: Waits::Requeue,
                ..
            }
        ));
        assert!(
            (secs(590)..secs(600)).contains(&until(&requeue)),
            "{requeue}"
        );
        assert!(requeue.to_string().contains("it asked to run again at"));

        let not_ready = told(&stage, &handle, "not-ready").await;
        assert!(matches!(
            &not_ready.now,
            Doing::Waiting {
                why: Waits::NotReady,
                ..
            }
        ));
        assert_eq!(not_ready.failures, 0);

        let failing = told(&stage, &handle, "fail").await;
        match &failing.now {
            Doing::Waiting {
                why: Waits::Backoff { error },
                ..
            } => assert_eq!(error, "the disk is full"),
            other => panic!("{other:?}"),
        }
        assert!(failing.failures > 1 && failing.pending.to_string().contains("updated"));
        let last = failing.last.as_ref().expect("it ran");
        assert_eq!((last.result, last.attempt + 1), ("error", failing.failures));
        let text = failing.to_string();
        assert!(text.contains("last error: the disk is full"), "{text}");
        assert!(text.contains("failures in a row"), "{text}");

        let conflict = told(&stage, &handle, "conflict").await;
        assert!(matches!(
            &conflict.now,
            Doing::Waiting {
                why: Waits::Conflict,
                ..
            }
        ));
        end(running).await;
    });
}

#[test]
fn a_key_whose_backoff_is_over_stands_in_line() {
    Stage::play(3, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        let names: Vec<String> = (0..400).map(|n| format!("map-{n}")).collect();
        for name in &names {
            stage.create(name).await;
            stage.touch(name, "fail").await;
        }
        stage.clock.sleep(secs(20)).await;
        let mut in_line = 0;
        for name in &names {
            let told = handle.explain(&key(name));
            if let Doing::Waiting {
                why: Waits::Line { error },
                ..
            } = &told.now
            {
                assert_eq!(error, "the disk is full");
                assert!(told.to_string().contains("in the line of retries"));
                in_line += 1;
            }
        }
        assert!(in_line > 200, "{in_line}");
        end(running).await;
    });
}

#[test]
fn a_key_whose_worker_was_lost_says_so() {
    Stage::play(4, |stage| async move {
        let (running, handle) = start(&stage, doer().concurrency(1)).await;
        let slow = told(&stage, &handle, "slow").await;
        assert!(
            matches!(slow.now, Doing::Running { again: false, .. }),
            "{slow}"
        );
        let worker = "root/controllers/doer/workers-0/worker-0";
        assert!(running.observer().kill(worker));
        stage.clock.sleep(Duration::from_millis(1)).await;
        let lost = handle.explain(&key("slow"));
        assert!(
            matches!(
                &lost.now,
                Doing::Waiting {
                    why: Waits::Lost,
                    ..
                }
            ),
            "{lost}"
        );
        let last = lost.last.as_ref().expect("it ran");
        assert_eq!(last.result, "aborted");
        end(running).await;
    });
}

#[test]
fn a_key_that_is_ready_says_what_it_needs() {
    Stage::play(5, |stage| async move {
        let (running, handle) = start(&stage, doer().concurrency(1)).await;
        told(&stage, &handle, "slow").await;
        stage.touch("slow", "other").await;
        let waits = told(&stage, &handle, "waits").await;
        match &waits.now {
            Doing::Queued {
                lane: Lane::Normal,
                needs: Needs::Permit(1),
                of: 1,
                ..
            } => {}
            other => panic!("{other:?}"),
        }
        assert!(
            waits
                .to_string()
                .contains("the one run that is allowed at once goes on")
        );
        let slow = handle.explain(&key("slow"));
        assert!(
            matches!(slow.now, Doing::Running { again: true, .. }),
            "{slow}"
        );

        handle.pause("ann");
        stage.clock.sleep(secs(200)).await;
        let paused = handle.explain(&key("waits"));
        assert!(matches!(
            paused.now,
            Doing::Queued {
                needs: Needs::Open,
                ..
            }
        ));
        assert!(matches!(paused.shut, Some(Shut::Paused(_))));
        assert!(
            paused.to_string().contains("no run begins: paused since "),
            "{paused}"
        );
        handle.standby(true);
        let standby = handle.explain(&key("waits"));
        assert_eq!(standby.shut, Some(Shut::Standby));
        end(running).await;
    });
}

#[test]
fn before_the_caches_are_synced_it_is_said_which_are_not() {
    Stage::play(6, |stage| async move {
        stage.create("map").await;
        let _held = stage.sim.faults().hang(Matcher::any().resource("secrets"));
        let controller = doer().reconciler(|wiring| {
            wiring.lister::<Secret>();
            Doer
        });
        let running = stage.start(controller).await;
        stage.clock.sleep(secs(2)).await;
        let handle = running.observer().controller("doer").expect("it is there");
        let told = handle.explain(&key("map"));
        match &told.shut {
            Some(Shut::NotSynced(missing)) => {
                assert!(
                    missing.len() == 1 && missing[0].contains("secrets"),
                    "{missing:?}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(
            matches!(
                told.now,
                Doing::Queued {
                    needs: Needs::Open,
                    ..
                }
            ),
            "{told}"
        );
        assert!(told.to_string().contains("not synced yet: "));
        end(running).await;
    });
}

#[test]
fn a_key_held_at_the_barrier_says_which_write_is_not_shown_and_what_it_wrote() {
    Stage::play(7, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        stage.create("map").await;
        stage.clock.sleep(secs(1)).await;
        stage.touch("map", "write").await;
        stage.clock.sleep(secs(3)).await;
        let held = stage.sim.faults().stall_watches(Matcher::any());
        stage.clock.sleep(secs(4)).await;
        let told = handle.explain(&key("map"));
        match &told.now {
            Doing::Held { what, why, .. } => {
                assert!(what.contains("default/map"), "{what}");
                assert!(why.contains("up to date as far as"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        let last = told.last.as_ref().expect("it ran");
        assert_eq!((last.result, last.written), ("requeue_after", 1));
        assert_eq!(last.writes, ["PATCH configmaps default/map: 200 OK"]);
        let text = told.to_string();
        assert!(
            text.contains("until the cache shows what it wrote"),
            "{text}"
        );
        assert!(
            text.contains("it wrote once\n      PATCH configmaps"),
            "{text}"
        );
        held.release();
        end(running).await;
    });
}

#[test]
fn a_parked_key_says_why_and_when_it_is_tried_again() {
    Stage::play(8, |stage| async move {
        let (running, handle) = start(&stage, doer()).await;
        let parked = told(&stage, &handle, "permanent").await;
        assert!(
            matches!(&parked.now, Doing::Parked { reason, .. } if reason == "there is no such class")
        );
        let minutes = parked
            .next
            .expect("a time")
            .duration_since(parked.at)
            .as_mins();
        assert!((28..=30).contains(&minutes), "{parked}");
        assert_eq!(
            parked.last.as_ref().map(|last| last.result),
            Some("permanent")
        );
        let given_up = told(&stage, &handle, "give-up").await;
        assert!(
            given_up.to_string().contains("gave up: not ours"),
            "{given_up}"
        );

        end(running).await;
    });
}

/// A ConfigMap of which more is expected than is true.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = "ConfigMap")]
struct Strict {
    metadata: ObjectMeta,
    #[serde(rename = "data")]
    _data: Numbers,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Numbers {
    #[serde(rename = "value")]
    _value: u32,
}

#[test]
fn an_object_that_does_not_decode_is_said_to_and_where() {
    Stage::play(12, |stage| async move {
        let controller = Controller::<Strict>::named("doer").resync(None);
        let run = |_: Arc<Strict>, _: Arc<()>| async { Ok::<_, Infallible>(Outcome::Done) };
        let running = stage
            .start(controller.reconcile_with(Arc::new(()), run))
            .await;
        let handle = running.observer().controller("doer").expect("it is there");
        let broken = told(&stage, &handle, "broken").await;
        match &broken.now {
            Doing::Undecodable { reason, .. } => {
                assert!(reason.contains("data.value"), "{reason}");
            }
            _ => panic!("{broken}"),
        }
        let last = broken.last.as_ref().map(|last| last.result);
        assert_eq!(last, Some("undecodable"));
        assert!(broken.to_string().contains("left alone since"), "{broken}");
        end(running).await;
    });
}

#[test]
fn what_runs_and_what_is_idle_is_explained_although_their_shard_is_down() {
    Stage::play(9, |stage| async move {
        let (running, handle) = start(&stage, doer().concurrency(2)).await;
        told(&stage, &handle, "idle").await;
        let slow = told(&stage, &handle, "slow").await;
        let Doing::Running { since: began, .. } = slow.now else {
            panic!("{slow}")
        };
        // its backoff grows with each crash
        for crash in 0..6 {
            assert!(running.observer().kill("root/controllers/doer/shard-0"));
            let rest = if crash < 5 { 130 << crash } else { 1 };
            stage.clock.sleep(Duration::from_millis(rest)).await;
        }
        let slow = handle.explain(&key("slow"));
        assert!(
            matches!(slow.now, Doing::Running { since, .. } if since == began),
            "{slow}"
        );
        let idle = handle.explain(&key("idle"));
        assert_eq!(idle.now, Doing::Idle);
        assert!(idle.last.is_some());
        end(running).await;
    });
}

#[test]
fn what_woke_a_key_is_named_with_its_version() {
    Stage::play(11, |stage| async move {
        let controller = doer()
            .watches::<Secret>()
            .mapped_by(|_, _| async { Ok::<_, Infallible>(vec![key("map")]) });
        let (running, handle) = start(&stage, controller).await;
        stage.create("map").await;
        stage.clock.sleep(secs(1)).await;
        let secrets = Api::<Secret>::namespaced(stage.client.clone(), "default");
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some("token".into()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        let made = secrets.create(&PostParams::default(), &secret).await;
        let version = made.expect("created").meta().resource_version.clone();
        stage.clock.sleep(secs(1)).await;
        let told = handle.explain(&key("map"));
        let trigger = told.last.as_ref().and_then(|last| last.trigger.clone());
        let trigger = trigger.expect("something woke it");
        let version = version.expect("a version");
        assert!(trigger.starts_with("default/token of secrets"), "{trigger}");
        assert!(
            trigger.ends_with(&format!("at version {version}")),
            "{trigger}"
        );
        end(running).await;
    });
}
