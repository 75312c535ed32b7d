//! `run --embedded`: a simulated API server in the process, with something to scale.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use boatswain::{Manager, ManagerArgs, Options};
use boatswain_apisim::{ApiSim, Server, WorldOptions};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, CustomResourceExt as _, api::PostParams};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::api::{PodAutoscaler, PodAutoscalerSpec};

/// What is there to look at: a Deployment, its replicas, and the replicas its PodAutoscaler asks for.
const SCENE: [(&str, i32, i32); 2] = [("web", 1, 3), ("api", 4, 2)];

/// Runs the controller against a simulated server until it is told to stop. Nothing needs to be installed.
pub(crate) fn run(args: ManagerArgs) -> ExitCode {
    let options = args.options_or_exit();
    boatswain::init_logging(options.log_format, options.verbosity);
    let embedded = match Embedded::start() {
        Ok(embedded) => embedded,
        Err(error) => {
            eprintln!("error: cannot start the embedded API server: {error}");
            return ExitCode::FAILURE;
        }
    };
    // for people and scripts; a reader that went away is no reason to end
    let _ = writeln!(io::stdout(), "KUBECONFIG={}", embedded.kubeconfig.display());
    let options = Options {
        kubeconfig: Some(embedded.kubeconfig.clone()),
        ..options
    };
    let code = Manager::new(options).with(crate::controller()).run();
    embedded.stop();
    code
}

#[derive(Debug, thiserror::Error)]
enum EmbedError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the scene cannot be set: {0}")]
    Scene(#[from] kube::Error),
    #[error("the scene does not parse: {0}")]
    Parse(#[from] serde_json::Error),
}

/// The server and the folder its kubeconfig is in; both end with it.
struct Embedded {
    runtime: Runtime,
    server: Server,
    kubeconfig: PathBuf,
    _dir: TempDir,
}

impl Embedded {
    fn start() -> Result<Self, EmbedError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let sim = ApiSim::new(boatswain_apisim::Options::default());
        let dir = tempfile::Builder::new()
            .prefix("podautoscaler-")
            .tempdir()?;
        let kubeconfig = dir.path().join("kubeconfig");
        let server = runtime.block_on(set_scene(&sim, &kubeconfig))?;
        // the deployment controller: status follows spec
        let world = sim.world(WorldOptions::default());
        runtime.spawn(async move { world.run().await });
        Ok(Self {
            runtime,
            server,
            kubeconfig,
            _dir: dir,
        })
    }

    fn stop(self) {
        self.runtime.block_on(self.server.stop());
    }
}

async fn set_scene(sim: &ApiSim, kubeconfig: &Path) -> Result<Server, EmbedError> {
    let client = Client::new(sim.service(), "default");
    let post = PostParams::default();
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    crds.create(&post, &PodAutoscaler::crd()).await?;
    for (name, replicas, wanted) in SCENE {
        let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
        deployments
            .create(&post, &deployment(name, replicas)?)
            .await?;
        let spec = PodAutoscalerSpec {
            target_deployment: name.into(),
            replicas: wanted,
        };
        let autoscalers = Api::<PodAutoscaler>::namespaced(client.clone(), "default");
        autoscalers
            .create(&post, &PodAutoscaler::new(name, spec))
            .await?;
    }
    let server = sim.serve(("127.0.0.1", 0)).await?;
    fs::write(kubeconfig, server.kubeconfig("admintoken"))?;
    Ok(server)
}

fn deployment(name: &str, replicas: i32) -> Result<Deployment, serde_json::Error> {
    let labels = json!({ "app": name });
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
            },
        },
    }))
}
