//! The manager under test.

use std::{net::SocketAddr, path::Path};

use boatswain::{Handle, Manager, Observer, Options, Runnable, testing::assert_clean};
use kube::config::Kubeconfig;

use crate::{Space, World, eventually};

/// A manager that runs the controllers under test against a [`World`].
pub struct Crew {
    handle: Option<Handle>,
    observer: Observer,
}

impl Crew {
    /// Starts `controllers` in `space`, against the server the kubeconfig names.
    pub async fn start(
        kubeconfig: &Path,
        space: Option<&Space>,
        controllers: Vec<Runnable>,
    ) -> Self {
        Self::start_with(Options::default(), kubeconfig, space, controllers).await
    }

    /// As [`Crew::start`], with options for what the others do not say.
    pub async fn start_with(
        options: Options,
        kubeconfig: &Path,
        space: Option<&Space>,
        controllers: Vec<Runnable>,
    ) -> Self {
        let options = Options {
            kubeconfig: Some(kubeconfig.to_owned()),
            namespaces: space.iter().map(|s| s.name.clone()).collect(),
            ..options
        };
        let manager = controllers
            .into_iter()
            .fold(Manager::new(options), Manager::with);
        let handle = tokio::task::spawn_blocking(|| manager.spawn())
            .await
            .expect("joined")
            .expect("started");
        Self {
            observer: handle.observer().clone(),
            handle: Some(handle),
        }
    }

    /// Starts the PodAutoscaler in `space` and waits until it is ready.
    pub async fn podautoscaler(world: &World, space: &Space) -> Self {
        let crew = Self::start(
            world.kubeconfig(),
            Some(space),
            vec![podautoscaler::controller()],
        )
        .await;
        crew.ready().await;
        crew
    }

    /// Waits until `/readyz` passes.
    pub async fn ready(&self) {
        eventually("the manager is ready", async || {
            let (ready, page) = self.observer.ready();
            if ready { Ok(()) } else { Err(page) }
        })
        .await;
    }

    /// What the manager shows.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The value of a metric, summed over the series whose line contains every one of `labels`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.observer.metrics();
        let series = page.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        series
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Stops in order; nothing may still run.
    pub async fn stop(mut self) {
        if let Some(handle) = self.handle.take() {
            tokio::task::spawn_blocking(|| handle.stop())
                .await
                .expect("joined")
                .expect("an orderly stop");
            assert_clean(&self.observer);
        }
    }
}

/// A kubeconfig like `original`, of an administrator, by which one acts as `user`.
pub fn acting_as(original: &Path, user: &str, into: &Path) {
    let mut config = Kubeconfig::read_from(original).expect("a kubeconfig");
    for named in &mut config.auth_infos {
        named.auth_info.get_or_insert_default().impersonate = Some(user.to_owned());
    }
    let text = serde_saphyr::to_string(&config).expect("YAML");
    std::fs::write(into, text).expect("written");
}

/// A kubeconfig like `original` that goes to `address` instead.
pub fn redirected(original: &Path, from: SocketAddr, to: SocketAddr, into: &Path) {
    let text = std::fs::read_to_string(original).expect("a kubeconfig");
    let redirected = text.replace(&from.to_string(), &to.to_string());
    assert_ne!(
        text, redirected,
        "the kubeconfig names the server's address"
    );
    std::fs::write(into, redirected).expect("written");
}
