//! Every program of the workspace, binaries and examples, as somebody meets it who knows nothing of it yet.
//!
//! Cargo says which there are; `cargo test --workspace` has built them all.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// Longer than anything may take on a slow machine; a program that is still there does not read its flags.
const PATIENCE: Duration = Duration::from_secs(60);

/// The files of all programs.
fn programs() -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let told = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let own = std::env::current_exe().expect("this program");
    let folder = own.parent().and_then(Path::parent).expect("two folders");
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = items(&told["packages"]).into_iter();
    let targets = targets.flat_map(|package| items(&package["targets"]));
    let programs = targets.filter_map(|target| {
        let name = target["name"].as_str()?;
        match target["kind"][0].as_str()? {
            "bin" => Some(folder.join(name)),
            "example" => Some(folder.join("examples").join(name)),
            _ => None,
        }
    });
    programs.collect()
}

/// How a program ended, and what it wrote.
struct Ended {
    code: Option<i32>,
    out: String,
    error: String,
}

fn run(program: &Path, words: &[&str]) -> Ended {
    let mut child = Command::new(program)
        .args(words)
        // what it says must not depend on who runs the tests
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}: build it by cargo test --workspace",
                program.display()
            )
        });
    #[expect(clippy::disallowed_methods, reason = "a process has no other clock")]
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("asked") {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().expect("killed");
            child.wait().expect("ended");
            panic!("{} {words:?} goes on and on", program.display());
        }
        std::thread::yield_now();
    };
    let mut ended = Ended {
        code: status.code(),
        out: String::new(),
        error: String::new(),
    };
    // no program says so much here that it would wait for its reader
    let (out, error) = (child.stdout.take(), child.stderr.take());
    out.expect("piped")
        .read_to_string(&mut ended.out)
        .expect("read");
    error
        .expect("piped")
        .read_to_string(&mut ended.error)
        .expect("read");
    ended
}

/// Its help, and that of each of its commands.
fn helps(program: &Path) -> Vec<(Vec<String>, Ended)> {
    let whole = run(program, &["--help"]);
    let commands = whole
        .out
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    let each = names.into_iter().map(|name| {
        let help = run(program, &[&name, "--help"]);
        (vec![name], help)
    });
    let each: Vec<_> = each.collect();
    std::iter::once((Vec::new(), whole)).chain(each).collect()
}

#[test]
fn help_begins_with_a_sentence_and_shows_how_to_use_every_program_and_command() {
    let programs = programs();
    for name in [
        "podautoscaler",
        "replica-fixer",
        "dynamic",
        "harbour_cache",
        "apisim",
    ] {
        assert!(
            programs.iter().any(|p| p.ends_with(name)),
            "no {name} in {programs:?}"
        );
    }
    for program in programs {
        let helps = helps(&program);
        if program.ends_with("podautoscaler") {
            assert!(helps.len() > 5, "its commands are not found");
        }
        for (command, Ended { code, out, error }) in helps {
            let of = format!("{} {command:?}: {out}{error}", program.display());
            assert_eq!(code, Some(0), "{of}");
            assert_eq!(error, "", "{of}");
            let first = out.lines().next().unwrap_or_default();
            assert!(first.starts_with(char::is_uppercase), "{of}");
            assert!(first.split_whitespace().count() >= 4, "{of}");
            assert!(out.contains("\nUsage: "), "{of}");
        }
    }
}

#[test]
fn a_flag_that_does_not_exist_is_named_in_one_line_before_the_usage_and_the_code_is_2() {
    for program in programs() {
        let Ended { code, out, error } = run(&program, &["--no-such-flag"]);
        let of = format!("{}: {out}{error}", program.display());
        assert_eq!(code, Some(2), "{of}");
        assert_eq!(out, "", "{of}");
        let errors: Vec<_> = error.lines().filter(|l| l.starts_with("error:")).collect();
        assert_eq!(errors.len(), 1, "{of}");
        assert_eq!(error.lines().next(), errors.first().copied(), "{of}");
        assert!(errors[0].contains("'--no-such-flag'"), "{of}");
    }
}
