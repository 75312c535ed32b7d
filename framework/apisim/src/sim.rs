//! The server as its users hold it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    api::{State, Write},
    attributes::Attributes,
    audit::{Audit, Log},
    auth::{Anonymous, Users},
    bell::{Bell, Ear},
    fault::Faults,
    http::service::SimService,
    model::object::Collection,
    rbac,
    time::{Time, seconds},
    world::{World, WorldOptions},
};

/// How a simulated server behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Clock and timer. Default: the system's clock and tokio's timer.
    pub time: Time,
    /// Seeds uids and generated names: the same seed and the same requests give the same ones. Default: 0.
    pub seed: u64,
    /// What `/version` says. Default: `v1.33.0`.
    pub version: String,
    /// How many changes of each resource are remembered for watches and continued lists. Default: 20,000.
    pub watch_window: usize,
    /// How often a watch that asks for bookmarks gets one; `None` for never. Default: 60 s.
    pub bookmark_interval: Option<Duration>,
    /// When a watch ends that names no `timeoutSeconds`. Default: 30 min.
    pub watch_timeout: Duration,
    /// Whether `sendInitialEvents` is understood; servers before 1.27 do not. Default: yes.
    pub watch_list: bool,
    /// How many requests the audit log remembers. Default: 100,000.
    pub audit_limit: usize,
    /// Who requests without a token come from. Default: an administrator.
    pub anonymous: Anonymous,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            time: Time::default(),
            seed: 0,
            version: "v1.33.0".into(),
            watch_window: 20_000,
            bookmark_interval: Some(Duration::from_secs(60)),
            watch_timeout: Duration::from_secs(30 * 60),
            watch_list: true,
            audit_limit: 100_000,
            anonymous: Anonymous::default(),
        }
    }
}

/// Lock order: `state`, then nothing; the other locks are held for one statement at a time.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) users: Users,
    pub(crate) faults: Faults,
    state: Mutex<State>,
    log: Mutex<Log>,
    /// The version at which each collection was last written.
    signals: Mutex<HashMap<Collection, Bell>>,
    /// The version at which anything was last written.
    any: Bell,
}

impl Inner {
    /// Does something to the state, and wakes whoever watches what was written.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let (out, touched, version) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let out = act(&mut state);
            (out, state.store.take_touched(), state.store.version())
        };
        if !touched.is_empty() {
            let signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
            for signal in touched
                .iter()
                .filter_map(|collection| signals.get(collection))
            {
                signal.ring(version);
            }
            drop(signals);
            self.any.ring(version);
        }
        out
    }

    /// Whether a request is allowed, by the grants of its user or by the Roles that are bound to them.
    pub(crate) fn may(&self, request: &Attributes) -> bool {
        let judged = self.users.judge(request);
        judged.unwrap_or_else(|| self.with(|state| rbac::allows(&state.store, request)))
    }

    pub(crate) fn subscribe(&self, collection: &Collection) -> Ear {
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        signals.entry(collection.clone()).or_default().listen()
    }

    pub(crate) fn subscribe_all(&self) -> Ear {
        self.any.listen()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The circumstances of a write by the server itself.
    pub(crate) fn own_write(&self, manager: &str, subresource: &'static str) -> Write {
        Write {
            now: seconds(self.options.time.now()),
            manager: manager.into(),
            subresource,
            ..Write::default()
        }
    }
}

/// A simulated API server; cheap to clone, all clones are the same server.
///
/// It lives in memory and does nothing of its own accord: it answers requests that come through [`ApiSim::service`]
/// or [`ApiSim::serve`]. What a cluster's controllers would do is the [`World`]'s part.
///
/// # Guarantees
/// One counter orders all writes; a write that changes nothing keeps its version; a watch sees every change after its
/// version once, in order, or ends with 410 Expired.
#[derive(Clone, Debug)]
pub struct ApiSim {
    pub(crate) inner: Arc<Inner>,
}

impl Default for ApiSim {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl ApiSim {
    /// A server with the namespaces `default`, `kube-system`, `kube-public` and nothing else.
    pub fn new(options: Options) -> Self {
        let state = State::new(options.watch_window, options.seed);
        let inner = Arc::new(Inner {
            users: Users::default(),
            faults: Faults::default(),
            state: Mutex::new(state),
            log: Mutex::new(Log::new(options.audit_limit)),
            signals: Mutex::default(),
            any: Bell::default(),
            options,
        });
        let sim = Self { inner };
        for name in ["default", "kube-system", "kube-public"] {
            let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            // an empty server refuses no namespace
            let _ = sim.create(body);
        }
        sim
    }

    /// The server as a tower service, for `kube::Client::new(sim.service(), "default")`: no sockets, no tasks.
    ///
    /// Requests without a token come from an administrator, unless [`Options::anonymous`] says otherwise.
    pub fn service(&self) -> SimService {
        SimService::new(self.inner.clone())
    }

    /// The requests answered so far, oldest first; see [`Options::audit_limit`].
    pub fn audit(&self) -> Vec<Audit> {
        self.inner.log().since(0)
    }

    /// The requests answered since a moment told by [`ApiSim::audit_mark`].
    pub fn audit_since(&self, mark: u64) -> Vec<Audit> {
        self.inner.log().since(mark)
    }

    /// This moment, for [`ApiSim::audit_since`].
    pub fn audit_mark(&self) -> u64 {
        self.inner.log().next()
    }

    /// The switchboard of faults.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// The users and their rights.
    pub fn users(&self) -> &Users {
        &self.inner.users
    }

    /// What a cluster's own controllers do; nothing happens until it is stepped or run.
    pub fn world(&self, options: WorldOptions) -> World {
        World::new(self.inner.clone(), options)
    }

    /// The version of the newest write.
    pub fn version(&self) -> u64 {
        self.inner.with(|state| state.store.version())
    }

    /// Forgets the changes so far, as an etcd compaction and a restart of the server do: watches and continue tokens
    /// from before are answered with 410. Watches that are open and up to date stay.
    pub fn compact(&self) {
        self.inner.with(|state| state.store.compact());
    }

    /// All objects and versions as they are now, to [`ApiSim::restore`] later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.inner.with(|state| state.clone()))
    }

    /// Goes back in time, as a server whose etcd was restored from a backup: versions are used a second time, and open
    /// watches end.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.inner.with(|state| {
            *state = snapshot.0.clone();
            state.store.compact();
        });
        self.inner.faults.drop_watches();
    }
}

/// The whole state of a server at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot(State);
