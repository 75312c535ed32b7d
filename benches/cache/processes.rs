//! Starts the server and the contestants, and looks at them from outside.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde::Deserialize;

use crate::contestant::Answer;
use crate::http::ask;
use crate::options::{Options, Who};
use crate::serve::{Stats, Target};

/// Whoever says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(600);

/// A process that is told lines and answers with lines; ended with this value.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Talk {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (said, heard) = sync_channel(1);
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.try_for_each(|line| said.send(line))
        });
        Self {
            child,
            input,
            output: heard,
        }
    }

    fn hear(&mut self) -> String {
        self.output
            .recv_timeout(PATIENCE)
            .expect("a process of the measurement ended by itself, with its reason above, or said nothing for ten minutes")
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.input.take());
        // a contestant that is in the middle of something does not read
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running server.
pub(crate) struct Server {
    _process: Talk,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(options: &Options, objects: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .arg(format!("--seed={}", options.seed))
            .arg(format!("--workloads={}", options.workloads))
            .args(options.stream_lists.then_some("--stream-lists"))
            .args(["serve", &objects.to_string()]);
        let mut process = Talk::start(&mut command);
        let address = process.hear();
        Self {
            _process: process,
            address,
        }
    }

    fn ask<T: for<'de> Deserialize<'de>>(&self, target: &str) -> T {
        ask(&self.address, target)
    }

    /// Modifies pods one after the other; the last of them.
    pub(crate) fn modify(&self, count: u64) -> Target {
        self.ask(&format!("/bench/modify?count={count}"))
    }

    /// Ends all watches with 410; what is modified behind the list that follows.
    pub(crate) fn expire(&self) -> Target {
        self.ask("/bench/expire")
    }

    pub(crate) fn stats(&self) -> Stats {
        self.ask("/bench/stats")
    }
}

/// A running contestant.
pub(crate) struct Contestant {
    process: Talk,
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

impl Contestant {
    /// Starts it, and waits until it is synced.
    pub(crate) fn start(who: Who, go: Option<&PathBuf>, server: &Server) -> (Self, Answer) {
        let mut command = match (who, go) {
            (Who::ClientGo | Who::ClientGoLean, Some(program)) => {
                let mut command = Command::new(program);
                command.arg(&server.address);
                command.args((who == Who::ClientGoLean).then_some("lean"));
                command
            }
            _ => {
                let mut command = Command::new(std::env::current_exe().expect("this program"));
                command.args(["contestant", who.name(), &server.address]);
                command
            }
        };
        let mut contestant = Self {
            process: Talk::start(&mut command),
        };
        let synced = contestant.hear();
        (contestant, synced)
    }

    fn hear(&mut self) -> Answer {
        serde_json::from_str(&self.process.hear()).expect("an answer")
    }

    /// Tells it something, and waits until it is done.
    pub(crate) fn tell(&mut self, line: &str) -> Answer {
        let input = self.process.input.as_mut().expect("open until dropped");
        writeln!(input, "{line}").expect("it listens");
        self.hear()
    }

    /// Waits until it has this.
    pub(crate) fn reach(&mut self, target: &Target) -> Answer {
        let Target {
            namespace,
            name,
            version,
        } = target;
        self.tell(&format!("await {namespace} {name} {version}"))
    }

    pub(crate) fn memory(&self) -> Memory {
        let path = format!("/proc/{}/status", self.process.child.id());
        let status = std::fs::read_to_string(path).expect("it lives");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kilobytes.unwrap_or(0) * 1024
        };
        Memory {
            now: field("VmRSS:"),
            peak: field("VmHWM:"),
        }
    }
}

/// Builds the Go module; `None` where that cannot be done, with the reason on the standard error.
pub(crate) fn build_go() -> Option<PathBuf> {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("client-go");
    eprintln!("building the client-go contestant");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/client-go"))
        .stdout(std::io::stderr())
        .status();
    match built {
        Ok(status) if status.success() => Some(program),
        Ok(status) => {
            eprintln!("client-go is left out: go build ended with {status}");
            None
        }
        Err(error) => {
            eprintln!("client-go is left out: go cannot be run: {error}");
            None
        }
    }
}
