//! A real control plane, brought up by the scripts in `tests/cluster`.

use std::{
    collections::HashSet,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::audit::Request;

/// Which Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.20, the oldest supported.
    Oldest,
    /// 1.36, the newest tested.
    Newest,
}

impl Version {
    fn short(self) -> &'static str {
        match self {
            Self::Oldest => "1.20",
            Self::Newest => "1.36",
        }
    }
}

/// A running control plane; it goes down with this process at the latest.
pub struct RealServer {
    state: TempDir,
    version: Version,
    address: SocketAddr,
    kubeconfig: PathBuf,
    viewer: PathBuf,
    record: Mutex<Record>,
}

/// What has been read of the audit log so far: it is long, and looked at often.
#[derive(Default)]
struct Record {
    /// So many bytes.
    read: u64,
    requests: Vec<Request>,
    /// The versions that writes are known to have made, of objects by their uids: a server that is restored from a backup gives versions again.
    versions: HashSet<(String, u64)>,
}

impl Record {
    /// Takes in the lines that have been written since.
    fn read_on(&mut self, log: &Path) {
        // there is none before the first request
        let Ok(mut log) = File::open(log) else {
            return;
        };
        let mut text = Vec::new();
        log.seek(SeekFrom::Start(self.read)).expect("a log");
        log.read_to_end(&mut text).expect("a log");
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in text[..whole].split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else {
                continue;
            };
            if line["stage"] != "ResponseComplete" {
                continue;
            }
            let mut request = request(&line);
            // a write that changes nothing answers with the version of an earlier one
            if let (true, Some(version)) = (request.changed, request.version()) {
                let is_new = version.to_string() != request.precondition;
                let uid = line.pointer("/responseObject/metadata/uid");
                let uid = uid.and_then(Value::as_str).unwrap_or_default();
                request.changed = is_new && self.versions.insert((uid.to_owned(), version));
            }
            self.requests.push(request);
        }
    }
}

impl RealServer {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// When its binaries have not been built (`tests/cluster/build.sh`) or it does not come up.
    pub async fn start(version: Version) -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let [api, etcd] = free_ports();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/up.sh");
        let mut up = Command::new(script);
        up.args([
            "--version",
            version.short(),
            "--owner",
            &std::process::id().to_string(),
        ])
        .args([
            "--port",
            &api.to_string(),
            "--etcd-port",
            &etcd.to_string(),
            "--state",
        ])
        .arg(state.path());
        run(up).await;
        Self {
            version,
            address: SocketAddr::from(([127, 0, 0, 1], api)),
            kubeconfig: state.path().join("kubeconfig"),
            viewer: state.path().join("viewer.kubeconfig"),
            record: Mutex::default(),
            state,
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn viewer_kubeconfig(&self) -> &Path {
        &self.viewer
    }

    /// Where the kubeconfigs are.
    pub(crate) fn folder(&self) -> &Path {
        self.state.path()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.read_on(&self.state.path().join("audit.log"));
        record.requests.clone()
    }

    pub(crate) async fn kill(&self) {
        run(Command::new(self.state.path().join("stop-apiserver"))).await;
    }

    pub(crate) async fn revive(&self) {
        run(Command::new(self.state.path().join("start-apiserver"))).await;
    }

    pub(crate) async fn compact(&self) {
        run(Command::new(self.state.path().join("compact"))).await;
    }

    pub(crate) async fn save(&self) {
        run(Command::new(self.state.path().join("save"))).await;
    }

    pub(crate) async fn restore(&self) {
        run(Command::new(self.state.path().join("restore"))).await;
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        // the folder goes next: its processes must not write into it any more
        let _ = std::process::Command::new(self.state.path().join("down"))
            .stdout(Stdio::null())
            .status();
    }
}

fn request(line: &Value) -> Request {
    let text = |pointer: &str| {
        line.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let verb = text("/verb");
    let code = line
        .pointer("/responseStatus/code")
        .and_then(Value::as_u64)
        .and_then(|c| c.try_into().ok())
        .unwrap_or(0);
    let writes = !matches!(verb.as_str(), "get" | "list" | "watch");
    Request {
        changed: writes && (200..300).contains(&code),
        code,
        verb,
        resource: text("/objectRef/resource"),
        subresource: text("/objectRef/subresource"),
        namespace: text("/objectRef/namespace"),
        name: text("/objectRef/name"),
        // who they acted as, if they did
        user: match text("/impersonatedUser/username") {
            nobody if nobody.is_empty() => text("/user/username"),
            user => user,
        },
        precondition: text("/objectRef/resourceVersion"),
        answer: line.get("responseObject").cloned(),
    }
}

/// Two ports that were free a moment ago, the second with a free neighbour: etcd takes two.
fn free_ports() -> [u16; 2] {
    let free = || {
        TcpListener::bind("127.0.0.1:0")
            .and_then(|l| l.local_addr())
            .expect("a free port")
            .port()
    };
    let api = free();
    let etcd = std::iter::repeat_with(free)
        .find(|port| {
            *port != api && port + 1 != api && TcpListener::bind(("127.0.0.1", port + 1)).is_ok()
        })
        .expect("a free pair of ports");
    [api, etcd]
}

async fn run(mut command: Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .await
        .expect("a script that can be run");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
