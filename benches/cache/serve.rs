//! The server of the measurement: enough of the API for any informer of pods, as cheap as it can be made.
//!
//! A process of its own. Pods are written from their templates while they are sent, in large writes; nothing of a body is kept. As servers do that have a
//! watch cache, it answers lists at version 0 whole, whatever their limit; all others in pages. Initial events of a watch are refused, as by servers
//! before 1.27.
//!
//! `/bench/...` is how the measurement directs it: `modify` appends modifications, `expire` ends all watches with 410, `stats` tells what was asked for.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boatswain_supervision::Clock;
use serde::{Deserialize, Serialize};

use crate::pods::Pods;

/// Version of the state before anything was modified.
const BASE: u64 = 1_000_000;
/// Bytes written at a time.
const WRITE: usize = 256 << 10;
/// A watch that has nothing to tell sends a bookmark this often.
const BOOKMARKS: Duration = Duration::from_secs(60);

struct World {
    pods: Pods,
    clock: Clock,
    history: Mutex<History>,
    changed: Condvar,
}

#[derive(Default)]
struct History {
    /// Which pod each modification was of; the first has version `BASE + 1`.
    modified: Vec<u32>,
    /// The version of every pod.
    versions: Vec<u64>,
    /// Watches opened before this many expirations have ended.
    expirations: u64,
    /// The pod to modify when the next watch begins.
    follow_up: Option<u64>,
    stats: Stats,
    listing: Option<Instant>,
}

/// What was asked of the server since it began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stats {
    /// Lists begun, pages not counted.
    pub(crate) lists: u64,
    /// Pages of lists.
    pub(crate) pages: u64,
    /// Watches begun.
    pub(crate) watches: u64,
    /// Bytes of bodies sent.
    pub(crate) bytes: u64,
    /// Objects sent in lists.
    pub(crate) items: u64,
    /// Seconds since the last list began.
    pub(crate) since_list: f64,
}

/// What `modify` and `expire` answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Key of the pod that is modified last.
    pub(crate) namespace: String,
    /// Key of the pod that is modified last.
    pub(crate) name: String,
    /// The version it has then.
    pub(crate) version: u64,
}

/// Serves until the standard input closes; prints its address first.
pub(crate) fn serve(pods: Pods) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    println!("http://{}", listener.local_addr().expect("an address"));
    std::io::stdout().flush().expect("printed");
    let versions = vec![BASE; pods.count() as usize];
    let world = Arc::new(World {
        pods,
        clock: Clock::system(),
        history: Mutex::new(History {
            versions,
            ..History::default()
        }),
        changed: Condvar::new(),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let world = world.clone();
            std::thread::spawn(move || world.connection(stream));
        }
    });
    let _ = std::io::stdin().lines().count();
}

/// A body of unknown length.
struct Chunked<'a> {
    stream: &'a mut TcpStream,
    buffer: Vec<u8>,
    sent: u64,
}

impl<'a> Chunked<'a> {
    fn begin(stream: &'a mut TcpStream) -> std::io::Result<Self> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(WRITE + (32 << 10)),
            sent: 0,
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.sent += self.buffer.len() as u64;
        self.stream
            .write_all(format!("{:x}\r\n", self.buffer.len()).as_bytes())?;
        self.buffer.extend_from_slice(b"\r\n");
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn flush_if_large(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= WRITE {
            self.flush()?;
        }
        Ok(())
    }

    fn end(mut self) -> std::io::Result<u64> {
        self.flush()?;
        self.stream.write_all(b"0\r\n\r\n")?;
        Ok(self.sent)
    }
}

impl World {
    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(reading) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(reading);
        loop {
            let mut request = String::new();
            if reader.read_line(&mut request).unwrap_or(0) == 0 {
                return;
            }
            let mut length = 0;
            loop {
                let mut header = String::new();
                if reader.read_line(&mut header).unwrap_or(0) == 0 {
                    return;
                }
                let header = header.trim().to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                if header.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let target = request.split(' ').nth(1).unwrap_or_default();
            if self.answer(target, &mut stream).is_err() {
                return;
            }
        }
    }

    fn answer(&self, target: &str, stream: &mut TcpStream) -> std::io::Result<()> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parameter = |name: &str| {
            query.split('&').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                (key == name).then_some(value)
            })
        };
        let number = |name: &str| parameter(name).and_then(|value| value.parse::<u64>().ok());
        match path {
            "/api/v1/pods" if matches!(parameter("watch"), Some("true" | "1")) => {
                if parameter("sendInitialEvents").is_some() {
                    return whole(
                        stream,
                        "422 Unprocessable Entity",
                        &refusal(422, "Invalid", "sendInitialEvents is forbidden for watch"),
                    );
                }
                let timeout = Duration::from_secs(number("timeoutSeconds").unwrap_or(300));
                self.watch(number("resourceVersion").unwrap_or(0), timeout, stream)
            }
            "/api/v1/pods" => {
                let whole = parameter("resourceVersion") == Some("0");
                let limit = number("limit").filter(|_| !whole);
                self.list(number("continue"), limit, stream)
            }
            "/version" => whole(
                stream,
                "200 OK",
                r#"{"major":"1","minor":"26","gitVersion":"v1.26.0","platform":"linux/amd64"}"#,
            ),
            "/bench/modify" => {
                let target = self.modify(number("count").unwrap_or(1));
                whole(stream, "200 OK", &json(&target))
            }
            "/bench/expire" => {
                let target = self.expire();
                whole(stream, "200 OK", &json(&target))
            }
            "/bench/stats" => {
                let history = self.history();
                let since = history
                    .listing
                    .map_or(0.0, |begun| (self.clock.now() - begun).as_secs_f64());
                let stats = Stats {
                    since_list: since,
                    ..history.stats.clone()
                };
                drop(history);
                whole(stream, "200 OK", &json(&stats))
            }
            _ => whole(
                stream,
                "404 Not Found",
                &refusal(404, "NotFound", "there is nothing of this name"),
            ),
        }
    }

    fn list(
        &self,
        from: Option<u64>,
        limit: Option<u64>,
        stream: &mut TcpStream,
    ) -> std::io::Result<()> {
        let begin = from.unwrap_or(0);
        let end = limit.map_or(self.pods.count(), |limit| {
            (begin + limit).min(self.pods.count())
        });
        let mut history = self.history();
        history.stats.pages += 1;
        if from.is_none() {
            history.stats.lists += 1;
            history.listing = Some(self.clock.now());
        }
        let version = BASE + history.modified.len() as u64;
        // nothing is modified while something is listed
        let versions = history.versions[begin as usize..end as usize].to_vec();
        drop(history);
        let mut body = Chunked::begin(stream)?;
        body.buffer.extend_from_slice(format!("{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"").as_bytes());
        if end < self.pods.count() {
            let rest = self.pods.count() - end;
            body.buffer.extend_from_slice(
                format!(",\"continue\":\"{end}\",\"remainingItemCount\":{rest}").as_bytes(),
            );
        }
        body.buffer.extend_from_slice(b"},\"items\":[");
        for (at, version) in versions.into_iter().enumerate() {
            if at > 0 {
                body.buffer.push(b',');
            }
            self.pods
                .write(begin + at as u64, version, true, &mut body.buffer);
            body.flush_if_large()?;
        }
        body.buffer.extend_from_slice(b"]}\n");
        let sent = body.end()?;
        let mut history = self.history();
        history.stats.bytes += sent;
        history.stats.items += end - begin;
        Ok(())
    }

    fn watch(
        &self,
        version: u64,
        timeout: Duration,
        stream: &mut TcpStream,
    ) -> std::io::Result<()> {
        let mut body = Chunked::begin(stream)?;
        let deadline = self.clock.now() + timeout;
        let mut history = self.history();
        history.stats.watches += 1;
        if let Some(pod) = history.follow_up.take() {
            self.append(&mut history, pod);
        }
        let opened = history.expirations;
        let mut at = version.saturating_sub(BASE) as usize;
        loop {
            let expired = history.expirations > opened;
            let batch: Vec<_> = history.modified.iter().skip(at).take(64).copied().collect();
            if batch.is_empty() && !expired {
                let left = deadline.saturating_duration_since(self.clock.now());
                if left.is_zero() {
                    drop(history);
                    return body.end().map(|_| ());
                }
                let waited = self
                    .changed
                    .wait_timeout(history, left.min(BOOKMARKS))
                    .unwrap_or_else(PoisonError::into_inner);
                history = waited.0;
                if waited.1.timed_out() {
                    let version = BASE + at as u64;
                    body.buffer.extend_from_slice(format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"creationTimestamp\":null}},\"spec\":{{\"containers\":null}},\"status\":{{}}}}}}\n").as_bytes());
                    drop(history);
                    body.flush()?;
                    history = self.history();
                }
                continue;
            }
            drop(history);
            for pod in &batch {
                at += 1;
                body.buffer
                    .extend_from_slice(br#"{"type":"MODIFIED","object":"#);
                self.pods
                    .write(u64::from(*pod), BASE + at as u64, false, &mut body.buffer);
                body.buffer.extend_from_slice(b"}\n");
                body.flush_if_large()?;
            }
            if expired && batch.is_empty() {
                let status = refusal(410, "Expired", "too old resource version");
                body.buffer.extend_from_slice(
                    format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").as_bytes(),
                );
                return body.end().map(|_| ());
            }
            body.flush()?;
            history = self.history();
        }
    }

    fn append(&self, history: &mut History, pod: u64) {
        history.modified.push(pod as u32);
        history.versions[pod as usize] = BASE + history.modified.len() as u64;
    }

    /// Modifies as many pods, one after the other over all of them, in an order that is not theirs.
    fn modify(&self, count: u64) -> Target {
        let pods = self.pods.count();
        let mut history = self.history();
        let mut last = 0;
        for _ in 0..count {
            let nth = history.modified.len() as u64;
            last = scattered(nth, pods);
            self.append(&mut history, last);
        }
        let version = BASE + history.modified.len() as u64;
        drop(history);
        self.changed.notify_all();
        self.target(last, version)
    }

    /// Ends every watch; when the next begins, one pod is modified, so that whoever sees that has taken in what was listed before.
    fn expire(&self) -> Target {
        let mut history = self.history();
        history.expirations += 1;
        history.follow_up = Some(0);
        let version = BASE + history.modified.len() as u64 + 1;
        drop(history);
        self.changed.notify_all();
        self.target(0, version)
    }

    fn target(&self, pod: u64, version: u64) -> Target {
        let (namespace, name) = self.pods.key(pod);
        Target {
            namespace,
            name,
            version,
        }
    }
}

/// A number below `count` for each below `count`, far from its neighbours'.
pub(crate) fn scattered(nth: u64, count: u64) -> u64 {
    let mut stride = (count as f64 * 0.618) as u64 | 1;
    while gcd(stride, count) != 1 {
        stride += 2;
    }
    (nth % count).wrapping_mul(stride) % count
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

fn refusal(code: u16, reason: &str, message: &str) -> String {
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"{message}\",\"reason\":\"{reason}\",\"code\":{code}}}"
    )
}

fn whole(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    stream.write_all(
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes(),
    )
}

/// Asks the server at `address` for a JSON answer.
pub(crate) fn ask<T: for<'de> Deserialize<'de>>(address: &str, target: &str) -> T {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("the server is there");
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .expect("asked");
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    serde_json::from_slice(&body).expect("what was asked for")
}
