//! The dashboard of a manager on the simulated server, read as programs read it.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use boatswain::{Controller, DashboardOptions, Handle, Manager, Options, Outcome};
use boatswain_supervision::NodeState;
use boatswain_tests::{Space, World, eventually, request};
use hyper::{Method, StatusCode};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Resource,
    api::{Api, DeleteParams, PostParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

const TOKEN: &str = "correct-horse-battery-staple";

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

/// A manager whose only controller gives every key up until it is told not to.
struct Scene {
    manager: Handle,
    address: SocketAddr,
    is_well: watch::Sender<bool>,
    space: Space,
    world: World,
    _dir: TempDir,
}

impl Scene {
    async fn set() -> Self {
        let world = World::sim().await;
        let space = Space::create(&world.client().await, "harbour").await;
        let dir = tempfile::tempdir().expect("a folder");
        let token = dir.path().join("token");
        std::fs::write(&token, TOKEN).expect("written");
        let (is_well, well) = watch::channel(false);
        let quay = Controller::<ConfigMap>::named("quay").reconcile_with(
            Arc::new(well),
            |_, well| async move {
                Ok::<_, Never>(match *well.borrow() {
                    true => Outcome::Done,
                    false => Outcome::GiveUp("no such berth".into()),
                })
            },
        );
        let options = Options {
            kubeconfig: Some(world.kubeconfig().to_owned()),
            dashboard: Some(DashboardOptions {
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                required: true,
                hosts: Vec::new(),
                token_file: Some(token),
            }),
            ..Options::default()
        };
        let manager = Manager::new(options).with(quay).spawn().expect("it starts");
        let address = manager.observer().dashboard().expect("a dashboard");
        Self {
            manager,
            address,
            is_well,
            space,
            world,
            _dir: dir,
        }
    }

    async fn get(&self, path: &str) -> Value {
        let path = format!("/api/v1/{path}");
        let (code, text) = request(self.address, Method::GET, &path, &[], String::new()).await;
        assert_eq!(code, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// What is answered of a key, whether there is one or not.
    async fn ask(&self, path: &str) -> (StatusCode, Value) {
        let path = format!("/api/v1/{path}");
        let (code, text) = request(self.address, Method::GET, &path, &[], String::new()).await;
        (code, serde_json::from_str(&text).expect("JSON"))
    }

    /// What is known of a key in the end, when that is what is wanted; before the controller hears of it there is none.
    async fn told(&self, key: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("keys/quay/{}/{key}", self.space.name);
        eventually("the key is so", async || {
            let (code, told) = self.ask(&path).await;
            let is_so = code == StatusCode::OK && wanted(&told);
            if is_so { Ok(told) } else { Err(told) }
        })
        .await
    }

    /// Waits until there is something to see.
    async fn begun(self) -> Self {
        eventually("the manager has started", async || {
            let health = "/api/v1/health";
            let (code, text) = request(self.address, Method::GET, health, &[], String::new()).await;
            (code == StatusCode::OK).then_some(()).ok_or(text)
        })
        .await;
        self
    }

    async fn act(&self, action: &str, body: Value) -> (StatusCode, String) {
        let path = format!("/api/v1/actions/{action}");
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("authorization", bearer.as_str())];
        request(
            self.address,
            Method::POST,
            &path,
            &headers,
            body.to_string(),
        )
        .await
    }

    async fn stop(self) {
        let manager = self.manager;
        let stopped = tokio::task::spawn_blocking(move || manager.stop()).await;
        stopped.expect("no panic").expect("in order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_finds_a_parked_key_says_why_and_unparks_it() {
    let scene = Scene::set().await.begun().await;
    scene.space.put("berth", "1").await;
    let key = format!("{}/berth", scene.space.name);
    let parked = eventually("the key is parked", async || {
        let parked = scene.get("parked?q=berth").await;
        (parked["total"] == 1)
            .then_some(parked.clone())
            .ok_or(parked)
    })
    .await;
    assert_eq!(parked["parked"][0]["key"], key);
    assert_eq!(parked["parked"][0]["reason"], "gave up: no such berth");
    let found = scene.get("keys?state=parked&controller=quay&q=BERTH").await;
    assert_eq!(found["keys"][0]["key"], key, "case is nothing");
    eventually("the first line says so", async || {
        let health = scene.get("health").await;
        let line = health["line"].as_str().unwrap_or_default().to_owned();
        line.contains("gave up").then_some(()).ok_or(line)
    })
    .await;
    let told = scene.get(&format!("keys/quay/{key}")).await;
    assert_eq!(told["state"], "parked");
    assert_eq!(told["runs"][0]["result"], "give_up");
    scene.is_well.send_replace(true);
    let (code, told) = scene
        .act("unpark", json!({ "controller": "quay", "q": "berth" }))
        .await;
    assert_eq!(code, StatusCode::OK, "{told}");
    eventually("it succeeds", async || {
        let told = scene.get(&format!("keys/quay/{key}")).await;
        let result = told["runs"][0]["result"].clone();
        (result == "success").then_some(()).ok_or(told)
    })
    .await;
    let (code, told) = scene
        .act("unpark", json!({ "controller": "quay", "key": key }))
        .await;
    assert_eq!(code, StatusCode::CONFLICT, "it is not parked: {told}");
    let (code, _) = scene.act("pause", json!({ "controller": "pier" })).await;
    assert_eq!(code, StatusCode::NOT_FOUND);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_is_restarted_by_its_path_and_one_whose_siblings_depend_on_it_with_them() {
    let scene = Scene::set().await.begun().await;
    let observer = scene.manager.observer().clone();
    let informer = "root/informers/configmaps.v1,*";
    let lives = |path: &str| {
        let tree = observer.snapshot();
        let node = tree.find(path);
        node.map(|node| (node.state, node.incarnation))
    };
    let restarted = async |path: &str, asked: &str| {
        let before = lives(path).expect("it is there").1;
        let (code, told) = scene.act("restart", json!({ "path": asked })).await;
        assert_eq!(code, StatusCode::OK, "{told}");
        eventually("it runs again", async || match lives(path) {
            Some((NodeState::Running, now)) if now != before => Ok(()),
            other => Err(other),
        })
        .await;
    };
    restarted("root/events", "root/events").await;
    restarted("root/dashboard", "root/dashboard").await;
    restarted(informer, &format!("{informer}/indexer")).await;
    for child in ["fifo", "indexer", "reflector"] {
        eventually("the group is back", async || {
            match lives(&format!("{informer}/{child}")) {
                Some((NodeState::Running, _)) => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
    let (code, told) = scene.act("restart", json!({ "path": "root" })).await;
    assert_eq!(code, StatusCode::CONFLICT, "{told}");
    let (code, told) = scene
        .act("restart", json!({ "path": "root/nothing" }))
        .await;
    assert_eq!(code, StatusCode::NOT_FOUND, "{told}");
    // and it works all the same
    scene.is_well.send_replace(true);
    scene.space.put("after", "1").await;
    eventually("a key runs", async || {
        let path = format!("keys/quay/{}/after", scene.space.name);
        let (_, told) = scene.ask(&path).await;
        (told["result"] == "success").then_some(()).ok_or(told)
    })
    .await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_taken_is_an_error_of_the_start_that_names_the_flag() {
    let scene = Scene::set().await.begun().await;
    let options = Options {
        kubeconfig: Some(scene.world.kubeconfig().to_owned()),
        dashboard: Some(DashboardOptions {
            listen: scene.address,
            ..DashboardOptions::default()
        }),
        grace: Duration::from_secs(1),
        ..Options::default()
    };
    let twin = Controller::<ConfigMap>::named("twin")
        .reconcile_with(Arc::new(()), |_, _| async { Ok::<_, Never>(Outcome::Done) });
    let refused = tokio::task::spawn_blocking(|| Manager::new(options).with(twin).spawn().err());
    let refused = refused
        .await
        .expect("no panic")
        .expect("the address is taken");
    let refused = refused.to_string();
    assert!(refused.contains("--dashboard-listen"), "{refused}");
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_out_is_listed_and_people_run_unpark_pause_and_resume() {
    let scene = Scene::set().await.begun().await;
    for name in ["berth", "crane", "mole"] {
        scene.space.put(name, "1").await;
        scene.told(name, |told| told["state"] == "parked").await;
    }
    let slowest = scene.get("keys?top=slowest&limit=2").await;
    assert_eq!(slowest["keys"].as_array().map(Vec::len), Some(2));
    assert!(slowest["keys"][0]["took_ms"].is_number(), "{slowest}");

    // a pause collects, and says whose wish it is
    let handle = scene.manager.observer().controller("quay");
    let handle = handle.expect("it is there");
    let quay = || json!({ "controller": "quay" });
    let pause = json!({ "controller": "quay", "reason": "a storm" });
    let (code, told) = scene.act("pause", pause).await;
    assert!(
        code == StatusCode::OK && told.contains("quay is paused\""),
        "{told}"
    );
    scene.is_well.send_replace(true);
    let berth = format!("{}/berth", scene.space.name);
    let requeue = json!({ "controller": "quay", "key": berth });
    let (code, told) = scene.act("requeue", requeue).await;
    assert_eq!(code, StatusCode::OK, "{told}");
    assert!(
        told.contains("no run begins") && told.contains("a storm"),
        "{told}"
    );
    let ready = scene.told("berth", |told| told["state"] == "queued").await;
    assert!(
        ready["shut"]
            .as_str()
            .is_some_and(|why| why.contains("a storm")),
        "{ready}"
    );
    // who comes second learns who was first; it began once
    let paused = || handle.paused().expect("it is paused");
    let first = paused();
    let again = json!({ "controller": "quay", "reason": "an icy storm" });
    let (code, told) = scene.act("pause", again).await;
    assert_eq!(code, StatusCode::OK, "{told}");
    let since = format!("is paused already, since {:.0} by", first.since);
    for words in [
        since.as_str(),
        "dashboard: a storm",
        "dashboard: an icy storm",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(paused().since, first.since);
    assert!(paused().by.contains("an icy storm"), "{:?}", paused());
    assert_eq!(scene.act("resume", quay()).await.0, StatusCode::OK);
    assert_eq!(handle.paused(), None);
    scene
        .told("berth", |told| told["result"] == "success")
        .await;
    eventually("the object is told", async || {
        let notes = scene.space.notes("ConfigMap", "berth", "Requeued").await;
        (!notes.is_empty()).then_some(()).ok_or("no Event")
    })
    .await;

    // all that are left
    let (code, told) = scene.act("unpark", quay()).await;
    assert_eq!(code, StatusCode::OK, "{told}");
    assert!(told.contains("2 keys of quay are unparked"), "{told}");
    for name in ["crane", "mole"] {
        scene.told(name, |told| told["result"] == "success").await;
    }
    assert_eq!(scene.get("parked").await["total"], 0);
    for crooked in ["a//b", "/", "", "a/b/c"] {
        let body = json!({ "controller": "quay", "key": crooked });
        let (code, told) = scene.act("requeue", body).await;
        assert_eq!(code, StatusCode::BAD_REQUEST, "{crooked}: {told}");
    }
    scene.stop().await;
}

/// What is in the Secret, as it is and as it is sent.
const SECRET: [&str; 2] = ["mizzenmast", "bWl6emVubWFzdA"];

/// A Secret of which something else is expected than is true.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = "Secret")]
struct Strict {
    metadata: ObjectMeta,
    #[serde(rename = "data")]
    _data: BTreeMap<String, u32>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_a_secret_is_on_no_page_not_even_where_it_cannot_be_read() {
    let scene = Scene::set().await.begun().await;
    let secrets = Api::<Secret>::namespaced(scene.space.client().clone(), &scene.space.name);
    let secret = json!({ "metadata": { "name": "code" }, "stringData": { "word": SECRET[0] } });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let made = secrets.create(&PostParams::default(), &secret).await;
    made.expect("a Secret");
    let vault = Controller::<Secret>::named("vault").reconcile_with(Arc::new(()), |_, _| async {
        Ok::<_, Never>(Outcome::GiveUp("it is locked".into()))
    });
    let strict = Controller::<Strict>::named("strict")
        .reconcile_with(Arc::new(()), |_, _| async { Ok::<_, Never>(Outcome::Done) });
    for controller in [vault, strict] {
        let added = scene.manager.controllers().add(controller).await;
        added.expect("it is added");
    }
    let page = async |path: &str| {
        let path = format!("/api/v1/{path}");
        let (_, told) = request(scene.address, Method::GET, &path, &[], String::new()).await;
        let is_shown = SECRET.iter().any(|word| told.contains(word));
        assert!(!is_shown, "{path}: {told}");
        told
    };
    let key = |controller| format!("keys/{controller}/{}/code", scene.space.name);
    for (path, words) in [
        (key("vault"), "it is locked"),
        (key("strict"), "\"state\":\"undecodable\""),
        ("informers".into(), "/code\":"),
    ] {
        eventually("it was looked at", async || {
            let told = page(&path).await;
            told.contains(words).then_some(()).ok_or(told)
        })
        .await;
    }
    for path in [
        "overview",
        "health",
        "tree",
        "controllers",
        "parked",
        "keys",
        "keys?q=o",
    ] {
        page(path).await;
    }
    for top in ["failing", "slowest"] {
        page(&format!("keys?top={top}")).await;
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_a_standby_says_that_others_go_on_and_is_ended_like_any_other() {
    let scene = Scene::set().await.begun().await;
    let observer = scene.manager.observer();
    let handle = observer.controller("quay").expect("it is there");
    handle.standby(true);
    let controller = json!({ "controller": "quay" });
    let (code, text) = scene.act("pause", controller.clone()).await;
    assert_eq!(code, StatusCode::OK, "{text}");
    assert!(text.contains("whoever leads goes on"), "{text}");
    eventually("it is seen", async || {
        let seen = scene.get("overview").await;
        let quay = &seen["controllers"][0];
        let line = seen["health"]["line"].as_str().unwrap_or_default();
        let is_seen = quay["paused"] == true
            && quay["shut"]["state"] == "standby"
            && line.contains("quay is paused here");
        if is_seen { Ok(()) } else { Err(seen) }
    })
    .await;
    let (code, text) = scene.act("resume", controller.clone()).await;
    assert_eq!(code, StatusCode::OK, "{text}");
    assert!(text.contains("no run begins"), "{text}");
    let (code, text) = scene.act("resume", controller).await;
    assert_eq!(code, StatusCode::CONFLICT, "{text}");
    handle.standby(false);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_does_not_decode_is_listed_where_one_looks_and_found_by_its_state() {
    let scene = Scene::set().await.begun().await;
    let secrets = Api::<Secret>::namespaced(scene.space.client().clone(), &scene.space.name);
    for (name, is_sound) in [("sound", true), ("crooked", false)] {
        let mut secret = json!({ "metadata": { "name": name } });
        if !is_sound {
            secret["stringData"] = json!({ "word": SECRET[0] });
        }
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        let made = secrets.create(&PostParams::default(), &secret).await;
        made.expect("a Secret");
    }
    // the same objects are nothing strange to another reader
    let vault = Controller::<Secret>::named("vault")
        .reconcile_with(Arc::new(()), |_, _| async { Ok::<_, Never>(Outcome::Done) });
    let strict = Controller::<Lax>::named("strict")
        .reconcile_with(Arc::new(()), |_, _| async { Ok::<_, Never>(Outcome::Done) });
    for controller in [vault, strict] {
        let added = scene.manager.controllers().add(controller).await;
        added.expect("it is added");
    }
    let key = |name: &str| format!("{}/{name}", scene.space.name);
    let found = async |query: &str| {
        let found = scene.get(&format!("keys?{query}")).await;
        let keys = found["keys"].as_array().expect("keys").iter();
        let keys = keys.map(|row| (row["key"].clone(), row["state"].clone()));
        keys.collect::<Vec<_>>()
    };
    let crooked = vec![(json!(key("crooked")), json!("undecodable"))];
    let sound = vec![(json!(key("sound")), json!("idle"))];
    for (query, wanted) in [
        ("controller=strict", &crooked),
        ("controller=strict&state=undecodable", &crooked),
        ("controller=strict&state=undecodable&q=crook", &crooked),
        ("controller=strict&state=idle", &sound),
        ("state=undecodable", &crooked),
        ("controller=strict&q=crook", &crooked),
        ("controller=vault&state=undecodable", &Vec::new()),
        ("controller=strict&state=undecodable&q=sound", &Vec::new()),
    ] {
        eventually(query, async || {
            let found = found(query).await;
            (found == *wanted).then_some(()).ok_or(found)
        })
        .await;
    }
    scene.stop().await;
}

/// A Secret whose words are numbers, if there are any.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = "Secret")]
struct Lax {
    metadata: ObjectMeta,
    #[serde(rename = "data", default)]
    _data: BTreeMap<String, u32>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_there_is_not_is_not_found_and_one_whose_object_is_gone_still_is() {
    let scene = Scene::set().await.begun().await;
    scene.is_well.send_replace(true);
    scene.space.put("berth", "1").await;
    scene
        .told("berth", |told| told["result"] == "success")
        .await;
    let nobody = format!("keys/quay/{}/nobody", scene.space.name);
    let (code, told) = scene.ask(&nobody).await;
    assert_eq!(code, StatusCode::NOT_FOUND, "{told}");
    let why = told["error"].as_str().unwrap_or_default();
    assert!(
        why.contains("/nobody of quay") && why.contains("keys?controller=quay"),
        "{why}"
    );
    let maps = Api::<ConfigMap>::namespaced(scene.space.client().clone(), &scene.space.name);
    let gone = maps.delete("berth", &DeleteParams::default()).await;
    gone.expect("it is deleted");
    let told = scene.told("berth", |told| told["state"] == "unknown").await;
    assert!(told["runs"][0].is_object(), "its runs are told: {told}");
    scene.stop().await;
}
