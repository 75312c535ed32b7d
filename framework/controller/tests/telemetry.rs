//! Metrics and probes over their own socket, on real threads and without a server.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use boatswain::{
    Controller, Handle, Manager, Options, Outcome, StartError,
    testing::{apisim::ApiSim, assert_clean},
};
use k8s_openapi::api::core::v1::ConfigMap;

/// Longer than anything may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "others work meanwhile")]
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never {what}");
}

fn spawn(listen: SocketAddr) -> Result<Handle, StartError> {
    let idler = Controller::<ConfigMap>::named("idler")
        .reconcile_with(Arc::new(()), |_, _| async {
            Ok::<_, Infallible>(Outcome::Done)
        });
    let options = Options {
        listen: Some(listen),
        ..Options::default()
    };
    let sim = ApiSim::new(boatswain::testing::apisim::Options::default());
    let manager = Manager::new(options).with(idler);
    manager.spawn_over(move || kube::Client::new(sim.service(), "default"))
}

/// An address that was just given back, of a host that nobody dials from where the system has more than one: no other process is given it meanwhile.
fn free() -> SocketAddr {
    let host = if cfg!(target_os = "linux") { 5 } else { 1 };
    TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0))
        .and_then(|listener| listener.local_addr())
        .expect("a port")
}

/// Asks for a page, and waits for it as long as it takes.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

fn is_ready(address: SocketAddr) -> bool {
    get(address, "/readyz?verbose").is_ok_and(|page| page.starts_with("HTTP/1.1 200"))
}

#[test]
fn an_address_for_probes_that_is_taken_is_named_at_the_start_with_the_flag_and_nothing_runs() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = taken.local_addr().expect("an address");
    let error = spawn(address).err().expect("refused");
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
    let error = error.to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    for words in [&address.to_string(), "--listen"] {
        assert!(error.contains(words), "{error}");
    }
    // it is free again for whoever comes next
    drop(taken);
    let manager = spawn(address).expect("started");
    manager.stop().expect("an orderly stop");
}

#[test]
fn probes_that_crash_are_answered_again_at_the_same_address_and_nothing_else_restarts() {
    let address = free();
    let manager = spawn(address).expect("started");
    let observer = manager.observer().clone();
    until("ready", || is_ready(address));
    let restarts = |path: &str| observer.snapshot().find(path).map(|node| node.restarts);
    for crash in 1..=2 {
        assert!(observer.kill("root/telemetry"));
        until("restarted", || restarts("root/telemetry") == Some(crash));
        // the socket outlives the actor: who asked meanwhile is answered, and not refused
        let page = get(address, "/readyz?verbose").expect("answered");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        let page = get(address, "/metrics").expect("answered");
        assert!(page.contains("controller_queue_depth"), "{page}");
    }
    for other in ["root", "root/informers", "root/controllers"] {
        assert_eq!(restarts(other), Some(0), "{other}");
    }
    manager.stop().expect("an orderly stop");
    assert_clean(&observer);
    assert!(
        get(address, "/readyz").is_err(),
        "the socket is still there"
    );
}
