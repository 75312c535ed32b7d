//! The page while the program it shows is killed, stands still, and comes back.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::{driver::Browser, scene::TOKEN};

/// The program, with a server in it.
struct Program(Child);

impl Program {
    fn start(dashboard: SocketAddr) -> Self {
        Self::start_with(dashboard, &[])
    }

    fn start_with(dashboard: SocketAddr, more: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_replica"))
            .args(["run", "--embedded", "--dashboard-listen"])
            .arg(dashboard.to_string())
            .args(more)
            .env_remove("RUST_LOG")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("started"))
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_outlives_a_process_that_is_killed_or_stands_still() {
    // nobody dials from there, so that nobody is given the port meanwhile
    let address = TcpListener::bind("127.0.0.11:0").and_then(|listener| listener.local_addr());
    let address = address.expect("an address");
    let program = Program::start(address);
    let browser = Browser::start().await;
    boatswain_tests::eventually("it is served", async || {
        tokio::net::TcpStream::connect(address).await.map(drop)
    })
    .await;
    browser.open(&format!("http://{address}/")).await;
    browser.sees("#link", "live").await;
    browser.sees("#tree", "podautoscaler").await;
    // far down, where the headline is not to be seen
    browser.size(390, 420, true).await;
    let seen = async || {
        let look = "const box = (id) => document.getElementById(id).getBoundingClientRect(); const inside = (box) => box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; return [inside(box('health-line')), inside(box('brief'))]";
        browser.run(look, json!([])).await
    };
    assert_eq!(seen().await, json!([true, false]));
    let down = "window.scrollTo({ top: 1e6, behavior: 'instant' }); return scrollY > 200";
    assert_eq!(browser.run(down, json!([])).await, true);
    assert_eq!(seen().await, json!([false, false]), "all is well");
    program.signal("-STOP");
    browser.sees("#link", "connection lost").await;
    browser.sees("#brief", "does not answer").await;
    assert_eq!(seen().await, json!([false, true]));
    // it is not known how things are
    browser.sees("#health-line", "does not answer").await;
    program.signal("-CONT");
    browser.sees("#link", "live").await;
    // killed, without a word: that is known at once
    let note = "window.after = null; const line = document.getElementById('health-line'), from = performance.now(); new MutationObserver(() => { if (line.textContent.includes('does not answer')) window.after ??= performance.now() - from; }).observe(line, { childList: true, characterData: true, subtree: true })";
    browser.run(note, json!([])).await;
    drop(program);
    browser.sees("#link", "connection lost").await;
    browser.sees("#health-line", "does not answer").await;
    let after = browser.run("return window.after", json!([])).await;
    assert!(
        after.as_f64().is_some_and(|after| after < 3000.0),
        "{after}"
    );
    let _program = Program::start(address);
    browser.sees("#link", "live").await;
    browser.sees("#health-line", "All is well").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_logged_is_shown_and_a_dialog_begins_with_it_and_stays_until_it_is_done() {
    let address = TcpListener::bind("127.0.0.13:0").and_then(|listener| listener.local_addr());
    let address = address.expect("an address");
    let dir = tempfile::tempdir().expect("a folder");
    let token = dir.path().join("token");
    std::fs::write(&token, TOKEN).expect("written");
    let flag = format!("--dashboard-token-file={}", token.display());
    let _program = Program::start_with(address, &[&flag]);
    let browser = Browser::start().await;
    boatswain_tests::eventually("it is served", async || {
        tokio::net::TcpStream::connect(address).await.map(drop)
    })
    .await;
    browser.open(&format!("http://{address}/")).await;
    browser.sees("#logged", "info,kube_client=off").await;
    browser.click("#lock").await;
    browser.fill("#ask-input", TOKEN).await;
    browser.click("#ask-yes").await;
    browser.sees("#lock", "Lock actions").await;
    let typed = async || {
        let typed = "return document.getElementById('ask').open && document.getElementById('ask-input').value";
        browser.run(typed, json!([])).await
    };
    browser.click("#loglevel").await;
    browser.sees("#ask-title", "What is logged").await;
    assert_eq!(typed().await, "info,kube_client=off");
    browser.fill("#ask-input", "inof").await;
    browser.click("#ask-yes").await;
    browser.sees("#ask-error", "is no level").await;
    assert_eq!(typed().await, "inof", "it can be mended");
    browser.fill("#ask-input", "warn,kube=debug").await;
    browser.click("#ask-yes").await;
    browser.sees(".toast", "what is logged now").await;
    browser.sees("#logged", "warn,kube=debug").await;
    assert_eq!(typed().await, false, "the dialog is closed");
    browser.click("#loglevel").await;
    browser.sees("#ask-title", "What is logged").await;
    assert_eq!(typed().await, "warn,kube=debug");
}
