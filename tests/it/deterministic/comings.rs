//! Controllers that come and go while the manager runs.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use boatswain::{
    Context, Controller, Controllers, Kind, Manager, Options, Outcome, Reconciler, RemoveError,
    StartError,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::Expression;

use super::{Script, Scripted, Stage, end};

/// Does nothing.
struct Idler;

impl Reconciler<Secret> for Idler {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<Secret>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }
}

fn idler(name: &str) -> boatswain::Runnable {
    Controller::<Secret>::named(name).reconciler(|_| Idler)
}

fn quick(_: &boatswain::Key) -> Script {
    Script::Work(Duration::from_millis(10))
}

fn watches(stage: &Stage, resource: &str) -> usize {
    let audit = stage.sim.audit().into_iter();
    let watches = audit.filter(|e| e.request.verb == "watch" && e.request.resource == resource);
    watches.count()
}

/// The informers that there are, by their resources.
fn informers(running: &boatswain::Running) -> Vec<String> {
    let informers = running.observer().informers().into_iter();
    informers.map(|informer| informer.resource).collect()
}

#[test]
fn a_controller_that_is_added_works_beside_the_others_and_one_that_is_removed_leaves_nothing() {
    Stage::play(101, |stage| async move {
        stage.create("map").await;
        let running = stage.start(idler("first")).await;
        let controllers = running.controllers();
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(informers(&running), ["secrets"]);

        let late = Scripted::new(&stage.clock, quick);
        let added = controllers.add(late.controller().reconciler(late.maker()));
        added.await.expect("added");
        controllers.add(idler("third")).await.expect("added");
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(late.runs("map").len(), 1);
        assert_eq!(informers(&running), ["configmaps", "secrets"]);
        assert_eq!(watches(&stage, "secrets"), 1, "it is shared");
        assert_eq!(controllers.names(), ["first", "scripted", "third"]);
        let of_late = "{controller=\"scripted\"";
        assert!(running.observer().metrics().contains(of_late));
        let (ready, page) = running.observer().ready();
        assert!(
            ready && page.contains("[+]controller/scripted ok"),
            "{page}"
        );

        controllers.remove("scripted").await.expect("removed");
        controllers.remove("first").await.expect("removed");
        stage.touch("map", "again").await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(late.runs("map").len(), 1, "nobody runs it any more");
        assert_eq!(informers(&running), ["secrets"], "the third reads them");
        assert!(!running.observer().metrics().contains(of_late));
        let tree = running.observer().snapshot();
        assert!(tree.find("root/controllers/scripted").is_none());
        assert!(tree.find("root/controllers/third").is_some());

        // one of its name can follow
        let again = controllers.add(late.controller().reconciler(late.maker()));
        again.await.expect("added");
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(late.runs("map").len(), 2);
        end(running).await;
    });
}

#[test]
fn a_removal_lets_running_reconciles_finish_and_starts_no_more() {
    Stage::play(102, |stage| async move {
        for i in 0..10 {
            stage.create(&format!("map-{i}")).await;
        }
        let running = stage.start(idler("first")).await;
        let slow = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_secs(10)));
        let controller = slow.controller().concurrency(2);
        let controllers = running.controllers();
        let added = controllers.add(controller.reconciler(slow.maker()));
        added.await.expect("added");
        stage.clock.sleep(Duration::from_secs(5)).await;
        let asked = stage.clock.now();
        controllers.remove("scripted").await.expect("removed");
        let took = stage.clock.now() - asked;
        assert!(took < Duration::from_secs(10), "{took:?}");
        {
            let seen = slow.seen();
            let runs: Vec<_> = seen.values().flatten().collect();
            assert_eq!(runs.len(), 2, "no more were started: {runs:?}");
            assert!(
                runs.iter()
                    .all(|run| run.ended.is_some_and(|end| end > asked))
            );
        }
        end(running).await;
    });
}

#[test]
fn a_removal_cancels_what_runs_beyond_the_grace_period() {
    Stage::play(103, |stage| async move {
        stage.create("map").await;
        let running = stage.start(idler("first")).await;
        let hung = Scripted::new(&stage.clock, |_| Script::Hang);
        let controllers = running.controllers();
        let added = controllers.add(hung.controller().reconciler(hung.maker()));
        added.await.expect("added");
        stage.clock.sleep(Duration::from_secs(5)).await;
        let asked = stage.clock.now();
        controllers.remove("scripted").await.expect("removed");
        let took = (stage.clock.now() - asked).as_secs();
        assert!((24..30).contains(&took), "{took} s");
        end(running).await;
    });
}

#[test]
fn what_cannot_be_added_or_removed_is_told_and_leaves_nothing() {
    Stage::play(104, |stage| async move {
        let running = stage.start(idler("first")).await;
        let controllers = running.controllers();
        let twice = controllers.add(idler("first")).await;
        assert!(matches!(twice, Err(StartError::DuplicateName(name)) if name == "first"));
        let of_two = |name: &str| {
            let exists = |key: &str| Expression::Exists(key.into());
            Controller::<ConfigMap>::named(name)
                .select(|maps| maps.labels(exists("a")))
                .watches::<ConfigMap>()
                .select(|maps| maps.labels(exists("b")))
                .owned()
        };
        let ambiguous = of_two("ambiguous").reconciler(|wiring| {
            let _ = wiring.lister::<ConfigMap>();
            Scripted::new(&boatswain::Clock::system(), quick)
        });
        let refused = controllers.add(ambiguous).await;
        assert!(matches!(refused, Err(StartError::AmbiguousRead { .. })));
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(informers(&running), ["secrets"]);
        assert_eq!(controllers.names(), ["first"]);
        let nobody = controllers.remove("nobody").await;
        assert!(matches!(nobody, Err(RemoveError::Unknown(name)) if name == "nobody"));
        end(running).await;
        let ended = controllers.add(idler("late")).await;
        assert!(matches!(ended, Err(StartError::Ended)));
        assert!(controllers.remove("first").await.is_err());
    });
}

#[test]
fn what_was_added_or_removed_stays_so_when_the_supervisor_above_dies() {
    Stage::play(105, |stage| async move {
        stage.create("map").await;
        let running = stage.start(idler("first")).await;
        let late = Scripted::new(&stage.clock, quick);
        let controllers = running.controllers();
        let added = controllers.add(late.controller().reconciler(late.maker()));
        added.await.expect("added");
        controllers.remove("first").await.expect("removed");
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert!(running.observer().kill("root/controllers"));
        stage.clock.sleep(Duration::from_secs(30)).await;
        stage.touch("map", "again").await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        let runs = late.runs("map");
        assert_eq!(
            runs.last().and_then(|run| run.value.clone()).as_deref(),
            Some("again")
        );
        let tree = running.observer().snapshot();
        assert!(tree.find("root/controllers/first").is_none());
        controllers.add(idler("third")).await.expect("added");
        controllers.remove("scripted").await.expect("removed");
        end(running).await;
    });
}

/// Adds a controller for each of its objects.
#[derive(Clone, Default)]
struct Recruiter(Arc<Mutex<Option<Controllers>>>);

impl Reconciler<ConfigMap> for Recruiter {
    type Error = StartError;

    async fn reconcile(&self, map: Arc<ConfigMap>, _: &Context) -> Result<Outcome, StartError> {
        let controllers = self.0.lock().expect("lock").clone();
        let name = map.metadata.name.clone().unwrap_or_default();
        if let Some(controllers) = controllers {
            controllers.add(idler(&name)).await?;
        }
        Ok(Outcome::Done)
    }
}

#[test]
fn a_reconciler_can_add_controllers() {
    Stage::play(106, |stage| async move {
        let recruiter = Recruiter::default();
        let own = recruiter.clone();
        let controller = Controller::<ConfigMap>::named("recruiter").resync(None);
        let running = stage.start(controller.reconciler(|_| own)).await;
        *recruiter.0.lock().expect("lock") = Some(running.controllers());
        for name in ["one", "two"] {
            stage.create(name).await;
        }
        stage.clock.sleep(Duration::from_secs(5)).await;
        let mut names = running.controllers().names();
        names.sort_unstable();
        assert_eq!(names, ["one", "recruiter", "two"]);
        end(running).await;
    });
}

#[test]
fn the_options_of_the_manager_hold_for_what_a_controller_leaves_open() {
    Stage::play(107, |stage| async move {
        let labelled = serde_json::json!({ "metadata": { "labels": { "app": "web" } } });
        for name in ["ours", "theirs"] {
            stage.create(name).await;
        }
        stage.patch("ours", labelled).await;
        let options = Options {
            selector: "app=web".parse::<boatswain::Labels>().expect("labels").0,
            resync: Some(Duration::from_secs(60)),
            ..Options::default()
        };
        let scripted = Scripted::new(&stage.clock, quick);
        let manager = Manager::new(options)
            .with(Controller::<ConfigMap>::named("open").reconciler(scripted.maker()));
        let running = stage.manage(manager).await;
        stage.clock.sleep(Duration::from_secs(600)).await;
        let runs = scripted.runs("ours").len();
        assert!((8..=12).contains(&runs), "{runs} runs in ten minutes");
        assert_eq!(scripted.runs("theirs").len(), 0);
        end(running).await;
    });
}

#[test]
fn one_controllers_missing_kind_is_told_of_it_alone_and_the_others_work() {
    Stage::play(108, |stage| async move {
        stage.create("map").await;
        let scripted = Scripted::new(&stage.clock, quick);
        let ghosts = Kind::new("example.com", "v1", "Ghost", "ghosts");
        let manager = Manager::new(Options::default())
            .with(scripted.controller().reconciler(scripted.maker()))
            .with(
                Controller::<Secret>::named("ghosts")
                    .watches_kind(ghosts)
                    .mapped_by(async |_, _| Ok::<_, Infallible>(Vec::new()))
                    .reconciler(|_| Idler),
            );
        let running = stage.manage(manager).await;
        stage.clock.sleep(Duration::from_secs(10)).await;
        assert_eq!(scripted.runs("map").len(), 1, "the other one works");
        let (ready, page) = running.observer().ready();
        assert!(!ready, "{page}");
        assert!(page.contains("[+]controller/scripted ok"), "{page}");
        let line = page
            .lines()
            .find(|line| line.contains("]controller/ghosts"));
        let line = line.expect("a line");
        assert!(
            line.starts_with("[-]") && line.contains("ghosts.example.com"),
            "{page}"
        );
        let tree = running.observer().snapshot();
        let node = tree.find("root/controllers/ghosts").expect("there");
        let caches = node.facts["caches"].to_string();
        assert!(caches.contains("ghosts.example.com"), "{caches}");
        let handle = running.observer().controller("ghosts").expect("there");
        assert!(handle.degraded().is_some_and(|why| line.ends_with(&why)));

        running
            .controllers()
            .remove("ghosts")
            .await
            .expect("removed");
        stage.clock.sleep(Duration::from_secs(1)).await;
        let (ready, page) = running.observer().ready();
        assert!(ready && !page.contains("ghosts"), "{page}");
        end(running).await;
    });
}
