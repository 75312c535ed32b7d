//! The API server as pods find it: over TLS, with a CA, a token and a namespace in files.

use std::{net::SocketAddr, path::Path, sync::Arc};

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{ConfigMap, Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _},
    },
};

use crate::{Space, World, eventually};

/// Where pods reach the server, and the account they use in one namespace.
pub struct Service {
    address: SocketAddr,
    /// The certificate of who signed that of the server, as PEM.
    ca: String,
    space: Space,
    /// Speaks TLS in front of a server that does not.
    front: Option<JoinHandle<()>>,
}

impl Service {
    /// The way to `world` for the pods of `space`.
    pub async fn of(world: &World, space: &Space) -> Self {
        let (address, ca, front) = match world {
            World::Sim(sim) => {
                let (address, ca, front) = secured(sim.address()).await;
                (address, ca, Some(front))
            }
            World::Real(real) => {
                let ca = std::fs::read_to_string(real.folder().join("ca.crt"));
                (real.address(), ca.expect("a certificate"), None)
            }
        };
        if front.is_none() {
            let_pods_work(space).await;
        }
        Self {
            address,
            ca,
            space: space.clone(),
            front,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts into `folder` what a pod finds in its own, with `token`.
    pub fn mount(&self, folder: &Path, token: &str) {
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).expect("written");
        };
        write("ca.crt", &self.ca);
        write("namespace", &self.space.name);
        write("token", token);
    }

    /// Puts another token in place of the one in `folder`, in one step, as the kubelet does.
    pub fn rotate(&self, folder: &Path, token: &str) {
        let new = folder.join("token.new");
        std::fs::write(&new, token).expect("written");
        std::fs::rename(new, folder.join("token")).expect("renamed");
    }

    /// A new token of the account, under a name to [revoke](Self::revoke) it by.
    pub async fn token(&self, world: &World, name: &str) -> String {
        let World::Sim(sim) = world else {
            return requested(&self.space, name).await;
        };
        let token = format!("{}-{name}", self.space.name);
        sim.accept(&token, "replica-1");
        token
    }

    /// Accepts `token`, called `name`, no more; returns when it is refused.
    pub async fn revoke(&self, world: &World, name: &str, token: &str) {
        match world {
            World::Sim(sim) => sim.refuse(token),
            World::Real(_) => {
                let secrets =
                    Api::<Secret>::namespaced(self.space.client().clone(), &self.space.name);
                let gone = secrets.delete(name, &DeleteParams::default()).await;
                gone.expect("deleted");
            }
        }
        let mut config = Config::new(format!("https://{}", self.address).parse().expect("a URL"));
        let ca = CertificateDer::from_pem_slice(self.ca.as_bytes()).expect("a certificate");
        config.root_cert = Some(vec![ca.to_vec()]);
        config.auth_info.token = Some(token.to_owned().into());
        let client = Client::try_from(config).expect("a client");
        let maps = Api::<ConfigMap>::namespaced(client, &self.space.name);
        eventually("the token is refused", async || {
            match maps.list(&ListParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
                other => Err(other.map(drop)),
            }
        })
        .await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(front) = &self.front {
            front.abort();
        }
    }
}

/// Speaks TLS on a port of its own and passes on what it hears to `target`.
async fn secured(target: SocketAddr) -> (SocketAddr, String, JoinHandle<()>) {
    let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let generate = || KeyPair::generate().expect("a key");
    let ca = CertifiedIssuer::self_signed(ca, generate()).expect("a certificate");
    let key = generate();
    let server = CertificateParams::new(vec!["127.0.0.1".into()]).expect("parameters");
    let certificate = server.signed_by(&key, &ca).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate for its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    let front = tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let (Ok(mut client), Ok(mut server)) = (
                    acceptor.accept(client).await,
                    TcpStream::connect(target).await,
                ) else {
                    return;
                };
                // how a connection ends is the business of its ends
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, ca.pem(), front)
}

/// The account of pods.
const ACCOUNT: &str = "pod";

async fn let_pods_work(space: &Space) {
    let (client, post) = (space.client().clone(), PostParams::default());
    let account: ServiceAccount =
        serde_json::from_value(json!({ "metadata": { "name": ACCOUNT } })).expect("an account");
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &space.name);
    accounts.create(&post, &account).await.expect("an account");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": space.name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": space.name }],
    });
    let bindings = Api::<ClusterRoleBinding>::all(client);
    let params = PatchParams::apply("boatswain-tests").force();
    let patch = Patch::Apply(&binding);
    let bound = bindings.patch(&space.name, &params, &patch).await;
    bound.expect("a binding");
}

/// A token that is good for as long as the Secret called `name` is there.
async fn requested(space: &Space, name: &str) -> String {
    let (client, post) = (space.client().clone(), PostParams::default());
    let secret: Secret =
        serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a Secret");
    let secrets = Api::<Secret>::namespaced(client.clone(), &space.name);
    let secret = secrets.create(&post, &secret).await.expect("a Secret");
    let request: TokenRequest = serde_json::from_value(json!({
        "spec": {
            "audiences": [], "expirationSeconds": 3600,
            "boundObjectRef": {
                "apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret.metadata.uid,
            },
        },
    }))
    .expect("a request");
    let accounts = Api::<ServiceAccount>::namespaced(client, &space.name);
    let granted = accounts.create_token_request(ACCOUNT, &post, &request);
    let status = granted.await.expect("a token").status;
    let token = status.and_then(|status| status.token);
    token.expect("it was granted")
}
