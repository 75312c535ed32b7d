//! A lease for each controller: each is led, lost, followed and given back alone.

use boatswain::{ClientError, LeaderOptions, LeaseStatus, Runnable, Shut, StartError};
use boatswain_apisim::Matcher;
use boatswain_tests::{audit::Request, judge::trespasses_among, requests_of};
use http::{HeaderValue, header::AUTHORIZATION};
use k8s_openapi::api::{coordination::v1::Lease, events::v1::Event};
use kube::core::Expression;
use tower::ServiceBuilder;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Writes every second by which replica it is run, and tells it.
#[derive(Clone)]
struct Stamper {
    name: &'static str,
    by: &'static str,
    /// Between two writes of one run.
    pause: Duration,
    clock: Clock,
    stamps: Stamps,
}

/// When which controller wrote by which replica.
type Stamps = Arc<Mutex<Vec<(Instant, &'static str, &'static str)>>>;

impl Stamper {
    fn controller(self) -> Runnable {
        Controller::<ConfigMap>::named(self.name)
            .select(|maps| maps.labels(Expression::Exists("stamped".into())))
            .resync(None)
            .reconciler(|_| self)
    }

    async fn stamp(&self, cx: &Context) -> Result<(), ClientError> {
        let log = ConfigMap {
            metadata: ObjectMeta {
                name: Some(log_of(self.name)),
                namespace: Some("default".into()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([
                ("by".into(), self.by.into()),
                ("at".into(), cx.wall().to_string()),
            ])),
            ..ConfigMap::default()
        };
        cx.apply(&log).await?;
        let mut stamps = self.stamps.lock().expect("lock");
        stamps.push((cx.now(), self.name, self.by));
        Ok(())
    }
}

fn log_of(controller: &str) -> String {
    format!("log-of-{controller}")
}

fn lease_of(controller: &str) -> String {
    format!("crew-{controller}")
}

impl Reconciler<ConfigMap> for Stamper {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        self.stamp(cx).await?;
        if !self.pause.is_zero() {
            self.clock.sleep(self.pause).await;
            self.stamp(cx).await?;
        }
        cx.event(map.as_ref(), "Stamped", format!("by {}", self.by));
        Ok(Outcome::RequeueAfter(SECOND))
    }
}

/// Replicas of two controllers, alpha and beta.
struct Fleet {
    stage: Stage,
    stamps: Stamps,
    /// Which replica is behind each identity.
    identities: Mutex<BTreeMap<String, &'static str>>,
}

struct Replica {
    running: Running,
}

impl Replica {
    fn lease(&self, controller: &str) -> LeaseStatus {
        let leases = self.running.observer().leases().into_iter();
        let mut of = leases.filter(|lease| lease.controller.as_deref() == Some(controller));
        of.next().expect("it has one")
    }

    fn leads(&self, controller: &str) -> bool {
        self.lease(controller).leads
    }

    fn shut(&self, controller: &str) -> Option<Shut> {
        let controller = self.running.observer().controller(controller);
        controller.expect("there is one").shut()
    }

    fn metric(&self, name: &str) -> u64 {
        metric(&self.running, name)
    }
}

fn elected() -> Options {
    Options {
        leader: Some(LeaderOptions {
            name: Some("crew".into()),
            namespace: Some("default".into()),
            per_controller: true,
            ..LeaderOptions::default()
        }),
        ..Options::default()
    }
}

impl Fleet {
    async fn new(stage: Stage) -> Self {
        stage.create("stone").await;
        let label = json!({ "metadata": { "labels": { "stamped": "" } } });
        stage.patch("stone", label).await;
        Self {
            stage,
            stamps: Stamps::default(),
            identities: Mutex::default(),
        }
    }

    fn stamper(&self, name: &'static str, by: &'static str) -> Stamper {
        Stamper {
            name,
            by,
            pause: Duration::ZERO,
            clock: self.stage.clock.clone(),
            stamps: self.stamps.clone(),
        }
    }

    async fn replica(&self, by: &'static str) -> Replica {
        self.replica_of([self.stamper("alpha", by), self.stamper("beta", by)])
            .await
    }

    async fn replica_of(&self, stampers: [Stamper; 2]) -> Replica {
        let by = stampers[0].by;
        let manager = stampers
            .into_iter()
            .fold(Manager::new(elected()), |manager, stamper| {
                manager.with(stamper.controller())
            });
        let (clock, entropy) = (self.stage.clock.clone(), self.stage.options.entropy.clone());
        let started = manager.start(self.client(by), clock, entropy).await;
        let replica = Replica {
            running: started.expect("started"),
        };
        self.know(&replica, by);
        replica
    }

    /// One by which the server knows who asks.
    fn client(&self, user: &'static str) -> Client {
        let users = self.stage.sim.users();
        users.add_token(user, user);
        users.grant(user, Matcher::any());
        let bearer = HeaderValue::from_str(&format!("Bearer {user}")).expect("a header");
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<_>| {
                request.headers_mut().insert(AUTHORIZATION, bearer.clone());
                request
            })
            .service(self.stage.sim.service());
        Client::new(service, "default")
    }

    fn know(&self, replica: &Replica, by: &'static str) {
        let leases = replica.running.observer().leases().into_iter();
        let mut identities = self.identities.lock().expect("lock");
        identities.extend(leases.map(|lease| (lease.identity, by)));
    }

    fn now(&self) -> Instant {
        self.stage.clock.now()
    }

    async fn sleep(&self, seconds: u32) {
        self.stage.clock.sleep(seconds * SECOND).await;
    }

    async fn until(&self, what: &str, within: u32, condition: impl Fn() -> bool) {
        let end = self.now() + within * SECOND;
        while !condition() {
            assert!(self.now() < end, "not within {within} s: {what}");
            self.stage.clock.sleep(SECOND / 10).await;
        }
    }

    /// By whom a controller has written since then.
    fn stamps(&self, controller: &str, since: Instant) -> Vec<&'static str> {
        let stamps = self.stamps.lock().expect("lock");
        let of = stamps
            .iter()
            .filter(|(at, name, _)| *at > since && *name == controller);
        of.map(|(_, _, by)| *by).collect()
    }

    /// It writes, by this replica and no other.
    #[track_caller]
    fn assert_stamped(&self, controller: &str, since: Instant, by: &str) {
        let stamps = self.stamps(controller, since);
        let seconds = (self.now() - since).as_secs() as usize;
        assert!(
            stamps.len() + 2 >= seconds,
            "{controller}: {stamps:?} in {seconds} s"
        );
        assert!(
            stamps.iter().all(|one| *one == by),
            "{controller}: {stamps:?}"
        );
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.stage.client.clone(), "default")
    }

    async fn holder(&self, controller: &str) -> String {
        let lease = self
            .leases()
            .get(&lease_of(controller))
            .await
            .expect("there");
        lease
            .spec
            .and_then(|spec| spec.holder_identity)
            .expect("told")
    }

    /// What was asked so far, with replicas in place of their identities.
    fn requests(&self) -> Vec<Request> {
        let identities = self.identities.lock().expect("lock");
        let mut requests = requests_of(&self.stage.sim);
        for request in &mut requests {
            let answer = request.answer.as_mut();
            let holder = answer.and_then(|answer| answer.pointer_mut("/spec/holderIdentity"));
            if let Some(holder) = holder
                && let Some(by) = holder.as_str().and_then(|name| identities.get(name))
            {
                *holder = json!(by);
            }
        }
        requests
    }

    /// Nothing was written in the name of this controller by who did not hold its lease.
    #[track_caller]
    fn assert_nobody_trespassed(&self, controller: &str) {
        let requests = self.requests();
        let of = |request: &&Request| is_of(request, controller);
        assert!(requests.iter().filter(of).count() > 10);
        let is_under = |request: &Request| is_of(request, controller);
        let found = trespasses_among(&requests, "default", &lease_of(controller), is_under);
        assert!(found.is_empty(), "{found:#?}");
    }

    /// How often a controller told something, as the server knows it.
    async fn told(&self, controller: &str) -> u64 {
        let events = Api::<Event>::namespaced(self.stage.client.clone(), "default");
        let events = events
            .list(&Default::default())
            .await
            .expect("listed")
            .items;
        let of = events.iter().filter(|event| {
            event.reporting_controller.as_deref() == Some(controller)
                && event.reason.as_deref() == Some("Stamped")
        });
        of.map(|event| {
            event
                .series
                .as_ref()
                .map_or(1, |series| series.count as u64)
        })
        .sum()
    }
}

fn is_of(request: &Request, controller: &str) -> bool {
    let teller = request
        .answer
        .as_ref()
        .and_then(|a| a.get("reportingController"));
    request.name == log_of(controller) || teller.is_some_and(|teller| teller == controller)
}

#[test]
fn g10_each_controller_is_led_lost_and_followed_alone() {
    for seed in 0..5 {
        Stage::play(seed, async |stage| {
            let fleet = Fleet::new(stage).await;
            let first = fleet.replica("replica-1").await;
            let both = || first.leads("alpha") && first.leads("beta");
            fleet.until("the first leads both", 10, both).await;
            assert_eq!(first.running.observer().lease(), None, "none is for all");
            let second = fleet.replica("replica-2").await;
            fleet.sleep(20).await;
            assert!(!second.leads("alpha") && !second.leads("beta"));
            assert!(second.running.observer().ready().0, "a standby is ready");

            // it can renew the one, and not the other
            let lease = Matcher::any().user("replica-1").name(lease_of("beta"));
            let held = fleet.stage.sim.faults().hang(lease);
            fleet.until("it is lost", 12, || !first.leads("beta")).await;
            let lost = fleet.now();
            fleet.sleep(2).await;
            assert_eq!(fleet.stamps("beta", lost), [""; 0]);
            assert_eq!(first.shut("beta"), Some(Shut::Standby));
            assert_eq!(first.shut("alpha"), None);
            fleet
                .until("it is followed", 10, || second.leads("beta"))
                .await;
            let followed = fleet.now();
            held.release();
            fleet.sleep(20).await;
            fleet.assert_stamped("alpha", lost, "replica-1");
            assert!(first.leads("alpha") && !first.leads("beta"));
            fleet.assert_stamped("alpha", followed, "replica-1");
            fleet.assert_stamped("beta", followed + SECOND, "replica-2");
            assert_eq!(first.lease("alpha").term, 1);
            fleet.assert_nobody_trespassed("alpha");

            let theft =
                json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 30 } });
            let (params, theft) = (PatchParams::default(), Patch::Merge(theft));
            let stolen = fleet
                .leases()
                .patch(&lease_of("alpha"), &params, &theft)
                .await;
            stolen.expect("stolen");
            fleet
                .until("the theft is seen", 3, || !first.leads("alpha"))
                .await;
            let stolen = fleet.now();
            let deleted = fleet
                .leases()
                .delete(&lease_of("beta"), &DeleteParams::default())
                .await;
            deleted.expect("deleted");
            fleet.sleep(20).await;
            assert_eq!(fleet.stamps("alpha", stolen), [""; 0]);
            fleet.assert_stamped("beta", stolen, "replica-2");
            assert_eq!(second.lease("beta").term, 1, "it is made anew");
            fleet
                .until("the thief is followed", 20, || first.leads("alpha"))
                .await;
            fleet.assert_nobody_trespassed("beta");
            end(first.running).await;
            end(second.running).await;
        });
    }
}

#[test]
fn g10_a_controller_that_stands_by_silences_no_other_and_no_event_of_a_leader_is_lost() {
    Stage::play(3, async |stage| {
        let fleet = Fleet::new(stage).await;
        let only = fleet.replica("replica-1").await;
        fleet.sleep(60).await;
        let lease = Matcher::any().resource("leases").name(lease_of("beta"));
        let held = fleet.stage.sim.faults().hang(lease);
        fleet.sleep(60).await;
        let lost = only.metric(r#"event_recorder_dropped_total{reason="standby"}"#);
        assert!(lost > 0, "what beta counted and nobody had written");
        held.release();
        fleet.sleep(60).await;
        assert!(only.leads("beta"));
        end(only.running).await;
        let ran = |controller| {
            let stamps = fleet.stamps.lock().expect("lock");
            stamps
                .iter()
                .filter(|(_, name, _)| *name == controller)
                .count() as u64
        };
        assert_eq!(fleet.told("alpha").await, ran("alpha"));
        assert_eq!(fleet.told("beta").await, ran("beta") - lost);
        fleet.assert_nobody_trespassed("alpha");
        fleet.assert_nobody_trespassed("beta");
    });
}

#[test]
fn g10_each_lease_is_given_back_when_the_last_run_of_its_controller_has_ended() {
    for seed in 0..5 {
        Stage::play(seed, async |stage| {
            let fleet = Fleet::new(stage).await;
            let slow = Stamper {
                pause: 10 * SECOND,
                ..fleet.stamper("alpha", "replica-1")
            };
            let first = fleet
                .replica_of([slow, fleet.stamper("beta", "replica-1")])
                .await;
            let both = || first.leads("alpha") && first.leads("beta");
            fleet.until("the first leads both", 10, both).await;
            fleet.sleep(30).await;
            // in the middle of a run
            let runs = || fleet.stamps("alpha", fleet.now() - SECOND).len();
            fleet.until("it has just begun", 20, || runs() > 0).await;
            let second = fleet.replica("replica-2").await;
            fleet.sleep(3).await;
            let stopped = fleet.now();
            end(first.running).await;
            assert!(fleet.now() - stopped > SECOND, "it was running");
            let both = || second.leads("alpha") && second.leads("beta");
            fleet.until("both are followed at once", 6, both).await;
            fleet.sleep(20).await;
            fleet.assert_nobody_trespassed("alpha");
            fleet.assert_nobody_trespassed("beta");

            let requests = fleet.requests();
            let place = |of: &dyn Fn(&Request) -> bool| {
                let last = requests.iter().rposition(|r| r.changed && of(r));
                last.expect("there is one")
            };
            let blank = |controller: &str| {
                place(&|r| {
                    let holder = r
                        .answer
                        .as_ref()
                        .and_then(|a| a.pointer("/spec/holderIdentity"));
                    r.name == lease_of(controller) && holder == Some(&json!(""))
                })
            };
            let work = place(&|r| is_of(r, "alpha") && r.user == "replica-1");
            assert!(
                blank("alpha") > work,
                "after its last write, and its last Event"
            );
            assert!(blank("beta") < work, "the other waits for nobody");
            end(second.running).await;
            assert_eq!(fleet.holder("alpha").await, "");
            assert_eq!(fleet.holder("beta").await, "");
        });
    }
}

#[test]
fn g10_who_comes_at_run_time_campaigns_and_who_goes_gives_its_lease_back() {
    Stage::play(4, async |stage| {
        let fleet = Fleet::new(stage).await;
        let first = fleet.replica("replica-1").await;
        let both = || first.leads("alpha") && first.leads("beta");
        fleet.until("the first leads both", 10, both).await;
        let second = fleet.replica("replica-2").await;
        fleet.sleep(20).await;
        let controllers = first.running.controllers();
        let notes = first.metric("event_recorder_notes_total");
        let of_beta = format!("name=\"{}\"", lease_of("beta"));
        assert!(first.running.observer().metrics().contains(&of_beta));

        controllers.remove("beta").await.expect("removed");
        assert_eq!(fleet.holder("beta").await, "", "given back");
        assert!(!first.running.observer().metrics().contains(&of_beta));
        assert_eq!(first.running.observer().leases().len(), 1);
        assert!(first.metric("event_recorder_notes_total") >= notes);
        fleet
            .until("it is followed", 6, || second.leads("beta"))
            .await;

        let again = fleet.stamper("beta", "replica-1").controller();
        controllers.add(again).await.expect("added");
        fleet.know(&first, "replica-1");
        fleet.sleep(20).await;
        assert_eq!(first.shut("beta"), Some(Shut::Standby));
        assert!(first.leads("alpha"));
        let refused = controllers.add(fleet.stamper("No Lease", "replica-1").controller());
        let refused = refused.await.expect_err("its lease has no name");
        assert!(matches!(refused, StartError::LeaseName(_)), "{refused}");
        assert_eq!(controllers.names(), ["alpha", "beta"]);

        end(second.running).await;
        fleet
            .until("it leads what it had left", 10, || first.leads("beta"))
            .await;
        let led = fleet.now();
        fleet.sleep(20).await;
        fleet.assert_stamped("beta", led + SECOND, "replica-1");
        fleet.assert_nobody_trespassed("alpha");
        fleet.assert_nobody_trespassed("beta");
        end(first.running).await;
    });
}

#[test]
fn g10_two_replicas_that_start_together_share_two_controllers() {
    for seed in 0..10 {
        Stage::play(seed, async |stage| {
            let fleet = Fleet::new(stage).await;
            let replicas = [
                fleet.replica("replica-1").await,
                fleet.replica("replica-2").await,
            ];
            fleet.sleep(20).await;
            for controller in ["alpha", "beta"] {
                let leaders = replicas.iter().filter(|replica| replica.leads(controller));
                assert_eq!(leaders.count(), 1, "of {controller}");
            }
            for replica in &replicas {
                assert_ne!(replica.leads("alpha"), replica.leads("beta"));
            }
            for replica in replicas {
                end(replica.running).await;
            }
            fleet.assert_nobody_trespassed("alpha");
            fleet.assert_nobody_trespassed("beta");
        });
    }
}
