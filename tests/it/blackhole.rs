//! A network in which packets vanish: a namespace of this test's own, on Linux, without any rights of the host's.

use std::{process::Command, time::Duration};

use boatswain_cache::{ConnectOptions, InformerOptions, Scope, Selection};
use boatswain_tests::{Mirror, Space, World, eventually, mirror};
use k8s_openapi::api::core::v1::ConfigMap;

/// Set in the process that lives in the namespace.
const INSIDE: &str = "BOATSWAIN_TEST_IN_NAMESPACE";

fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip, of iproute2");
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

#[test]
fn a_connection_whose_packets_vanish_breaks_and_the_watch_resumes_without_a_list() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let name = "a_connection_whose_packets_vanish_breaks_and_the_watch_resumes_without_a_list";
    let output = Command::new("unshare")
        .arg("--map-root-user")
        .arg("--net")
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", "--nocapture", &format!("blackhole::{name}")])
        .env(INSIDE, "yes")
        .output()
        .expect("unshare, of util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn inside() {
    ip("link set lo up");
    // rules that come before the one for the machine's own addresses can be added only below it
    ip("rule add pref 100 lookup local");
    ip("rule del pref 0");

    let world = World::sim().await;
    let space = Space::create(&world.client().await, "hole").await;
    space.put("a", "first").await;
    let quick = ConnectOptions {
        idle: Duration::from_secs(1),
        interval: Duration::from_secs(1),
        probes: 2,
    };
    let client = mirror::client(world.kubeconfig(), None, &quick).await;
    // so patient that it finds out nothing by itself
    let options = InformerOptions {
        silence: Duration::from_secs(36_000),
        ..InformerOptions::default()
    };
    let scope = Scope::Namespace(space.name.clone());
    let selection = Selection::of::<ConfigMap>().within(scope);
    let mirror = Mirror::with(client, selection, options);
    mirror.is_as(&space.config_maps()).await;
    let before = mirror.status().counters;
    assert!(before.watch_ends.is_empty(), "{before:#?}");

    ip("rule add pref 10 blackhole");
    eventually("the dead connection is found", async || {
        let status = mirror.status();
        let ends = status.counters.watch_ends.get("closed");
        if ends == Some(&1) && !status.fresh {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await;
    ip("rule del pref 10");

    space.put("a", "second").await;
    mirror.is_as(&space.config_maps()).await;
    let after = mirror.status().counters;
    assert_eq!((after.lists, after.probes), (before.lists, 0), "{after:#?}");
    mirror.stop().await;
}
