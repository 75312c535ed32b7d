//! Boatswain: a manager with threads of its own, over a server in the process that is asked once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use boatswain::{
    Context, Controller, DashboardOptions, Handle, Key, Layout, Manager, Options, Outcome,
    Reconciler, Sender, StoreOptions, channel,
};
use boatswain_apisim::ApiSim;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;

use crate::contestant::{Contestant, DASHBOARD, Log, name, objects};
use crate::options::{Ask, Task};

struct Ours {
    /// Runs as long as it is kept.
    _manager: Handle,
    sender: Sender,
}

struct Counts {
    log: &'static Log,
    sender: Sender,
}

impl Reconciler<ConfigMap> for Counts {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        self.log.run(&map).await;
        match self.log.ask {
            Some(Ask::Requeue) => return Ok(Outcome::RequeueAfter(Duration::ZERO)),
            Some(Ask::Channel) => self.sender.send(cx.key().clone()).expect("room for all"),
            None => {}
        }
        Ok(Outcome::Done)
    }
}

/// Returns when every key has run.
pub(crate) fn start(task: &Task, log: &'static Log) -> impl Contestant + use<> {
    let sim = ApiSim::new(boatswain_apisim::Options::default());
    for object in objects(task) {
        let mut object = serde_json::to_value(object).expect("plain data");
        object["metadata"]["resourceVersion"].take();
        object["metadata"]["uid"].take();
        sim.create(object).expect("created");
    }
    let (sender, source) = channel(task.keys);
    let counts = Counts {
        log,
        sender: sender.clone(),
    };
    let store = StoreOptions {
        // the objects of the other are decoded, too
        layout: Layout::typed::<ConfigMap>(),
        ..StoreOptions::default()
    };
    let controller = Controller::<ConfigMap>::named("bench")
        .keep(store)
        .concurrency(16)
        .source("asks", source)
        .reconciler(move |_| counts);
    let options = Options {
        workers: 16,
        dashboard: task.dashboard.then(|| DashboardOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            ..DashboardOptions::default()
        }),
        ..Options::default()
    };
    let manager = Manager::new(options)
        .with(controller)
        .spawn_over(move || Client::new(sim.service(), "default"))
        .expect("started");
    let ready = || manager.observer().ready().0;
    while !ready() {
        #[expect(clippy::disallowed_methods, reason = "others work meanwhile")]
        std::thread::sleep(Duration::from_millis(20));
    }
    if let Some(address) = manager.observer().dashboard() {
        println!("{DASHBOARD}{address}");
    }
    Ours {
        _manager: manager,
        sender,
    }
}

impl Contestant for Ours {
    fn ask(&self, number: usize) {
        let key = Key::new(Some("default"), &name(number));
        self.sender.send(key).expect("room for all");
    }
}
