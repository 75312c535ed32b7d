//! The server of the measurement: enough of the API for any informer of pods, as cheap as it can be made.
//!
//! A process of its own. Pods are written from their templates while they are sent, in large writes; nothing of a body is kept. As servers do that have a
//! watch cache, it answers lists at version 0 whole, whatever their limit; all others in pages. Initial events of a watch are refused, as by servers
//! before 1.27, unless it is told to send them.
//!
//! `/bench/...` is how the measurement directs it: `modify` appends modifications, `expire` ends all watches with 410, `stats` tells what was asked for.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use boatswain_supervision::Clock;
use serde::{Deserialize, Serialize};

use crate::http::{self, Chunked, whole};
use crate::pods::Pods;

/// Version of the state before anything was modified.
const BASE: u64 = 1_000_000;
/// A watch that has nothing to tell sends a bookmark this often.
const BOOKMARKS: Duration = Duration::from_secs(60);

struct World {
    /// Whether initial events of a watch are sent.
    streams: bool,
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
pub(crate) fn serve(pods: Pods, streams: bool) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    println!("http://{}", listener.local_addr().expect("an address"));
    std::io::stdout().flush().expect("printed");
    let versions = vec![BASE; pods.count() as usize];
    let world = Arc::new(World {
        streams,
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
        while let Some(request) = http::request(&mut reader) {
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
                let initial = parameter("sendInitialEvents") == Some("true");
                if initial && !self.streams {
                    let words = "sendInitialEvents is forbidden for watch";
                    let status = refusal(422, "Invalid", words);
                    return whole(stream, "422 Unprocessable Entity", &status);
                }
                let timeout = Duration::from_secs(number("timeoutSeconds").unwrap_or(300));
                let from = number("resourceVersion").filter(|_| !initial);
                self.watch(from, timeout, stream)
            }
            "/api/v1/pods" => {
                let whole = parameter("resourceVersion") == Some("0");
                let limit = number("limit").filter(|_| !whole);
                self.list(number("continue"), limit, stream)
            }
            "/version" => {
                let minor = if self.streams { 34 } else { 26 };
                let version = format!(
                    "{{\"major\":\"1\",\"minor\":\"{minor}\",\"gitVersion\":\"v1.{minor}.0\",\"platform\":\"linux/amd64\"}}"
                );
                whole(stream, "200 OK", &version)
            }
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

    /// Sends every pod as an event, and where they end; the version they are of.
    fn initial(&self, body: &mut Chunked<'_>) -> std::io::Result<u64> {
        let mut history = self.history();
        history.stats.lists += 1;
        history.listing = Some(self.clock.now());
        let version = BASE + history.modified.len() as u64;
        let versions = history.versions.clone();
        drop(history);
        for (pod, version) in (0..).zip(versions) {
            self.event("ADDED", pod, version, body)?;
        }
        let end = ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}";
        bookmark(version, end, body)?;
        let mut history = self.history();
        history.stats.items += self.pods.count();
        Ok(version)
    }

    /// Follows from a version, or from what there is now, which is sent first.
    fn watch(
        &self,
        from: Option<u64>,
        timeout: Duration,
        stream: &mut TcpStream,
    ) -> std::io::Result<()> {
        let mut body = Chunked::begin(stream)?;
        let deadline = self.clock.now() + timeout;
        let opened = self.history().expirations;
        let version = match from {
            Some(version) => version,
            None => self.initial(&mut body)?,
        };
        let mut at = version.saturating_sub(BASE) as usize;
        let mut history = self.history();
        history.stats.watches += 1;
        if let Some(pod) = history.follow_up.take() {
            self.append(&mut history, pod);
        }
        loop {
            let batch: Vec<_> = history.modified.iter().skip(at).take(64).copied().collect();
            let expired = batch.is_empty() && history.expirations > opened;
            if !batch.is_empty() {
                drop(history);
                for pod in batch {
                    at += 1;
                    self.event("MODIFIED", u64::from(pod), BASE + at as u64, &mut body)?;
                }
                body.flush()?;
                history = self.history();
                continue;
            }
            let left = deadline.saturating_duration_since(self.clock.now());
            if expired || left.is_zero() {
                drop(history);
                if expired {
                    let status = refusal(410, "Expired", "too old resource version");
                    let event = format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n");
                    body.buffer.extend_from_slice(event.as_bytes());
                }
                return body.end().map(|_| ());
            }
            let waited = self
                .changed
                .wait_timeout(history, left.min(BOOKMARKS))
                .unwrap_or_else(PoisonError::into_inner);
            history = waited.0;
            if waited.1.timed_out() {
                drop(history);
                bookmark(BASE + at as u64, "", &mut body)?;
                history = self.history();
            }
        }
    }

    fn event(
        &self,
        kind: &str,
        pod: u64,
        version: u64,
        body: &mut Chunked<'_>,
    ) -> std::io::Result<()> {
        let head = format!("{{\"type\":\"{kind}\",\"object\":");
        body.buffer.extend_from_slice(head.as_bytes());
        self.pods.write(pod, version, false, &mut body.buffer);
        body.buffer.extend_from_slice(b"}\n");
        body.flush_if_large()
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

fn bookmark(version: u64, annotations: &str, body: &mut Chunked<'_>) -> std::io::Result<()> {
    let event = format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"creationTimestamp\":null{annotations}}},\"spec\":{{\"containers\":null}},\"status\":{{}}}}}}\n"
    );
    body.buffer.extend_from_slice(event.as_bytes());
    body.flush()
}

fn refusal(code: u16, reason: &str, message: &str) -> String {
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"{message}\",\"reason\":\"{reason}\",\"code\":{code}}}"
    )
}
