//! The dashboard of the binary: its actions by hand, and `top` in a terminal.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]
#![cfg(all(feature = "embedded", target_os = "linux"))]

mod process;
mod terminal;

use std::{io::Read as _, io::Write as _, net::SocketAddr, net::TcpStream};

use process::{Process, binary, free, get, text};
use serde_json::{Value, json};
use terminal::Terminal;

const TOKEN: &str = "correct-horse-battery-staple";

fn embedded(dashboard: SocketAddr, more: &[&str]) -> Process {
    let address = dashboard.to_string();
    let process = Process::start(
        binary()
            .args(["run", "--embedded", "--dashboard-listen", &address])
            .args(more),
    );
    process.says(&["scaled", "default/web", "from=1", "to=3"]);
    // the line is from the midst of the run
    while last_run(dashboard).is_null() {}
    process
}

/// Asks for an action; the code of the answer and its words.
fn act(dashboard: SocketAddr, action: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(dashboard).expect("served");
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST /api/v1/actions/{action} HTTP/1.1\r\nHost: {dashboard}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let words = answer.rsplit("\r\n").next().unwrap_or_default().to_owned();
    (code.expect("a code"), words)
}

/// What is read at a path of the API.
fn read(dashboard: SocketAddr, path: &str) -> Value {
    let answer = get(&dashboard.to_string(), &format!("/api/v1/{path}")).expect("answered");
    let json = answer.split("\r\n\r\n").nth(1).expect("a body");
    serde_json::from_str(json).expect("JSON")
}

/// The last run of `default/web` that is over.
fn last_run(dashboard: SocketAddr) -> Value {
    read(dashboard, "keys/podautoscaler/default/web")["runs"][0]["id"].clone()
}

/// A picture that was taken after this was asked for: what is shown is at most a second old.
fn overview(dashboard: SocketAddr) -> Value {
    let at = |overview: &Value| overview["at_ms"].as_u64();
    let before = read(dashboard, "overview");
    loop {
        let next = read(dashboard, "overview");
        if at(&next) > at(&before) {
            return next;
        }
    }
}

#[test]
fn the_log_level_is_set_by_hand_nonsense_is_refused_and_what_people_did_is_always_logged() {
    let dashboard = free(7);
    let (process, _dir) = with_token(dashboard);
    let level = |filter: &str| act(dashboard, "log-level", &json!({ "filter": filter }));
    let run = || {
        let body = json!({ "controller": "podautoscaler", "key": "default/web" });
        act(dashboard, "requeue", &body)
    };
    let logged = || overview(dashboard)["process"]["logged"].clone();
    assert_eq!(logged(), "info,kube_client=off");
    for nonsense in ["inof", "", "kube=loud"] {
        let (code, told) = level(nonsense);
        assert_eq!(code, 400, "{told}");
        assert!(told.contains("does not say what to log"), "{told}");
        let line = process.says(&["WARN", "audit", "log-level"]);
        assert!(!line.contains("DEBUG"), "{line}");
    }
    assert_eq!(logged(), "info,kube_client=off", "nothing was changed");
    assert_eq!(level("debug").0, 200);
    assert_eq!(logged(), "debug", "as it was said");
    assert_eq!(run().0, 200);
    process.says(&["DEBUG"]);
    assert_eq!(level("off").0, 200);
    process.says(&["audit", "log-level", "off"]);
    // what people do is written down, what the crew does is not, but for a run that was about to be told when the level was set
    for _ in 0..5 {
        let before = last_run(dashboard);
        assert_eq!(run().0, 200);
        // every look waits for an answer
        while last_run(dashboard) == before {}
    }
    assert_eq!(level("info").0, 200);
    let lines: Vec<_> = process.until(&["audit", "log-level", "info"]);
    let count = |part| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("audit"), 6, "five runs and a level: {lines:#?}");
    assert!(count("reconciled") <= 1, "{lines:#?}");
    let unknown = json!({ "controller": "podautoscaler", "key": "default/nobody" });
    let (code, told) = act(dashboard, "requeue", &unknown);
    assert_eq!(code, 404, "{told}");
    let crooked = json!({ "controller": "podautoscaler", "key": "default/web/more" });
    let (code, told) = act(dashboard, "requeue", &crooked);
    assert_eq!(code, 400, "{told}");
    assert!(told.contains("is not a key"), "{told}");
}

#[test]
fn top_shows_a_manager_in_any_size_waits_for_one_that_went_away_and_always_ends() {
    let dashboard = free(8);
    let server = embedded(dashboard, &[]);
    let mut top = Terminal::start(&format!("top --dashboard {dashboard}"), 30, 110);
    top.sees(&[
        "All is well",
        "podautoscaler",
        "P99",
        "connection",
        "running",
    ]);
    top.size(24, 48);
    top.sees(&[
        "All is well",
        "CONTROLLER",
        "PARKED",
        "1 tree",
        "connection",
    ]);
    top.loses("P99");
    top.size(30, 110);
    // a key that comes together with a change of size is read with the next one only
    top.sees(&["P99"]);
    top.press("4");
    top.sees(&["podautoscalers", "watching", "objects"]);
    top.press("3");
    top.sees(&["nothing is parked"]);
    // it is killed, and comes back
    drop(server);
    top.sees(&["no dashboard answers"]);
    let server = embedded(dashboard, &[]);
    top.sees(&["All is well"]);
    // it stands still
    server.signal("-STOP");
    top.press("q");
    let left = top.ends();
    assert!(
        left.contains("\u{1b}[?1049l"),
        "the screen is as it was: {left:?}"
    );
    server.signal("-CONT");
    for (way, end) in [("Ctrl-C", "\u{3}"), ("Escape", "\u{1b}")] {
        let mut top = Terminal::start(&format!("top --dashboard {dashboard}"), 5, 20);
        top.sees(&["All is well"]);
        top.press(end);
        let left = top.ends();
        assert!(left.contains("\u{1b}[?1049l"), "{way}: {left:?}");
    }
    let mut top = Terminal::start(&format!("top --dashboard {dashboard}"), 30, 110);
    top.sees(&["All is well"]);
    top.signal("-TERM");
    let left = top.ends();
    assert!(left.contains("\u{1b}[?1049l"), "SIGTERM: {left:?}");
    let mut top = Terminal::start(&format!("top --dashboard {dashboard}"), 30, 110);
    top.sees(&["All is well"]);
    top.hangs_up();
}

#[test]
fn top_without_a_terminal_or_a_manager_is_one_line_that_says_so() {
    let nobody = free(9).to_string();
    let output = process::output(&["top", "--dashboard", &nobody]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("terminal"), "{error}");
    assert!(output.stdout.is_empty(), "{:?}", text(&output.stdout));
    let output = process::output(&["explain", "pa", "default/web", "--dashboard", &nobody]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(&nobody) && error.contains("port-forward"),
        "{error}"
    );
}

/// A dashboard that takes the token.
fn with_token(dashboard: SocketAddr) -> (Process, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let token = dir.path().join("token");
    std::fs::write(&token, TOKEN).expect("written");
    let flag = format!("--dashboard-token-file={}", token.display());
    (embedded(dashboard, &[&flag]), dir)
}

#[test]
fn explain_tells_five_runs_with_cause_time_decision_and_writes_the_newest_first() {
    let dashboard = free(12);
    let (_server, _dir) = with_token(dashboard);
    for _ in 0..6 {
        let before = last_run(dashboard);
        let body = json!({ "controller": "podautoscaler", "key": "default/web" });
        assert_eq!(act(dashboard, "requeue", &body).0, 200);
        // every look waits for an answer
        while last_run(dashboard) == before {}
    }
    let address = dashboard.to_string();
    let asked = ["explain", "podautoscaler", "default/web", "--dashboard"];
    let output = process::output(&[&asked[..], &[&address]].concat());
    let told = text(&output.stdout);
    let runs: Vec<_> = told
        .lines()
        .filter(|line| line.starts_with("  last run ") || line.starts_with("  run before "))
        .collect();
    assert_eq!(runs.len(), 5, "{told}");
    assert!(runs[0].starts_with("  last run "), "{told}");
    let id = |line: &str| line.split_once(": began").map(|(name, _)| name.to_owned());
    let newest = last_run(dashboard);
    let newest = newest.as_str().expect("an id");
    assert!(id(runs[0]).is_some_and(|name| name.ends_with(newest)));
    for run in &runs {
        assert!(run.contains("took ") && run.contains("because: "), "{told}");
    }
    assert_eq!(told.matches("it decided: InSync: ").count(), 5, "{told}");
    assert_eq!(told.matches("    it wrote ").count(), 5, "{told}");
}

#[test]
fn no_name_and_no_reason_reaches_the_log_or_a_terminal_as_more_than_letters() {
    let dashboard = free(14);
    let (process, _dir) = with_token(dashboard);
    let is_raw = |text: &str| text.contains(['\u{202e}', '\u{1b}', '\u{7}']);
    let pause = json!({ "controller": "podautoscaler", "reason": "\u{202e}a storm\u{7}" });
    assert_eq!(act(dashboard, "pause", &pause).0, 200);
    for words in [["paused", "a storm"], ["audit", "a storm"]] {
        let line = process.says(&words);
        assert!(!is_raw(&line), "{line:?}");
    }
    let key = "default/\u{202e}web\u{1b}[2J";
    let requeue = json!({ "controller": "podautoscaler", "key": key });
    assert_eq!(act(dashboard, "requeue", &requeue).0, 404);
    let line = process.says(&["audit", "requeue"]);
    assert!(!is_raw(&line), "{line:?}");
    let address = dashboard.to_string();
    let output = process::output(&["explain", "podautoscaler", key, "--dashboard", &address]);
    let error = text(&output.stderr);
    assert!(
        error.contains("there is no key") && !is_raw(&error),
        "{error:?}"
    );
}

#[test]
fn explain_says_why_an_object_last_ran_by_any_name_of_its_kind() {
    let dashboard = free(10);
    let _server = embedded(dashboard, &[]);
    let address = dashboard.to_string();
    for kind in ["PodAutoscaler", "podautoscalers"] {
        let output = process::output(&["explain", kind, "default/web", "--dashboard", &address]);
        let told = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(told.starts_with("default/web of podautoscaler: "), "{told}");
        assert!(told.contains("it wrote"), "{told}");
        assert!(
            told.contains("it decided: Scaled: Deployment web was changed from 1 to 3 replicas"),
            "{told}"
        );
    }
    for (unknown, words) in [
        ("default/web/more", "NAMESPACE/NAME"),
        ("default/", "NAMESPACE/NAME"),
        (
            "web",
            "there is no key web of podautoscaler; names are NAMESPACE/NAME, did you mean default/web?",
        ),
        (
            "shop/web",
            "there is no key shop/web of podautoscaler; did you mean default/web?",
        ),
        (
            "default/nobody",
            "there is no key default/nobody of podautoscaler\n",
        ),
    ] {
        let output =
            process::output(&["explain", "podautoscaler", unknown, "--dashboard", &address]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(words), "{error}");
        assert!(output.stdout.is_empty(), "{:?}", text(&output.stdout));
    }
    let page = get(&address, "/").expect("the page");
    assert!(page.contains("<title>Boatswain</title>"), "{page}");
}
