//! What a controller watches and reads of a kind, and how it is kept.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain::{
    ClientError, Clock, Context, Controller, Key, Lister, Manager, Options, Outcome, Reconciler,
    Runnable, Running, Scope, SelectError, Selection, StartError, StoreOptions, Transform, Wiring,
};
use boatswain_apisim::Matcher;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt as _,
    api::{ObjectMeta, PostParams},
    core::{Expression, PartialObjectMeta},
};
use podautoscaler::api::PodAutoscaler;

use super::{Script, Scripted, Stage, end};

fn app(name: &str) -> Expression {
    Expression::Equal("example.com/app".into(), name.into())
}

fn quick(_: &Key) -> Script {
    Script::Work(Duration::from_millis(1))
}

impl Stage {
    async fn create_for(&self, app: &str, name: &str) {
        let labels = BTreeMap::from([("example.com/app".to_owned(), app.to_owned())]);
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("a".into(), "1".into())])),
            ..ConfigMap::default()
        };
        let created = self.maps().create(&PostParams::default(), &map).await;
        created.expect("created");
    }

    async fn try_start(
        &self,
        options: Options,
        controllers: impl IntoIterator<Item = Runnable>,
    ) -> Result<Running, StartError> {
        let manager = controllers
            .into_iter()
            .fold(Manager::new(options), Manager::with);
        let (clock, entropy) = (self.clock.clone(), self.options.entropy.clone());
        manager.start(self.client.clone(), clock, entropy).await
    }

    async fn start_all(&self, controllers: impl IntoIterator<Item = Runnable>) -> Running {
        let started = self.try_start(Options::default(), controllers).await;
        started.expect("started")
    }

    async fn refused(&self, controllers: impl IntoIterator<Item = Runnable>) -> StartError {
        match self.try_start(Options::default(), controllers).await {
            Ok(_) => panic!("it started"),
            Err(error) => error,
        }
    }

    async fn settle(&self) {
        self.clock.sleep(Duration::from_secs(2)).await;
    }
}

/// Does nothing but let a test read what its wiring gave it.
struct Reader;

impl Reconciler<ConfigMap> for Reader {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }
}

/// Where a test finds what a controller's wiring gave.
type Given<T> = Arc<Mutex<Option<T>>>;

/// A controller whose wiring gives `take` something for the test to look at.
fn reading<T: Send + 'static>(
    controller: Controller<ConfigMap>,
    take: impl FnOnce(&mut Wiring<'_>) -> T + Send + 'static,
) -> (Runnable, Given<T>) {
    let given = Given::default();
    let taken = given.clone();
    let runnable = controller.resync(None).reconciler(move |wiring| {
        *taken.lock().expect("lock") = Some(take(wiring));
        Reader
    });
    (runnable, given)
}

fn given<T>(given: &Given<T>) -> T {
    let given = given.lock().expect("lock").take();
    given.expect("the wiring was asked")
}

fn named(name: &str) -> Controller<ConfigMap> {
    Controller::named(name)
}

fn names(maps: &Lister<ConfigMap>) -> Vec<String> {
    let maps = maps.list().expect("synced");
    maps.iter().map(|map| map.name_any()).collect()
}

#[test]
fn a_controller_runs_and_reads_only_what_it_selects_and_who_leaves_is_gone() {
    Stage::play(1, |stage| async move {
        stage.create_for("crane", "ours").await;
        stage.create_for("winch", "theirs").await;
        let scripted = Scripted::new(&stage.clock, quick);
        let controller = scripted
            .controller()
            .select(|maps| maps.labels(app("crane")));
        let (maker, maps) = (scripted.maker(), Given::default());
        let taken = maps.clone();
        let runnable = controller.reconciler(move |wiring| {
            *taken.lock().expect("lock") = Some(wiring.lister::<ConfigMap>());
            maker(wiring)
        });
        let running = stage.start(runnable).await;
        stage.settle().await;
        let maps = given(&maps);
        assert_eq!(names(&maps), ["ours"]);
        assert_eq!(scripted.runs("ours").len(), 1);
        assert!(scripted.runs("theirs").is_empty());
        stage.touch("theirs", "changed").await;
        stage.create_for("crane", "new").await;
        let left = serde_json::json!({ "metadata": { "labels": { "example.com/app": "winch" } } });
        stage.patch("ours", left).await;
        stage.settle().await;
        assert_eq!(names(&maps), ["new"]);
        assert!(scripted.runs("theirs").is_empty());
        assert_eq!(scripted.runs("ours").len(), 1, "it is gone, not reconciled");
        end(running).await;
    });
}

#[test]
fn two_controllers_that_select_differently_of_one_kind_each_read_their_own() {
    Stage::play(2, |stage| async move {
        stage.create_for("crane", "a").await;
        stage.create_for("winch", "b").await;
        let own = |name: &str| {
            let select = named(name).select({
                let name = name.to_owned();
                move |maps| maps.labels(app(&name))
            });
            reading(select, |wiring| wiring.lister::<ConfigMap>())
        };
        let (crane, of_crane) = own("crane");
        let (winch, of_winch) = own("winch");
        let (all, of_all) = reading(named("all"), |wiring| {
            let crane = wiring.select::<ConfigMap>(|maps| maps.labels(app("crane")));
            (wiring.lister::<ConfigMap>(), crane)
        });
        let running = stage.start_all([crane, winch, all]).await;
        stage.settle().await;
        let (all, explicit) = given(&of_all);
        assert_eq!(names(&given(&of_crane)), ["a"]);
        assert_eq!(names(&given(&of_winch)), ["b"]);
        assert_eq!(names(&all), ["a", "b"]);
        assert_eq!(names(&explicit), ["a"]);

        let observer = running.observer().clone();
        assert_eq!(observer.informers().len(), 3, "one per selection");
        let (ready, page) = observer.ready();
        assert!(ready, "{page}");
        for name in [
            "",
            ";labels:example.com%2Fapp=crane",
            ";labels:example.com%2Fapp=winch",
        ] {
            assert!(
                page.contains(&format!("[+]informer/configmaps{name} ok\n")),
                "{page}"
            );
        }
        let of_selectors = |page: &str| {
            let series = page
                .lines()
                .filter(|line| line.starts_with("cache_objects{"));
            series.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let series = of_selectors(&observer.metrics());
        assert_eq!(series.len(), 3, "{series:?}");
        assert!(
            series[1].contains("selector=\"labels:example.com/app=crane\"")
                && series[1].ends_with(" 1"),
            "{series:?}"
        );
        drop((all, explicit));
        end(running).await;
        assert_eq!(of_selectors(&observer.metrics()), Vec::<String>::new());
        assert!(observer.informers().is_empty());
    });
}

#[test]
fn who_watches_two_selections_of_a_kind_has_to_say_which_one_it_reads() {
    Stage::play(3, |stage| async move {
        let twice = || {
            named("twice")
                .watches::<Secret>()
                .select(|secrets| secrets.labels(app("crane")))
                .owned()
                .watches::<Secret>()
                .select(|secrets| secrets.labels(app("winch")))
                .owned()
        };
        let (runnable, _) = reading(twice(), |wiring| wiring.lister::<Secret>());
        let error = stage.refused([runnable]).await;
        assert_eq!(
            error.to_string(),
            "controller twice reads secrets and watches several selections of them (secrets in all namespaces with labels example.com/app=crane; \
             secrets in all namespaces with labels example.com/app=winch): say which by Wiring::select instead of Wiring::lister"
        );
        let (runnable, _) = reading(twice(), |wiring| {
            wiring.select::<Secret>(|secrets| secrets.labels(app("winch")))
        });
        let running = stage.start_all([runnable]).await;
        let informers = running.observer().informers();
        assert_eq!(informers.len(), 3, "{informers:?}");
        end(running).await;
    });
}

#[test]
fn what_no_server_can_select_by_is_told_when_the_manager_starts() {
    Stage::play(4, |stage| async move {
        let wrong = || Expression::Exists("not a key".into());
        let own = named("own").select(move |maps| maps.labels(wrong()));
        let watched = named("watched")
            .watches::<Secret>()
            .select(move |secrets| secrets.labels(wrong()))
            .owned();
        for controller in [own, watched] {
            let error = stage.refused([reading(controller, |_| ()).0]).await;
            let text = error.to_string();
            assert!(text.contains("\"not a key\" is no label key"), "{text}");
        }
        let read = reading(named("reads"), move |wiring| {
            wiring.select::<Secret>(|secrets| Ok(secrets.metadata_only()))
        });
        let error = stage.refused([read.0]).await;
        let StartError::Selection {
            controller, cause, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(controller, "reads");
        assert!(matches!(cause, SelectError::Replaced { .. }), "{error}");
    });
}

#[test]
fn metadata_is_watched_and_read_by_its_type_without_what_it_is_of() {
    Stage::play(5, |stage| async move {
        let secrets = Api::<Secret>::namespaced(stage.client.clone(), "default");
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some("key".into()),
                annotations: Some(BTreeMap::from([("for".into(), "map".into())])),
                ..ObjectMeta::default()
            },
            string_data: Some(BTreeMap::from([("word".into(), "open sesame".into())])),
            ..Secret::default()
        };
        stage.create("map").await;
        let scripted = Scripted::new(&stage.clock, quick);
        let controller = scripted
            .controller()
            .watches::<PartialObjectMeta<Secret>>()
            .mapped_by(
                |secret: Arc<PartialObjectMeta<Secret>>, _: Lister<ConfigMap>| async move {
                    let names = secret.annotations().get("for").cloned();
                    let keys = names.map(|name| Key::new(Some("default"), &name));
                    Ok::<_, Infallible>(keys.into_iter().collect())
                },
            );
        let (maker, metas) = (scripted.maker(), Given::default());
        let taken = metas.clone();
        let runnable = controller.reconciler(move |wiring| {
            *taken.lock().expect("lock") = Some(wiring.lister::<PartialObjectMeta<Secret>>());
            maker(wiring)
        });
        let running = stage.start(runnable).await;
        stage.settle().await;
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .expect("created");
        stage.settle().await;
        assert_eq!(scripted.runs("map").len(), 2, "once for the secret");
        let metas = given(&metas);
        let object = metas.get_object(&Key::new(Some("default"), "key"));
        let object = object.expect("synced").expect("there");
        let json = String::from_utf8(object.json().to_vec()).expect("text");
        assert!(
            json.contains("\"for\"") && !json.contains("\"data\""),
            "{json}"
        );
        let informers = running.observer().informers();
        let of_secrets: Vec<_> = informers
            .iter()
            .filter(|informer| informer.resource == "secrets")
            .map(|informer| informer.selector.as_str())
            .collect();
        assert_eq!(of_secrets, ["metadata"], "one, and not of whole secrets");
        drop(metas);
        end(running).await;
    });
}

#[test]
fn a_controller_may_reconcile_metadata_alone() {
    struct Namer(Arc<Mutex<Vec<String>>>);
    impl Reconciler<PartialObjectMeta<ConfigMap>> for Namer {
        type Error = Infallible;

        async fn reconcile(
            &self,
            map: Arc<PartialObjectMeta<ConfigMap>>,
            _: &Context,
        ) -> Result<Outcome, Infallible> {
            self.0.lock().expect("lock").push(map.name_any());
            Ok(Outcome::Done)
        }
    }
    Stage::play(6, |stage| async move {
        stage.create_for("crane", "map").await;
        let named = Arc::new(Mutex::new(Vec::new()));
        let seen = named.clone();
        let controller = Controller::<PartialObjectMeta<ConfigMap>>::named("namer")
            .resync(None)
            .reconciler(move |_| Namer(seen));
        let running = stage.start(controller).await;
        stage.settle().await;
        assert_eq!(*named.lock().expect("lock"), ["map"]);
        end(running).await;
    });
}

fn without_data() -> StoreOptions {
    StoreOptions {
        transform: Transform::default().without("data"),
        ..StoreOptions::default()
    }
}

#[test]
fn what_is_kept_is_shaped_and_whoever_did_not_ask_for_that_is_told_whatever_the_order() {
    Stage::play(7, |stage| async move {
        stage.create_for("crane", "map").await;
        let shaped = |name: &str| {
            reading(named(name).keep(without_data()), |wiring| {
                wiring.lister::<ConfigMap>()
            })
        };
        let plain = || reading(named("plain"), |_| ()).0;
        let (one, maps) = shaped("one");
        let (two, _) = shaped("two");
        let running = stage.start_all([one, two]).await;
        stage.settle().await;
        let maps = given(&maps);
        let map = maps.get(&Key::new(Some("default"), "map"));
        let map = map.expect("synced").expect("there");
        assert_eq!((map.data.as_ref(), map.labels().len()), (None, 1));
        assert_eq!(running.observer().informers().len(), 1, "they share it");
        drop(maps);
        end(running).await;

        for controllers in [[plain(), shaped("one").0], [shaped("one").0, plain()]] {
            let error = stage.refused(controllers).await;
            assert_eq!(
                error.to_string(),
                "controllers one and plain use the same configmaps in all namespaces, but not kept in the same way: give both the same store options, \
                 or select something else in one of them"
            );
        }
        let options = StoreOptions {
            memo: 0,
            ..StoreOptions::default()
        };
        let other = reading(named("other").keep(options.clone()), |_| ()).0;
        let error = stage.refused([shaped("one").0, other]).await;
        assert!(matches!(error, StartError::KeptInTwoWays { .. }), "{error}");

        // what nobody sees needs no consent, and what is selected differently is another store
        let frugal = reading(named("frugal").keep(options), |_| ()).0;
        let crane = named("crane")
            .select(|maps| maps.labels(app("crane")))
            .keep(without_data());
        let running = stage
            .start_all([frugal, plain(), reading(crane, |_| ()).0])
            .await;
        assert_eq!(running.observer().informers().len(), 2);
        end(running).await;
    });
}

#[test]
fn a_namespace_that_is_selected_holds_whatever_namespaces_the_manager_has() {
    Stage::play(8, |stage| async move {
        let options = Options {
            namespaces: vec!["default".into(), "shop".into()],
            ..Options::default()
        };
        let controller = named("c")
            .watches::<Secret>()
            .select(|secrets| Ok(secrets.within(Scope::Namespace("vault".into()))))
            .owned();
        let started = stage.try_start(options, [reading(controller, |_| ()).0]);
        let running = started.await.expect("started");
        let informers = running.observer().informers();
        let scopes: Vec<_> = informers
            .iter()
            .map(|informer| (informer.resource.as_str(), informer.scope.as_str()))
            .collect();
        assert_eq!(
            scopes,
            [
                ("configmaps", "default"),
                ("configmaps", "shop"),
                ("secrets", "vault")
            ]
        );
        end(running).await;
    });
}

#[test]
fn a_namespace_that_comes_while_the_manager_runs_is_reconciled_shown_and_measured_until_it_goes() {
    Stage::play(11, |stage| async move {
        let shop = Api::<ConfigMap>::namespaced(stage.client.clone(), "shop");
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some("map".into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        stage
            .sim
            .create(serde_json::json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" },
            }))
            .expect("created");
        shop.create(&PostParams::default(), &map)
            .await
            .expect("created");
        let scripted = Scripted::new(&stage.clock, quick);
        let (maker, wired) = (scripted.maker(), Given::default());
        let given_by = wired.clone();
        let runnable = scripted.controller().reconciler(move |wiring| {
            let both = (wiring.informers(), wiring.lister::<ConfigMap>());
            *given_by.lock().expect("lock") = Some(both);
            maker(wiring)
        });
        let options = Options {
            namespaces: vec!["default".into()],
            ..Options::default()
        };
        let running = stage.start_with(options, runnable).await;
        stage.create("map").await;
        stage.settle().await;
        let key = Key::new(Some("shop"), "map");
        let runs = || scripted.seen().get(&key).map_or(0, Vec::len);
        let shown = || {
            let (observer, series) = (running.observer(), "scope=\"shop\"");
            let measured = observer.metrics().lines().any(|l| {
                l.starts_with("cache_objects{") && l.contains(series) && l.ends_with(" 1")
            });
            (
                observer
                    .ready()
                    .1
                    .contains("[+]informer/configmaps.shop ok"),
                measured,
            )
        };
        assert_eq!((runs(), shown()), (0, (false, false)));

        let (informers, maps) = given(&wired);
        let scope = Scope::Namespace("shop".into());
        let selection = Selection::of::<ConfigMap>().within(scope.clone());
        let added = maps.view().add(informers.informer(selection));
        assert_eq!(added, Ok(true));
        stage.settle().await;
        assert_eq!((runs(), shown()), (1, (true, true)));
        assert_eq!(maps.list().expect("synced").len(), 2);

        assert!(maps.view().remove(&scope));
        stage.settle().await;
        assert_eq!((runs(), shown()), (1, (false, false)));
        assert_eq!(scripted.runs("map").len(), 1, "nothing happened to it");
        drop((informers, maps));
        end(running).await;
    });
}

/// Of the key `map` alone: writes a map of an app a while after it first began, and wants to run again at once.
struct Writer {
    app: &'static str,
    began: Arc<Mutex<Vec<Duration>>>,
    clock: Clock,
    start: Instant,
}

impl Reconciler<ConfigMap> for Writer {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let runs = {
            let mut began = self.began.lock().expect("lock");
            if cx.key().name() != "map" {
                return Ok(Outcome::Done);
            }
            began.push(self.clock.now() - self.start);
            began.len()
        };
        if runs > 1 {
            return Ok(Outcome::Done);
        }
        self.clock.sleep(Duration::from_millis(100)).await;
        let written = ConfigMap {
            metadata: ObjectMeta {
                name: Some("written".into()),
                namespace: map.namespace(),
                labels: Some(BTreeMap::from([(
                    "example.com/app".into(),
                    self.app.into(),
                )])),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        cx.create(&written).await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
    }
}

#[test]
fn g6_a_write_is_waited_for_where_it_will_be_selected_and_holds_up_nobody_where_it_will_not() {
    for (app_written, waits) in [("crane", true), ("winch", false)] {
        Stage::play(9, |stage| async move {
            let began = Arc::new(Mutex::new(Vec::new()));
            let writer = Writer {
                app: app_written,
                began: began.clone(),
                clock: stage.clock.clone(),
                start: stage.clock.now(),
            };
            let controller = named("writer")
                .resync(None)
                .select(|maps| maps.labels(app("crane")))
                .reconciler(move |_| writer);
            let running = stage.start(controller).await;
            stage.settle().await;
            stage.create_for("crane", "map").await;
            // its run has begun and will write
            stage.clock.sleep(Duration::from_millis(10)).await;
            let held = stage.sim.faults().stall_watches(Matcher::any());
            stage.settle().await;
            let runs = began.lock().expect("lock").clone();
            assert_eq!(runs.len(), if waits { 1 } else { 2 }, "{runs:?}");
            held.release();
            stage.settle().await;
            assert_eq!(began.lock().expect("lock").len(), 2);
            end(running).await;
        });
    }
}

/// What live reads answered: of an object that is not there, and of a kind the server does not have.
type Answers = (Result<bool, String>, Result<bool, String>);

struct LiveReader(Given<Answers>);

impl Reconciler<ConfigMap> for LiveReader {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        let missing = Key::new(Some("default"), "missing");
        let object = cx.get_live::<ConfigMap>(&missing).await;
        let kind = cx.get_live::<PodAutoscaler>(&missing).await;
        *self.0.lock().expect("lock") = Some((
            object.map(|o| o.is_some()).map_err(|e| e.to_string()),
            kind.map(|o| o.is_some()).map_err(|error| {
                assert!(error.is_not_found());
                error.to_string()
            }),
        ));
        Ok(Outcome::Done)
    }
}

#[test]
fn a_live_read_tells_an_object_that_is_missing_from_a_kind_that_is() {
    Stage::play(10, |stage| async move {
        stage.create("map").await;
        let answers = Given::default();
        let reader = LiveReader(answers.clone());
        let controller = named("reader").reconciler(move |_| reader);
        let running = stage.start(controller).await;
        stage.settle().await;
        let (object, kind) = given(&answers);
        assert_eq!(object, Ok(false));
        let error = kind.expect_err("no such kind");
        assert!(
            error.starts_with("cannot get podautoscalers.") && error.contains("404"),
            "{error}"
        );
        end(running).await;
    });
}
