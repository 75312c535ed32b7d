//! kube-rs: its controller over a full store, told of keys by a stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::watcher::Event;

use crate::contestant::{Contestant, Log, name, objects};
use crate::options::{Ask, Task};

struct Peer {
    _runtime: tokio::runtime::Runtime,
    asks: UnboundedSender<ObjectRef<ConfigMap>>,
}

struct Counts {
    log: &'static Log,
    asks: UnboundedSender<ObjectRef<ConfigMap>>,
}

async fn reconcile(map: Arc<ConfigMap>, counts: Arc<Counts>) -> Result<Action, Infallible> {
    counts.log.run(&map).await;
    match counts.log.ask {
        Some(Ask::Requeue) => return Ok(Action::requeue(Duration::ZERO)),
        Some(Ask::Channel) => {
            let key = ObjectRef::from_obj(&*map);
            counts.asks.unbounded_send(key).expect("it listens");
        }
        None => {}
    }
    Ok(Action::await_change())
}

pub(crate) fn start(task: &Task, log: &'static Log) -> impl Contestant + use<> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (reader, mut writer) = store::<ConfigMap>();
    writer.apply_watcher_event(&Event::Init);
    for object in objects(task) {
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let (asks, asked) = unbounded();
    let counts = Arc::new(Counts {
        log,
        asks: asks.clone(),
    });
    runtime.spawn(async move {
        // its store ends with the writer
        let _writer = writer;
        Controller::for_stream(stream::pending(), reader)
            .reconcile_on(asked)
            .run(reconcile, |_, error, _| match *error {}, counts)
            .for_each(|_| std::future::ready(()))
            .await;
    });
    Peer {
        _runtime: runtime,
        asks,
    }
}

impl Contestant for Peer {
    fn ask(&self, number: usize) {
        let key = ObjectRef::new(&name(number)).within("default");
        self.asks.unbounded_send(key).expect("it listens");
    }
}
