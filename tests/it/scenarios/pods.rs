//! A process that finds everything where a pod finds it.

use std::{path::Path, process::Command};

use boatswain_tests::{Replica, Service, Space, World};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

/// Mounts the first argument where a pod's account is, in a namespace of its own, and becomes the rest of them.
const POD: &str = r#"
set -e
account=/var/run/secrets/kubernetes.io/serviceaccount
mount -t tmpfs tmpfs /var/run
mkdir -p "$account"
mount --bind "$1" "$account"
shift
exec "$@"
"#;

/// The program, with nothing to go by but what `service` put into `folder` and two variables.
fn pod(service: &Service, folder: &Path) -> Replica {
    let address = service.address();
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", POD, "sh"])
        .arg(folder)
        .arg(env!("CARGO_BIN_EXE_replica"))
        .args(["run", "--leader-elect"])
        .env("KUBERNETES_SERVICE_HOST", address.ip().to_string())
        .env("KUBERNETES_SERVICE_PORT", address.port().to_string())
        .env("HOSTNAME", "replica-1")
        // no kubeconfig of whoever runs the tests
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG");
    Replica::spawn(command, "replica-1")
}

pub(crate) async fn in_a_pod_everything_is_found_and_a_rotated_token_is_used(world: &World) {
    let space = Space::create(&world.client().await, "pod").await;
    let service = Service::of(world, &space).await;
    let folder = tempfile::tempdir().expect("a folder");
    let first = service.token(world, "first").await;
    service.mount(folder.path(), &first);
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let replica = pod(&service, folder.path());
    space.has_replicas("web", 2).await;
    space.is_synced("web", 2).await;
    let leases = Api::<Lease>::namespaced(space.client().clone(), &space.name);
    let lease = leases.get("podautoscaler-leader").await;
    let spec = lease.expect("it is in the pod's namespace").spec;
    let holder = spec
        .and_then(|spec| spec.holder_identity)
        .unwrap_or_default();
    assert!(holder.starts_with("replica-1_"), "{holder}");

    let second = service.token(world, "second").await;
    service.rotate(folder.path(), &second);
    service.revoke(world, "first", &first).await;
    space.ask_for("web", 3).await;
    space.has_replicas("web", 3).await;
    space.is_synced("web", 3).await;
    replica.terminate();
    let (status, log) = replica.ends().await;
    assert!(status.success(), "{status}: {log:#?}");
    let lease = leases.get("podautoscaler-leader").await;
    let spec = lease.expect("it is there").spec.unwrap_or_default();
    // with the new token
    let holder = spec.holder_identity.unwrap_or_default();
    assert_eq!(holder, "", "the lease was not given back: {log:#?}");
}
