//! What a line of the log says of the run it was written in.

use std::{
    io,
    sync::{Arc, Mutex},
};

use boatswain::{Controller, Outcome, ReconcileError};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::{Stage, end, retries::secs};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self, message: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().expect("lock").clone()).expect("text");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("json"));
        lines
            .filter(|line| line["fields"]["message"] == message)
            .collect()
    }
}

#[test]
fn what_is_logged_in_a_run_says_whose_run_it_is() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    // beside a second one, what a test on another thread logs first is not taken for what nobody ever listens to
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    Stage::play(1, |stage| async move {
        let run = |_: Arc<ConfigMap>, _: Arc<()>| async {
            tracing::info!("in the middle of it");
            Ok::<_, ReconcileError>(Outcome::Retry)
        };
        let controller = Controller::<ConfigMap>::named("teller").resync(None);
        let running = stage
            .start(controller.reconcile_with(Arc::new(()), run))
            .await;
        stage.create("map").await;
        stage.clock.sleep(secs(1)).await;
        let lines = log.lines("in the middle of it");
        assert!(lines.len() >= 2, "{lines:?}");
        let mut names = Vec::new();
        for line in &lines {
            let span = &line["span"];
            assert_eq!(span["name"], "reconcile");
            assert_eq!(span["controller"], "teller");
            assert_eq!(span["key"], "default/map");
            assert_eq!(span["attempt"], 0, "not being ready is no failure");
            names.push(span["id"].as_str().expect("a name").to_owned());
        }
        assert_eq!(lines[0]["span"]["causes"], "created");
        assert_eq!(lines[1]["span"]["causes"], "created+retry");
        let key = boatswain::Key::new(Some("default"), "map");
        let handle = running.observer().controller("teller").expect("there");
        let last = handle.explain(&key).last.expect("it ran");
        assert_eq!(names.last(), last.id.map(|id| id.to_string()).as_ref());
        names.sort();
        names.dedup();
        assert_eq!(names.len(), lines.len(), "each run has its own");
        end(running).await;
    });
}
