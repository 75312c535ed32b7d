//! The binary as a process.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]
// each binary of tests uses a part of it
#![allow(dead_code, reason = "shared by several binaries of tests")]

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podautoscaler"));
    command
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null());
    command
}

pub(crate) fn output(arguments: &[&str]) -> Output {
    binary().args(arguments).output().expect("the binary runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running binary whose log is read line by line.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let log = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            log.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for a line that holds all of `parts`.
    pub(crate) fn says(&self, parts: &[&str]) -> String {
        self.until(parts).pop().expect("the line")
    }

    /// The lines up to one that holds all of `parts`, which is the last.
    pub(crate) fn until(&self, parts: &[&str]) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => seen.push(line),
                Err(_) => panic!("no line with {parts:?}; the log so far: {seen:#?}"),
            }
            let last = seen.last().expect("just pushed");
            if parts.iter().all(|part| last.contains(part)) {
                return seen;
            }
        }
    }

    /// The rest of the line on standard output that begins so.
    pub(crate) fn prints(&mut self, begin: &str) -> String {
        let out = self.child.stdout.as_mut().expect("piped");
        let line = BufReader::new(out).lines().map_while(Result::ok);
        let mut rest = line.filter_map(|line| line.strip_prefix(begin).map(str::to_owned));
        rest.next().expect("a line")
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    }

    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut out = String::new();
        let mut pipe = self.child.stdout.take().expect("piped");
        pipe.read_to_string(&mut out).expect("read");
        (self.child.wait().expect("ended").code(), out)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was just given back. Where the system has more than one loopback address, none that anybody dials from: who dials a port of the
/// dialing range over and over is one day given that very port, and meets itself.
pub(crate) fn free(host: u8) -> SocketAddr {
    let host = if cfg!(target_os = "linux") { host } else { 1 };
    TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0))
        .and_then(|listener| listener.local_addr())
        .expect("a port")
}

/// A plain GET, so that no HTTP client is needed.
pub(crate) fn get(address: &str, path: &str) -> io::Result<String> {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
