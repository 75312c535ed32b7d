use std::{io::Write as _, time::Duration};

use clap::Parser;

use super::*;
use crate::leader::TermsError;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    manager: ManagerArgs,
}

fn args(words: &[&str]) -> ManagerArgs {
    Cli::try_parse_from([&["test"], words].concat())
        .expect("parses")
        .manager
}

fn file(suffix: &str, text: &str) -> tempfile::TempPath {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.into_temp_path()
}

fn with_config(words: &[&str], path: &std::path::Path) -> Result<Options, OptionsError> {
    let path = path.to_str().unwrap();
    args(&[words, &["--config", path]].concat()).try_into()
}

#[test]
fn nothing_said_is_the_defaults() {
    let defaults = Options {
        // who takes flags is seen, on this machine
        dashboard: Some(DashboardOptions::default()),
        ..Options::default()
    };
    assert_eq!(Options::try_from(args(&[])).unwrap(), defaults);
}

#[test]
fn flags_overrule_a_file_and_a_file_overrules_defaults() {
    for (suffix, text) in [
        (
            ".yaml",
            "workers: 7\nqps: 20\ngrace-period: 1m30s\nnamespace: [shop]\n",
        ),
        (
            ".toml",
            "workers = 7\nqps = 20\ngrace-period = \"1m30s\"\nnamespace = [\"shop\"]\n",
        ),
    ] {
        let file = file(suffix, text);
        let options = with_config(&["--workers", "9"], &file).unwrap();
        assert_eq!(options.workers, 9);
        assert_eq!(options.limits.qps.get(), 20);
        assert_eq!(options.limits.burst.get(), 100);
        assert_eq!(options.grace, Duration::from_secs(90));
        assert_eq!(options.namespaces, ["shop"]);
    }
}

#[test]
fn every_flag_is_also_a_setting_of_the_environment() {
    use clap::CommandFactory as _;
    for arg in Cli::command().get_arguments() {
        let id = arg.get_id().as_str();
        if ["print_config", "help"].contains(&id) {
            continue;
        }
        let long = arg.get_long().unwrap_or_default();
        let expected = format!("BOATSWAIN_{}", long.to_uppercase().replace('-', "_"));
        let env = arg.get_env().and_then(|name| name.to_str());
        assert_eq!(env, Some(expected.as_str()), "--{long}");
    }
}

#[test]
fn what_a_file_says_wrongly_is_told_with_its_place() {
    for (suffix, text, words) in [
        (".yaml", "wokers: 7\n", "wokers"),
        (".yaml", "workers: many\n", "1"),
        (".yaml", "workers: 0\n", "from 1 to 1000"),
        (".yaml", "grace-period: soon\n", "no duration"),
        (".yaml", "namespace: [Shop]\n", "lower case"),
        (".yaml", "qps: 1\nqps: 2\n", "line 2"),
        (".yaml", "qps: 20\nresync: -1s\n", "line 2"),
        (".yaml", "qps: 20\nnamespace: shop\n", "line 2"),
        (".yaml", "- qps\n", "line 1"),
        (".yaml", "lease-namespace: Shop\n", "lease-namespace"),
        (".yaml", "lease-name: The Fixer\n", "lease-name"),
        (".toml", "\nqps = 0\n", "line 2"),
        (".toml", "\nwokers = 7\n", "line 2"),
        (".toml", "workers", "line 1"),
        (".toml", "qps = 1\nqps = 2\n", "line 2"),
        (".toml", "[leader]\nelect = true\n", "leader"),
        (".toml", "qps = 20\nresync = 15\n", "line 2"),
    ] {
        let file = file(suffix, text);
        let error = with_config(&[], &file).unwrap_err().to_string();
        assert!(error.contains(words), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(file.to_str().unwrap()), "{error}");
    }
    let error = with_config(&[], "/nonexistent/crew.yaml".as_ref()).unwrap_err();
    assert!(error.to_string().contains("--config"), "{error}");
}

#[test]
fn a_file_that_holds_no_settings_is_told_from_one_that_holds_none() {
    for (suffix, text) in [
        (".yaml", ""),
        (".toml", ""),
        (".yaml", " \n\n"),
        (".yaml", "# nothing yet\n---\n"),
        (".toml", "# nothing yet\n"),
        (".yaml", "\u{feff}"),
    ] {
        let file = file(suffix, text);
        let options = with_config(&[], &file).expect(text);
        assert_eq!(options, args(&[]).try_into().unwrap(), "{text:?}");
    }
    for (suffix, text) in [
        (".yaml", "\u{feff}qps: 7\n"),
        (".toml", "\u{feff}qps = 7\n"),
    ] {
        let file = file(suffix, text);
        assert_eq!(with_config(&[], &file).unwrap().limits.qps.get(), 7);
    }
    let folder = tempfile::tempdir().unwrap();
    let error = with_config(&[], folder.path()).unwrap_err().to_string();
    assert!(error.contains("directory"), "{error}");
    // something that never ends, and one that is no text
    let bytes = |bytes: &[u8]| {
        let file = file(".yaml", "");
        std::fs::write(&file, bytes).unwrap();
        with_config(&[], &file).unwrap_err().to_string()
    };
    let error = bytes("qps: 7\n".repeat(1 << 20).as_bytes());
    assert!(error.contains("longer than"), "{error}");
    let error = bytes(b"qps: 7\nselector: \xff\n");
    assert!(
        error.contains("line 2") && error.contains("UTF-8"),
        "{error}"
    );
}

#[test]
fn settings_that_contradict_each_other_are_told_with_the_file_that_says_a_part() {
    let path = file(".yaml", "leader-elect: true\nlease-duration: 5s\n");
    let error = with_config(&[], &path).unwrap_err().to_string();
    for words in ["--renew-deadline", path.to_str().unwrap()] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(with_config(&["--renew-deadline", "4s", "--retry-period", "1s"], &path).is_ok());
    let path = file(".yaml", "lease-name: x\n");
    let error = with_config(&[], &path).unwrap_err().to_string();
    assert!(
        error.contains("--lease-name") && error.contains(path.to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn of_no_time_at_all_some_settings_make_never_and_others_say_what_they_need() {
    let options = |words: &[&str]| Options::try_from(args(words));
    assert_eq!(options(&["--resync", "0s"]).unwrap().resync, None);
    assert_eq!(options(&["--patience", "0s"]).unwrap().patience, None);
    assert_eq!(
        options(&["--grace-period", "0s"]).unwrap().grace,
        Duration::ZERO
    );
    let error = options(&["--resync", "1ms"]).unwrap_err().to_string();
    assert!(error.contains("--resync 1ms"), "{error}");
    for flag in ["--lease-duration", "--renew-deadline", "--retry-period"] {
        let error = options(&["--leader-elect", flag, "0s"]).unwrap_err();
        assert!(matches!(error, OptionsError::Terms(_)), "{flag}: {error}");
    }
}

#[test]
fn a_time_below_zero_is_told_as_such_and_not_as_another_flag() {
    for flag in [
        "--resync",
        "--grace-period",
        "--patience",
        "--lease-duration",
    ] {
        let error = Cli::try_parse_from(["test", flag, "-1s"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(flag) && error.contains("no duration"),
            "{error}"
        );
    }
}

#[test]
fn settings_that_are_printed_are_read_back_as_the_same() {
    let said = args(&[
        "--leader-elect",
        "--lease-duration",
        "30s",
        "-n",
        "a",
        "b",
        "--listen",
        "0.0.0.0:8080",
    ]);
    let text = said.clone().to_yaml().unwrap();
    let file = file(".yaml", &text);
    let read = with_config(&[], &file).unwrap();
    assert_eq!(read, said.try_into().unwrap());
    assert!(text.contains("lease-duration: 30s"), "{text}");
    assert!(
        text.contains("renew-deadline: 10s"),
        "defaults are spelled out: {text}"
    );
    assert_eq!(read.leader.unwrap().terms.duration, Duration::from_secs(30));
    for words in [
        &[][..],
        &[
            "--resync",
            "0s",
            "--patience",
            "0s",
            "--grace-period",
            "1500us",
        ],
        &[
            "--resync",
            "8760h",
            "--selector",
            "app in (b,a),!c",
            "-v",
            "4",
        ],
        &[
            "--leader-elect=false",
            "--lease-name",
            "x",
            "--retry-period",
            "1s",
        ],
        &[
            "--leader-elect",
            "--lease-per-controller",
            "--lease-namespace",
            "123",
        ],
        &["--dashboard-host", "a", "b", "-n", "1e3,true"],
        &["--dashboard-listen", "off"],
        &[
            "--kubeconfig",
            "a: b # c",
            "--context",
            "null",
            "--log-format",
            "json",
        ],
        &["--dashboard-listen", "[::1]:8081", "--listen", "[::]:8080"],
    ] {
        let said = args(words);
        let text = said.clone().to_yaml().unwrap();
        let file = self::file(".yaml", &text);
        let read = with_config(&[], &file).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, said.try_into().unwrap(), "{text}");
    }
}

#[test]
fn a_dashboard_that_somebody_speaks_of_is_required_and_one_that_is_off_takes_no_settings() {
    let dashboard = |words: &[&str]| Options::try_from(args(words)).map(|found| found.dashboard);
    let required = |words: &[&str]| dashboard(words).unwrap().expect("a dashboard").required;
    assert!(!required(&[]), "nobody has asked for it");
    for words in [
        ["--dashboard-listen", "127.0.0.1:8081"],
        ["--dashboard-listen", "127.0.0.1:9"],
        ["--dashboard-token-file", "/etc/token"],
        ["--dashboard-host", "ops.example.com"],
    ] {
        assert!(required(&words), "{words:?}");
    }
    assert_eq!(dashboard(&["--dashboard-listen", "off"]).unwrap(), None);
    for (flag, value) in [
        ("--dashboard-token-file", "/etc/token"),
        ("--dashboard-host", "ops.example.com"),
    ] {
        let error = dashboard(&["--dashboard-listen=off", flag, value]).unwrap_err();
        assert!(error.to_string().starts_with(flag), "{error}");
    }
    let file = file(".yaml", "dashboard-listen: 127.0.0.1:8081\n");
    let said = with_config(&[], &file).unwrap();
    assert!(said.dashboard.expect("a dashboard").required);
    // printing what is set asks for nothing
    let text = args(&[]).to_yaml().unwrap();
    assert!(
        text.contains("# dashboard-listen: 127.0.0.1:8081"),
        "{text}"
    );
}

#[test]
fn an_election_is_asked_for_in_one_word() {
    let leader = |words: &[&str]| Options::try_from(args(words)).map(|options| options.leader);
    assert_eq!(
        leader(&["--leader-elect"]).unwrap(),
        Some(LeaderOptions::default())
    );
    assert_eq!(
        leader(&["--leader-elect=false", "--lease-name", "x"]).unwrap(),
        None
    );
    assert!(matches!(
        leader(&["--lease-name", "x"]),
        Err(OptionsError::NoElection("lease-name"))
    ));
    let error = leader(&["--lease-per-controller"]).unwrap_err();
    assert!(matches!(
        error,
        OptionsError::NoElection("lease-per-controller")
    ));
    let error = leader(&["--leader-elect", "--renew-deadline", "14s"]).unwrap_err();
    assert!(matches!(
        error,
        OptionsError::Terms(TermsError::Deadline { .. })
    ));
}

#[test]
fn a_lease_per_controller_is_asked_for_by_flag_or_file_and_printed() {
    let file = file(".yaml", "leader-elect: true\nlease-per-controller: true\n");
    let each = |words: &[&str]| with_config(words, &file).unwrap().leader.unwrap();
    assert!(each(&[]).per_controller);
    assert!(!each(&["--lease-per-controller=false"]).per_controller);
    let text = args(&["--leader-elect", "--lease-per-controller"]).to_yaml();
    assert!(text.unwrap().contains("lease-per-controller: true"));
    let text = args(&["--leader-elect"]).to_yaml();
    assert!(text.unwrap().contains("lease-per-controller: false"));
}

#[test]
fn labels_read_as_kubectl_spells_them() {
    for text in [
        "app=web",
        "app!=web",
        "app",
        "!app",
        "app in (api,web)",
        "app notin (api,web),example.com/tier=front",
    ] {
        let labels: Labels = text.parse().expect(text);
        let again: Labels = labels.to_string().parse().expect(text);
        assert_eq!(labels, again, "{labels}");
        assert_eq!(labels.to_string(), text);
    }
    let spaced: Labels = " app == web , tier  in ( front , back )".parse().unwrap();
    assert_eq!(spaced, "app=web,tier in (back,front)".parse().unwrap());
    for text in [
        "",
        "app=web,",
        "app in web",
        "app near (web)",
        "a b",
        "app in ()x",
        "-app",
        "app=a b",
        "in/to/x=1",
    ] {
        assert!(text.parse::<Labels>().is_err(), "{text:?}");
    }
}

#[test]
fn what_is_reconciled_and_how_often_follows_one_rule() {
    let file = file(".yaml", "selector: app=web\nresync: 1h\nmax-retries: 3\n");
    let options = with_config(&["--resync", "0s"], &file).unwrap();
    assert_eq!(options.selector.to_string(), "app=web");
    assert_eq!(options.resync, None, "never, says the flag");
    assert_eq!(options.max_retries, 3);
    let options = with_config(&["--selector", "!app"], &file).unwrap();
    assert_eq!(options.selector.to_string(), "!app");
    assert_eq!(options.resync, Some(Duration::from_secs(3600)));
}

#[test]
fn durations_read_as_they_are_written() {
    for text in [
        "15s", "1m30s", "500ms", "2h", "1h1m1s", "0s", "1s5us", "7ns", "8760h",
    ] {
        assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "soon",
        "-5s",
        "15",
        "1e9999h",
        "8761h",
        "2562047788015215h",
    ] {
        assert!(text.parse::<Span>().is_err(), "{text:?}");
    }
}
