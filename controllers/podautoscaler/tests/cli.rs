//! The binary as its users meet it.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod process;

use std::net::TcpListener;
#[cfg(all(feature = "embedded", target_os = "linux"))]
use std::{process::Stdio, sync::mpsc};

use process::{Process, binary, free, get, output, text};

#[test]
fn help_names_every_command_and_flag() {
    let help = text(&output(&["--help"]).stdout);
    for word in ["run", "crd", "manifests", "check"] {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    let help = text(&output(&["run", "--help"]).stdout);
    for flag in [
        "--kubeconfig",
        "--context",
        "--namespace",
        "--embedded",
        "--workers",
        "--selector",
        "--resync",
        "--max-retries",
        "--listen",
        "--log-format",
    ] {
        assert!(help.contains(flag), "{flag} is missing in:\n{help}");
    }
}

#[test]
fn the_help_of_check_has_its_own_flags_only_and_understands_those_of_run() {
    let help = text(&output(&["check", "--help"]).stdout);
    for flag in ["--kubeconfig", "--namespace", "--leader-elect", "--config"] {
        assert!(help.contains(flag), "{flag} is missing in:\n{help}");
    }
    for flag in [
        "--workers",
        "--dashboard",
        "--patience",
        "--qps",
        "--listen",
    ] {
        assert!(!help.contains(flag), "{flag} is in:\n{help}");
    }
    let flags = ["check", "--workers", "3", "--kubeconfig", "/nonexistent/k"];
    let error = text(&output(&flags).stderr);
    assert!(error.contains("/nonexistent/k"), "{error}");
}

#[test]
fn the_version_of_the_cluster_is_told_as_people_write_it() {
    let help = text(&output(&["manifests", "--help"]).stdout);
    assert!(help.contains("[default: 1.36]"), "{help}");
    let of = |version: &str| {
        let output = output(&["manifests", "--kubernetes-version", version]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(of("1.36"), text(&output(&["manifests"]).stdout));
    assert_eq!(of("v1.20.2"), of("20"));
    assert_ne!(of("1.20"), of("1.36"));
}

#[test]
fn what_the_environment_says_wrongly_is_told_by_the_name_of_its_variable() {
    for (variable, value) in [
        ("NAMESPACE", "shop,Shop"),
        ("WORKERS", "many"),
        ("SELECTOR", "app in"),
        ("RESYNC", "15"),
        ("MAX_RETRIES", "-1"),
        ("LISTEN", "8080"),
        ("DASHBOARD_LISTEN", "everywhere"),
        ("GRACE_PERIOD", "-1s"),
        ("PATIENCE", ""),
        ("QPS", "0"),
        ("BURST", "0.5"),
        ("LEADER_ELECT", "yes"),
        ("LEASE_NAME", "The Lease"),
        ("LEASE_NAMESPACE", "a.b"),
        ("LEASE_PER_CONTROLLER", "1"),
        ("LEASE_DURATION", "soon"),
        ("RENEW_DEADLINE", "9000h"),
        ("RETRY_PERIOD", "2 m s"),
        ("VERBOSITY", "300"),
        ("LOG_FORMAT", "xml"),
        ("CONFIG", "/nonexistent/crew.yaml"),
    ] {
        let variable = format!("BOATSWAIN_{variable}");
        let output = binary()
            .args(["run", "--print-config"])
            .env(&variable, value)
            .output()
            .expect("the binary runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{variable}: {error}");
        let first = error.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("error: ") && first.contains(&variable),
            "{variable}: {error}"
        );
        assert_eq!(error.matches("error: ").count(), 1, "{error}");
        // the flag is as innocent as the word before it
        let flag = variable.trim_start_matches("BOATSWAIN_");
        let flag = format!("'--{}", flag.to_lowercase().replace('_', "-"));
        assert!(!first.contains(&flag), "{error}");
    }
    let output = output(&["run", "--print-config", "--workers=many"]);
    let error = text(&output.stderr);
    assert!(error.contains("'--workers <N>'"), "{error}");
}

#[cfg(unix)]
#[test]
fn settings_whose_reader_has_seen_enough_are_no_error() {
    use std::process::Stdio;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = binary()
        .args(["run", "--print-config"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn an_installation_that_makes_no_sense_is_refused_in_one_line_before_anything_is_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("chart");
    let into = folder.display().to_string();
    let kustomize = ["--format", "kustomize", "--into", &into];
    let helm = ["--format", "helm", "--into", &into];
    let given = |more: [&'static str; 2]| [&helm[..], &more[..]].concat();
    for (words, named) in [
        (vec!["--namespace", "Ops"], "--namespace"),
        (vec!["--namespace", ""], "--namespace"),
        (vec!["--work-in", "shop,a.b"], "--work-in"),
        (vec!["--work-in", "shop,"], "--work-in"),
        (vec!["--work-in", "shop", "--work-in", "shop"], "shop"),
        (vec!["--image", ""], "--image"),
        (vec!["--image", "two words"], "--image"),
        (vec!["--kubernetes-version", "1.19"], "--kubernetes-version"),
        (vec!["--kubernetes-version", "2.30"], "--kubernetes-version"),
        (
            vec!["--kubernetes-version", "1.999"],
            "--kubernetes-version",
        ),
        (vec!["--kubernetes-version", "new"], "--kubernetes-version"),
        (vec!["--format", "helm"], "--into"),
        (vec!["--format", "yam"], "--format"),
        (vec!["--into", &into], "--into"),
        (
            [&kustomize[..], &["--work-in", "a,a"]].concat(),
            "--work-in",
        ),
        (given(["--image", "a:b"]), "--image"),
        (given(["--namespace", "ops"]), "--namespace"),
        (given(["--work-in", "ops"]), "--work-in"),
        (
            given(["--kubernetes-version", "1.20"]),
            "--kubernetes-version",
        ),
    ] {
        let output = output(&[&["manifests"], &words[..]].concat());
        let error = text(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{words:?}: {error}"
        );
        assert_eq!(text(&output.stdout), "", "{words:?}");
        let lines: Vec<_> = error.lines().filter(|l| l.starts_with("error: ")).collect();
        assert_eq!(lines.len(), 1, "{words:?}: {error}");
        assert!(error.contains(named), "{words:?}: {error}");
    }
    assert!(!folder.exists(), "something was written");
}

#[test]
fn a_missing_kubeconfig_is_one_line_and_a_code_that_is_not_zero() {
    let output = output(&["run", "--kubeconfig", "/nonexistent/kubeconfig"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.contains("/nonexistent/kubeconfig") && error.contains("--kubeconfig"),
        "{error}"
    );
}

#[test]
fn a_taken_port_is_one_line_and_a_code_that_is_not_zero() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = output(&[
        "run",
        "--kubeconfig",
        "/nonexistent/kubeconfig",
        "--listen",
        &address,
    ]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(&address) && error.contains("--listen"),
        "{error}"
    );
}

#[cfg(feature = "embedded")]
#[test]
fn the_dashboards_own_address_that_is_taken_is_an_error_where_somebody_asks_for_it() {
    // others may have it already, which is as good
    let _taken = TcpListener::bind("127.0.0.1:8081");
    let dir = tempfile::tempdir().expect("a folder");
    let token = dir.path().join("token");
    std::fs::write(&token, "correct-horse-battery-staple").expect("written");
    let listen = ["--dashboard-listen", "127.0.0.1:8081"];
    let token = token.display().to_string();
    for asked in [listen, ["--dashboard-token-file", &token]] {
        let output = output(&[&["run", "--embedded"][..], &asked].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let last = error.lines().last().unwrap_or_default();
        for words in ["error: ", "127.0.0.1:8081", "--dashboard-listen"] {
            assert!(last.contains(words), "{error}");
        }
    }
}

#[cfg(feature = "embedded")]
#[test]
fn the_embedded_server_scales_and_a_signal_ends_it_in_order() {
    for signal in ["-TERM", "-INT"] {
        let process = Process::start(binary().args(["run", "--embedded"]));
        process.says(&["scaled", "default/web", "from=1", "to=3"]);
        process.signal(signal);
        process.says(&["stopped"]);
        let (code, out) = process.ends();
        assert_eq!(code, Some(0));
        let path = out
            .trim()
            .strip_prefix("KUBECONFIG=")
            .expect("the kubeconfig is printed")
            .to_owned();
        assert!(
            !std::path::Path::new(&path).exists(),
            "{path} is left behind"
        );
    }
}

#[test]
fn an_unreachable_cluster_is_named_with_its_cause_and_tried_again_and_readiness_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let kubeconfig = dir.path().join("kubeconfig");
    // nobody listens on a port that was just given back
    let (server, listen) = (free(2), free(3));
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: 'http://{server}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    std::fs::write(&kubeconfig, config).expect("written");
    let process = Process::start(
        binary()
            .args(["run", "--listen", &listen.to_string(), "--kubeconfig"])
            .arg(&kubeconfig),
    );
    let address = server.to_string();
    let line = process.says(&["cannot reach the API server", &address, "refused"]);
    assert!(line.contains("retry"), "{line}");
    process.says(&["cannot reach the API server", &address, "refused"]);

    let page = |path| get(&listen.to_string(), path).expect("answered");
    let ready = page("/readyz?verbose");
    assert!(ready.starts_with("HTTP/1.1 500"), "{ready}");
    assert!(
        ready.contains("[-]api-server failed") && ready.contains("refused"),
        "{ready}"
    );
    assert!(page("/healthz").starts_with("HTTP/1.1 200"));
    process.signal("-TERM");
    assert_eq!(process.ends().0, Some(0));
}

#[cfg(unix)]
#[test]
fn a_start_that_hangs_answers_the_first_signal() {
    let dir = tempfile::tempdir().expect("a folder");
    let (kubeconfig, asked) = (dir.path().join("kubeconfig"), dir.path().join("asked"));
    // gives no credentials for as long as anybody waits for them
    let hangs = format!(
        "touch {}; while kill -0 $PPID; do sleep 0.1; done",
        asked.display()
    );
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": "http://127.0.0.1:1" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", hangs],
        } } }],
    });
    std::fs::write(&kubeconfig, config.to_string()).expect("written");
    let mut process = Process::start(binary().args(["run", "--kubeconfig"]).arg(&kubeconfig));
    while !asked.exists() {
        let ended = process.child.try_wait().expect("asked");
        assert_eq!(ended, None, "it has ended");
        std::thread::yield_now();
    }
    process.signal("-TERM");
    process.says(&["stopped before the start was over"]);
    assert_eq!(process.ends().0, Some(0));
}

#[cfg(all(feature = "embedded", target_os = "linux"))]
#[test]
fn a_log_that_cannot_be_written_is_lost_and_the_work_goes_on() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full disk");
    let listen = free(4).to_string();
    let mut command = binary();
    command
        .args(["run", "--embedded", "--listen", &listen])
        .stdout(Stdio::piped())
        .stderr(full);
    let (_, lines) = mpsc::channel();
    let mut process = Process {
        child: command.spawn().expect("started"),
        lines,
    };
    while !get(&listen, "/readyz").is_ok_and(|page| page.starts_with("HTTP/1.1 200")) {
        assert_eq!(
            process.child.try_wait().expect("asked"),
            None,
            "it has ended"
        );
        std::thread::yield_now();
    }
    process.signal("-TERM");
    assert_eq!(process.ends().0, Some(0));
}

#[cfg(feature = "embedded")]
#[test]
fn the_check_prints_a_table_and_fails_where_a_right_is_missing() {
    let mut process = Process::start(binary().args(["run", "--embedded"]));
    process.says(&["scaled", "default/web"]);
    let path = process.prints("KUBECONFIG=");
    let check = |path: &str| output(&["check", "--leader-elect", "--kubeconfig", path]);
    let allowed = check(&path);
    let table = text(&allowed.stdout);
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
    assert!(table.starts_with("NAMESPACE "), "{table}");
    assert_eq!(
        table.lines().filter(|l| l.ends_with(" yes")).count(),
        13,
        "{table}"
    );

    let admin = std::fs::read_to_string(&path).expect("a kubeconfig");
    let dir = tempfile::tempdir().expect("a folder");
    let viewer = dir.path().join("kubeconfig");
    std::fs::write(&viewer, admin.replace("admintoken", "viewertoken")).expect("written");
    let refused = check(&viewer.display().to_string());
    let (table, error) = (text(&refused.stdout), text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert_eq!(
        table.lines().filter(|l| l.ends_with(" no")).count(),
        13,
        "{table}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("13 of 13 rights are missing"), "{error}");
}

#[cfg(feature = "embedded")]
#[test]
fn a_rust_log_that_says_nothing_or_nonsense_does_not_silence_the_program() {
    for said in ["", "info,["] {
        let mut command = binary();
        command.args(["run", "--embedded", "--dashboard-listen=off"]);
        let process = Process::start(command.env("RUST_LOG", said));
        let before = process.until(&["scaled", "default/web"]);
        let told = before.iter().any(|line| line.contains("RUST_LOG"));
        assert_eq!(told, !said.is_empty(), "{before:#?}");
        process.signal("-TERM");
        assert_eq!(process.ends().0, Some(0));
    }
}

#[cfg(feature = "embedded")]
#[test]
fn a_line_of_json_names_each_span_once() {
    let mut command = binary();
    let process = Process::start(command.args(["run", "--embedded", "--log-format", "json"]));
    let line = process.says(&["scaled", "default/web"]);
    assert_eq!(line.matches("\"name\":\"reconcile\"").count(), 1, "{line}");
}
