//! What is told as Events: repeated, refused, interrupted, and by whom.

use std::convert::Infallible;

use boatswain::{LeaderOptions, Note, Options};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Tells of its object whenever it looks at it, which is every ten seconds.
#[derive(Clone, Default)]
struct Teller {
    told: Arc<Mutex<u64>>,
    /// Says something else each time.
    is_inventive: bool,
}

impl Teller {
    fn controller(&self) -> boatswain::Runnable {
        let teller = self.clone();
        Controller::<ConfigMap>::named("teller")
            .resync(None)
            .reconciler(|_| teller)
    }

    fn told(&self) -> u64 {
        *self.told.lock().expect("lock")
    }
}

impl Reconciler<ConfigMap> for Teller {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        let told = {
            let mut told = self.told.lock().expect("lock");
            *told += 1;
            *told
        };
        let text = if self.is_inventive {
            format!("look {told}")
        } else {
            "a look".to_owned()
        };
        cx.event(map.as_ref(), "Looked", text);
        Ok(Outcome::RequeueAfter(10 * SECOND))
    }
}

async fn events(stage: &Stage) -> Vec<Event> {
    let api = Api::<Event>::all(stage.client.clone());
    let events = api.list(&Default::default()).await.expect("listed").items;
    let looked = |event: &Event| event.reason.as_deref() == Some("Looked");
    events.into_iter().filter(looked).collect()
}

fn count(event: &Event) -> u64 {
    let series = event.series.as_ref().map_or(1, |series| series.count);
    series.try_into().expect("positive")
}

async fn counted(stage: &Stage) -> u64 {
    events(stage).await.iter().map(count).sum()
}

/// Requests about Events that the server was asked, whatever it answered.
fn asked(stage: &Stage) -> usize {
    let requests = stage.sim.audit();
    let about_events = requests
        .iter()
        .filter(|r| r.request.resource == "events" && r.request.verb != "list");
    about_events.count()
}

fn about_events() -> Matcher {
    Matcher::any().group("events.k8s.io").resource("events")
}

#[test]
fn what_is_told_again_and_again_is_one_event_that_counts_and_costs_a_request_in_six_minutes() {
    Stage::play(1, async |stage| {
        stage.create("map").await;
        let teller = Teller::default();
        let running = stage.start(teller.controller()).await;
        stage.clock.sleep(30 * 60 * SECOND).await;
        let told = teller.told();
        assert!(told > 170, "{told}");
        let events = events(&stage).await;
        assert_eq!(events.len(), 1);
        assert!(
            count(&events[0]) + 40 > told,
            "{} of {told}",
            count(&events[0])
        );
        assert!(asked(&stage) <= 2 + 5, "{} requests", asked(&stage));
        let event = &events[0];
        let said = (
            event.reporting_controller.as_deref(),
            event.action.as_deref(),
        );
        assert_eq!(said, (Some("teller"), Some("Looked")));
        assert_eq!(
            event.regarding.as_ref().and_then(|o| o.name.as_deref()),
            Some("map")
        );

        end(running).await;
        assert_eq!(
            counted(&stage).await,
            teller.told(),
            "the stop writes the rest"
        );
    });
}

#[test]
fn of_one_object_no_flood_of_events_is_told_and_those_of_others_come_through() {
    Stage::play(2, async |stage| {
        let teller = Teller {
            is_inventive: true,
            ..Teller::default()
        };
        stage.create("chatty").await;
        let running = stage.start(teller.controller()).await;
        stage.clock.sleep(610 * SECOND).await;
        let before = events(&stage).await.len();
        assert_eq!(before, 25 + 2);
        let dropped = metric::<u64>(&running, r#"event_recorder_dropped_total{reason="spam"}"#);
        assert_eq!(dropped + before as u64, teller.told());
        stage.create("other").await;
        stage.clock.sleep(SECOND).await;
        assert_eq!(events(&stage).await.len(), before + 1);
        end(running).await;
    });
}

#[test]
fn a_recorder_that_is_forbidden_or_whose_server_is_busy_holds_up_nobody() {
    for (code, reason) in [(403, "forbidden"), (404, "namespace"), (503, "unreachable")] {
        Stage::play(3, async |stage| {
            stage
                .sim
                .faults()
                .reject(about_events(), Rejection::new(code).times(u32::MAX));
            stage.create("map").await;
            let teller = Teller {
                is_inventive: true,
                ..Teller::default()
            };
            let running = stage.start(teller.controller()).await;
            stage.clock.sleep(1200 * SECOND).await;
            assert!(teller.told() >= 120, "{}", teller.told());
            let dropped = format!(r#"event_recorder_dropped_total{{reason="{reason}"}}"#);
            assert!(metric::<u64>(&running, &dropped) > 0, "{code}");
            assert!(asked(&stage) < 70, "{code}: {} requests", asked(&stage));
            assert!(running.observer().ready().0);

            stage.sim.faults().clear();
            stage.clock.sleep(60 * SECOND).await;
            let before = counted(&stage).await;
            stage.create("other").await;
            stage.clock.sleep(SECOND).await;
            assert!(counted(&stage).await > before, "{code}: it is told again");
            end(running).await;
        });
    }
}

#[test]
fn what_was_told_before_a_stop_is_written_although_the_server_is_busy_for_a_moment() {
    Stage::play(4, async |stage| {
        for name in ["a", "b", "c"] {
            stage.create(name).await;
        }
        stage
            .sim
            .faults()
            .reject(about_events(), Rejection::new(503).times(3));
        let teller = Teller::default();
        let running = stage.start(teller.controller()).await;
        while teller.told() < 3 {
            stage.clock.sleep(SECOND / 1000).await;
        }
        end(running).await;
        assert_eq!(counted(&stage).await, 3);
    });
}

#[test]
fn a_server_that_is_away_at_the_stop_costs_the_events_and_no_more_than_seconds() {
    Stage::play(5, async |stage| {
        stage.create("map").await;
        let held = stage.sim.faults().hang(about_events());
        let teller = Teller::default();
        let running = stage.start(teller.controller()).await;
        stage.clock.sleep(SECOND).await;
        let begun = stage.clock.now();
        end(running).await;
        assert!(stage.clock.now() - begun <= 10 * SECOND);
        held.release();
    });
}

#[test]
fn a_recorder_that_crashes_again_and_again_loses_and_doubles_nothing() {
    for seed in 0..10 {
        Stage::play(seed, async |stage| {
            for i in 0..10 {
                stage.create(&format!("map-{i}")).await;
            }
            let faults = stage.sim.faults();
            faults.delay(about_events(), SECOND / 10, u32::MAX);
            faults.lose_answers(about_events(), 5);
            let teller = Teller::default();
            let running = stage.start(teller.controller()).await;
            for _ in 0..6 {
                while metric::<u64>(&running, "event_recorder_waiting") == 0 {
                    stage.clock.sleep(SECOND).await;
                }
                stage
                    .clock
                    .sleep(Duration::from_millis(stage.options.entropy.range(0..1000)))
                    .await;
                assert!(running.observer().kill("root/events"));
                // more at once would end the manager
                stage.clock.sleep(SECOND * 660).await;
            }
            stage.clock.sleep(SECOND * 60).await;
            end(running).await;
            assert_eq!(events(&stage).await.len(), 10);
            assert_eq!(counted(&stage).await, teller.told());
        });
    }
}

#[test]
fn g10_a_standby_tells_nothing_and_a_leader_that_stops_tells_all_before_the_lease_goes() {
    Stage::play(6, async |stage| {
        let elected = || Options {
            leader: Some(LeaderOptions::default()),
            ..Options::default()
        };
        stage.create("map").await;
        let (first, second) = (Teller::default(), Teller::default());
        let leader = stage.start_with(elected(), first.controller()).await;
        stage.clock.sleep(5 * SECOND).await;
        let standby = stage.start_with(elected(), second.controller()).await;
        stage.clock.sleep(3600 * SECOND).await;
        assert!(metric::<u64>(&leader, "event_recorder_notes_total") > 300);
        assert_eq!(metric::<u64>(&standby, "event_recorder_notes_total"), 0);
        end(leader).await;
        assert_eq!(counted(&stage).await, first.told());
        stage.clock.sleep(60 * SECOND).await;
        assert!(second.told() > 0);
        end(standby).await;
        assert_eq!(counted(&stage).await, first.told() + second.told());
    });
}

#[test]
fn g10_who_leads_no_more_tells_nothing_of_what_it_did() {
    Stage::play(7, async |stage| {
        let elected = Options {
            leader: Some(LeaderOptions::default()),
            ..Options::default()
        };
        stage.create("map").await;
        let teller = Teller::default();
        let running = stage.start_with(elected, teller.controller()).await;
        stage.clock.sleep(65 * SECOND).await;
        stage.sim.faults().unreachable(true);
        stage.clock.sleep(60 * SECOND).await;
        let dropped = r#"event_recorder_dropped_total{reason="standby"}"#;
        let lost = metric::<u64>(&running, dropped);
        assert!(lost > 0, "what was counted and not written");
        assert_eq!(metric::<u64>(&running, "event_recorder_waiting"), 0);
        stage.sim.faults().unreachable(false);
        stage.clock.sleep(60 * SECOND).await;
        let lost = metric::<u64>(&running, dropped);
        end(running).await;
        assert_eq!(counted(&stage).await + lost, teller.told());
    });
}

/// Tells of a Namespace and of what is in it.
struct Porter;

impl Reconciler<Namespace> for Porter {
    type Error = Infallible;

    async fn reconcile(&self, space: Arc<Namespace>, cx: &Context) -> Result<Outcome, Infallible> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("rules".into());
        map.metadata.namespace = space.metadata.name.clone();
        let note = Note::warning(space.as_ref(), "Looked", "no rules");
        cx.tell(&note.because_of(&map).action("Read"));
        Ok(Outcome::Done)
    }
}

#[test]
fn an_object_without_a_namespace_is_told_of_in_the_default_one_with_what_else_it_is_about() {
    Stage::play(8, async |stage| {
        let porter = Controller::<Namespace>::named("the porter").reconciler(|_| Porter);
        let running = stage.start(porter).await;
        stage.clock.sleep(SECOND).await;
        let events = events(&stage).await;
        assert!(!events.is_empty());
        for event in events {
            assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            assert_eq!(event.reporting_controller.as_deref(), Some("the-porter"));
            let related = event.related.and_then(|other| other.name);
            assert_eq!(
                (related.as_deref(), event.action.as_deref()),
                (Some("rules"), Some("Read"))
            );
        }
        end(running).await;
    });
}
