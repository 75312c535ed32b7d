//! A manager with a dashboard on the simulated server, whose reconciler does what the test says.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain::{
    Clock, Context, Controller, DashboardOptions, Handle, Key, Manager, Options, Outcome,
    Reconciler, Sender, channel,
};
use boatswain_tests::{Space, World};
use k8s_openapi::api::core::v1::ConfigMap;
use tempfile::TempDir;

pub(crate) const TOKEN: &str = "correct-horse-battery-staple";

/// What a key does at its next runs, by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Fail,
    GiveUp,
    Panic,
    /// Takes so many milliseconds.
    Take(u64),
    /// Asks to run again, much later.
    Wait,
}

/// What happens is written here.
pub(crate) struct Script {
    parts: Mutex<BTreeMap<String, Part>>,
    runs: tokio::sync::mpsc::Sender<Instant>,
    ran: tokio::sync::Mutex<tokio::sync::mpsc::Receiver<Instant>>,
}

impl Default for Script {
    fn default() -> Self {
        let (runs, ran) = tokio::sync::mpsc::channel(16);
        Self {
            parts: Mutex::default(),
            runs,
            ran: tokio::sync::Mutex::new(ran),
        }
    }
}

impl Script {
    pub(crate) fn set(&self, name: &str, part: Part) {
        self.parts.lock().expect("whole").insert(name.into(), part);
    }

    pub(crate) fn heal(&self, name: &str) {
        self.parts.lock().expect("whole").remove(name);
    }

    /// When the next key whose object is gone was told so.
    pub(crate) async fn gone(&self) -> Instant {
        self.ran
            .lock()
            .await
            .recv()
            .await
            .expect("the sender is here")
    }

    fn of(&self, name: &str) -> Option<Part> {
        self.parts.lock().expect("whole").get(name).copied()
    }
}

/// What no page may take for markup.
pub(crate) const EVIL: &str = "<img src=x onerror=\"window.harmed=1\">";

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Trouble(String);

struct Quay(Arc<Script>);

impl Reconciler<ConfigMap> for Quay {
    type Error = Trouble;

    async fn reconcile(&self, _: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Trouble> {
        cx.decided(format!("Moored: {EVIL}"));
        play(&self.0, cx.key().name()).await
    }

    async fn gone(
        &self,
        _: &Key,
        _: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, Trouble> {
        let _ = self.0.runs.try_send(Clock::system().now());
        Ok(Outcome::Done)
    }
}

async fn play(script: &Script, name: &str) -> Result<Outcome, Trouble> {
    match script.of(name) {
        None => Ok(Outcome::Done),
        Some(Part::Fail) => Err(Trouble(format!("the crane refuses {EVIL}"))),
        Some(Part::GiveUp) => Ok(Outcome::GiveUp(format!("no such berth: {EVIL}"))),
        Some(Part::Wait) => Ok(Outcome::RequeueAfter(Duration::from_millis(3_630_000))),
        Some(Part::Panic) => panic!("the rope of {name} broke"),
        Some(Part::Take(millis)) => {
            Clock::system().sleep(Duration::from_millis(millis)).await;
            Ok(Outcome::Done)
        }
    }
}

pub(crate) struct Scene {
    pub(crate) manager: Option<Handle>,
    pub(crate) script: Arc<Script>,
    pub(crate) sender: Sender,
    pub(crate) space: Space,
    world: World,
    dir: TempDir,
}

impl Scene {
    pub(crate) async fn set(with_token: bool) -> Self {
        let world = World::sim().await;
        let space = Space::create(&world.client().await, "harbour").await;
        let dir = tempfile::tempdir().expect("a folder");
        if with_token {
            std::fs::write(dir.path().join("token"), TOKEN).expect("written");
        }
        let mut scene = Self {
            manager: None,
            script: Arc::default(),
            sender: channel(1).0,
            space,
            world,
            dir,
        };
        scene.start("127.0.0.1:0".parse().expect("an address"));
        scene
    }

    fn token(&self) -> Option<PathBuf> {
        let path = self.dir.path().join("token");
        path.exists().then_some(path)
    }

    /// Puts another token in the place of the one that was.
    pub(crate) fn rotate(&self) {
        let token = TOKEN.replace("horse", "mule");
        std::fs::write(self.dir.path().join("token"), token).expect("written");
    }

    pub(crate) fn start(&mut self, listen: SocketAddr) {
        let (sender, source) = channel(200_000);
        let script = self.script.clone();
        let quay = Controller::<ConfigMap>::named("quay")
            .source("radio", source)
            .reconciler(|_| Quay(script));
        let pilot = Controller::<ConfigMap>::named("pilot")
            .reconcile_with(Arc::new(()), |_, _| async {
                Ok::<_, Trouble>(Outcome::Done)
            });
        let options = Options {
            kubeconfig: Some(self.world.kubeconfig().to_owned()),
            grace: Duration::from_secs(2),
            dashboard: Some(DashboardOptions {
                listen,
                required: true,
                hosts: Vec::new(),
                token_file: self.token(),
            }),
            ..Options::default()
        };
        let manager = Manager::new(options).with(quay).with(pilot);
        self.manager = Some(manager.spawn().expect("it starts"));
        self.sender = sender;
    }

    pub(crate) fn manager(&self) -> &Handle {
        self.manager.as_ref().expect("it runs")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.manager().observer().dashboard().expect("a dashboard")
    }

    pub(crate) fn url(&self, hash: &str) -> String {
        format!("http://localhost:{}/{hash}", self.address().port())
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::new(Some(&self.space.name), name)
    }

    pub(crate) async fn stop(&mut self) {
        let manager = self.manager.take().expect("it runs");
        let stopped = tokio::task::spawn_blocking(move || manager.stop()).await;
        stopped.expect("no panic").expect("in order");
    }
}
