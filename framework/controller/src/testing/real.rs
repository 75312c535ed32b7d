//! etcd and kube-apiserver as child processes.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use boatswain_supervision::Clock;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::process::{Child, Command};

use super::TestServerError;

const READY: Duration = Duration::from_secs(60);

pub(super) struct Processes {
    address: SocketAddr,
    // the API server first: it is dropped, and so killed, before its etcd
    apiserver: Child,
    etcd: Child,
}

impl Processes {
    pub(super) async fn start(assets: &Path, dir: &Path) -> Result<Self, TestServerError> {
        let [api, client, peer] = [free_port()?, free_port()?, free_port()?];
        let write = |name: &str, text: &str| {
            fs::write(dir.join(name), text).map_err(TestServerError::io(format!("write {name}")))
        };
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(vec![])?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, ca_key)?;
        let key = KeyPair::generate()?;
        let cert = CertificateParams::new(vec!["127.0.0.1".into(), "localhost".into()])?
            .signed_by(&key, &ca)?;
        write("server.crt", &cert.pem())?;
        write("server.key", &key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        write("accounts.key", &accounts.serialize_pem())?;
        write("accounts.pub", &accounts.public_key_pem())?;
        write("tokens.csv", "admintoken,admin,admin,system:masters\n")?;
        write("kubeconfig", &kubeconfig(api, &ca.pem()))?;

        let etcd_url = format!("http://127.0.0.1:{client}");
        let peer_url = format!("http://127.0.0.1:{peer}");
        let etcd = spawn(assets, "etcd", dir, |etcd| {
            etcd.args(["--data-dir", "etcd", "--unsafe-no-fsync"])
                .args([
                    "--listen-client-urls",
                    &etcd_url,
                    "--advertise-client-urls",
                    &etcd_url,
                ])
                .args([
                    "--listen-peer-urls",
                    &peer_url,
                    "--initial-advertise-peer-urls",
                    &peer_url,
                ])
                .arg(format!("--initial-cluster=default={peer_url}"));
        })?;
        let apiserver = spawn(assets, "kube-apiserver", dir, |server| {
            server
                .arg(format!("--etcd-servers={etcd_url}"))
                .args(["--bind-address=127.0.0.1", &format!("--secure-port={api}")])
                .args([
                    "--tls-cert-file=server.crt",
                    "--tls-private-key-file=server.key",
                ])
                .args(["--token-auth-file=tokens.csv", "--authorization-mode=RBAC"])
                .args(["--service-account-key-file=accounts.pub"])
                .args(["--service-account-signing-key-file=accounts.key"])
                .args(["--service-account-issuer=https://kubernetes.default.svc"])
                .args([
                    "--service-cluster-ip-range=10.0.0.0/24",
                    "--disable-admission-plugins=ServiceAccount",
                ]);
        })?;
        let mut processes = Self {
            address: SocketAddr::from(([127, 0, 0, 1], api)),
            apiserver,
            etcd,
        };
        processes.ready(assets, dir).await?;
        Ok(processes)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) async fn stop(mut self) {
        for child in [&mut self.apiserver, &mut self.etcd] {
            // an error only says that it has ended already
            let _ = child.kill().await;
        }
    }

    async fn ready(&mut self, assets: &Path, dir: &Path) -> Result<(), TestServerError> {
        let clock = Clock::system();
        let end = clock.now() + READY;
        let error = |e: &dyn std::fmt::Display| TestServerError::Client(e.to_string());
        let file = Kubeconfig::read_from(dir.join("kubeconfig")).map_err(|e| error(&e))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|e| error(&e))?;
        let client = kube::Client::try_from(config).map_err(|e| error(&e))?;
        let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(client);
        while clock.now() < end {
            // the namespace is made by the server itself, after it has begun to answer
            if matches!(namespaces.get_opt("default").await, Ok(Some(_))) {
                return Ok(());
            }
            // one that has ended will not become ready
            if [&mut self.apiserver, &mut self.etcd].into_iter().any(ended) {
                break;
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
        let log = fs::read_to_string(dir.join("kube-apiserver.log")).unwrap_or_default();
        let mut log: Vec<_> = log.lines().rev().take(10).collect();
        log.reverse();
        Err(TestServerError::NotReady {
            assets: assets.to_owned(),
            log: log.join("\n"),
        })
    }
}

fn ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

fn spawn(
    assets: &Path,
    name: &str,
    dir: &Path,
    arguments: impl FnOnce(&mut Command),
) -> Result<Child, TestServerError> {
    let program: PathBuf = assets.join(name);
    let log = File::create(dir.join(format!("{name}.log")))
        .map_err(TestServerError::io("create a log file"))?;
    let errors = log
        .try_clone()
        .map_err(TestServerError::io("create a log file"))?;
    let mut command = Command::new(&program);
    arguments(&mut command);
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .kill_on_drop(true);
    command
        .spawn()
        .map_err(TestServerError::io(format!("start {}", program.display())))
}

fn free_port() -> Result<u16, TestServerError> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound
        .map(|address| address.port())
        .map_err(TestServerError::io("find a free port"))
}

/// JSON, which is YAML.
fn kubeconfig(port: u16, ca: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{ "name": "test", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": k8s_openapi::ByteString(ca.as_bytes().to_vec()),
        } }],
        "users": [{ "name": "admin", "user": { "token": "admintoken" } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "admin", "namespace": "default" } }],
    })
    .to_string()
}
