//! Puts controllers, informers and what they share into one supervision tree, runs it and stops it in order.

use std::{
    collections::HashSet, future::Future, net::TcpListener, process::ExitCode, sync::Arc,
    time::Duration,
};

use boatswain_cache::{InformerOptions, SharedInformers};
use boatswain_supervision::{
    Blocked, ChildSpec, Children, Clock, Entropy, Intensity, Link, Mailbox, Strategy,
    SupervisorSpec, Tree, TreeOptions,
};
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::{
    assemble::{Branch, Runnable, Yard},
    client,
    connection::{Connection, ConnectionActor},
    crew::Crew,
    dispatch::Closing,
    error::{RunError, StartError},
    informers::{self, Informers},
    logging,
    options::{ManagerArgs, Options},
    recorder::{Recorder, RecorderActor},
    running::{Handle, Observer, Running},
    signals,
    telemetry::{
        Roster, Telemetry, TelemetryActor, bind, register_controllers, register_informers,
        register_recorder,
    },
};

/// Runs controllers in one process: they share informers, client, limits and the supervision tree.
#[must_use = "a manager does nothing until it runs"]
pub struct Manager {
    options: Options,
    controllers: Vec<Runnable>,
}

impl Manager {
    /// A manager with `options` and no controllers yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            controllers: Vec::new(),
        }
    }

    /// A manager with the options given on the command line; prints help or a usage error and exits where clap would.
    pub fn from_args() -> Self {
        /// Runs the controllers of this program until SIGTERM or Ctrl-C
        #[derive(Parser)]
        struct Cli {
            #[command(flatten)]
            manager: ManagerArgs,
        }
        Self::new(Cli::parse().manager.into())
    }

    /// Adds a controller.
    pub fn with(mut self, controller: Runnable) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Runs until SIGTERM or Ctrl-C, then stops in order: intake closes, running reconciles get the grace period, events are
    /// written. A second signal ends the process at once.
    ///
    /// Returns success when nothing runs any more. Otherwise one line on standard error says why, and the code is not zero. Creates
    /// its own runtimes: call it from a plain `main`.
    pub fn run(self) -> ExitCode {
        logging::init(self.options.log_format);
        match run_to_end(self, None, signals::first, |_| {}) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                logging::complain(&error);
                ExitCode::FAILURE
            }
        }
    }

    /// Runs on threads of its own, for programs that do more than this and for tests against real servers. Returns when every actor
    /// has started.
    ///
    /// # Errors
    ///
    /// When the manager cannot start; nothing runs then.
    pub fn spawn(self) -> Result<Handle, StartError> {
        self.spawn_with(None)
    }

    /// As [`Manager::spawn`], over a client made elsewhere: real threads without a server. `connect` is called on the runtime that connections live on.
    ///
    /// # Errors
    ///
    /// As of [`Manager::spawn`].
    #[cfg(feature = "testing")]
    pub fn spawn_over(
        self,
        connect: impl FnOnce() -> kube::Client + Send + 'static,
    ) -> Result<Handle, StartError> {
        self.spawn_with(Some(Box::new(connect)))
    }

    fn spawn_with(self, connect: Option<Connect>) -> Result<Handle, StartError> {
        let (started, answer) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("boatswain".into())
            .spawn(move || {
                let stop = async move {
                    // a handle that was dropped asks for the same
                    let _ = stopped.await;
                    "the handle"
                };
                let started = |observer: &Observer| {
                    let _ = started.send(observer.clone());
                };
                run_to_end(self, connect, || Ok(stop), started)
            })?;
        match answer.recv() {
            Ok(observer) => Ok(Handle {
                observer,
                stop: Some(stop),
                thread: Some(thread),
            }),
            // the sender is gone without a word: the run has ended
            Err(_) => match thread.join() {
                Ok(Err(RunError::Start(error))) => Err(error),
                Ok(Err(error)) => Err(StartError::Threads(std::io::Error::other(
                    error.to_string(),
                ))),
                Ok(Ok(())) => Err(StartError::Threads(std::io::Error::other(
                    "the manager ended at once",
                ))),
                Err(_) => Err(StartError::Threads(std::io::Error::other(
                    "the manager's thread panicked",
                ))),
            },
        }
    }

    /// Starts everything on this thread, over a client made elsewhere: the deterministic mode of tests. With a paused tokio clock,
    /// [`Clock::paused`] and a seeded [`Entropy`] the same seed gives the same run.
    ///
    /// Must be called within an actix system or a `LocalSet`. Options that concern processes (kubeconfig, listen, logs) are not used.
    ///
    /// # Errors
    ///
    /// When the controllers contradict each other or an actor does not start; nothing runs then.
    pub async fn start(
        self,
        client: kube::Client,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<Running, StartError> {
        let address = "in process".to_owned();
        let launch = Launch {
            client,
            address,
            clock,
            entropy,
            crew: Crew::here(),
            listener: None,
        };
        launch.launch(self.options, self.controllers).await
    }
}

/// Makes a client instead of the one that options describe.
type Connect = Box<dyn FnOnce() -> kube::Client + Send>;

/// Creates runtimes and threads, runs until `stop` says why to end, and takes everything down again. `stop` is called on the runtime
/// it is awaited on.
fn run_to_end<S: Future<Output = &'static str>>(
    manager: Manager,
    connect: Option<Connect>,
    stop: impl FnOnce() -> std::io::Result<S>,
    started: impl FnOnce(&Observer),
) -> Result<(), RunError> {
    let Manager {
        options,
        controllers,
    } = manager;
    let listener = match options.listen {
        Some(address) => {
            Some(bind(address).map_err(|source| StartError::Listen { address, source })?)
        }
        None => None,
    };
    let threads = |error| RunError::Start(StartError::Threads(error));
    // outlives every arbiter: connections live here
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(threads)?;
    let shards = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(options.workers);
    let offloads = controllers.iter().any(Runnable::offloads);
    let pool = offloads.then(|| {
        let mut pool = tokio::runtime::Builder::new_multi_thread();
        pool.thread_name("offload").enable_all().build()
    });
    let pool = pool.transpose().map_err(threads)?;
    let system = actix_rt::System::new();
    let ended = system.block_on(async {
        let stop = stop().map_err(threads)?;
        let clock = Clock::system();
        let (client, address) = match connect {
            Some(connect) => {
                let _io = io.enter();
                (connect(), "in process".to_owned())
            }
            None => connected(&options, &clock, io.handle()).await?,
        };
        let (mut crew, arbiters) = Crew::hire(shards);
        crew.pool = pool.as_ref().map(|pool| pool.handle().clone());
        let launch = Launch {
            client,
            address,
            clock,
            entropy: Entropy::from_os(),
            crew,
            listener,
        };
        let running = launch.launch(options, controllers).await?;
        started(running.observer());
        let ended = running.until(stop).await;
        // a thread that is blocked cannot be waited for
        if !matches!(ended, Err(RunError::StillRunning(_))) {
            arbiters.dismiss().map_err(threads)?;
        }
        ended
    });
    if let Some(pool) = pool {
        pool.shutdown_background();
    }
    io.shutdown_background();
    ended
}

async fn connected(
    options: &Options,
    clock: &Clock,
    io: &tokio::runtime::Handle,
) -> Result<(kube::Client, String), StartError> {
    let config = cluster_config(options).await?;
    let address = config.cluster_url.to_string();
    let client = client::connect(
        config,
        &options.connections,
        options.limits,
        clock.clone(),
        io,
    );
    let client = client.map_err(|error| StartError::Client {
        address: address.clone(),
        cause: client::root_cause(&error),
    })?;
    Ok((client, address))
}

async fn cluster_config(options: &Options) -> Result<kube::Config, StartError> {
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    // the first line only: the rest quotes the file, and with it credentials
    let error = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        StartError::Config(text.lines().next().unwrap_or_default().to_owned())
    };
    match &options.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|e| error(&e))?;
            kube::Config::from_custom_kubeconfig(file, &chosen)
                .await
                .map_err(|e| error(&e))
        }
        None if options.context.is_some() => kube::Config::from_kubeconfig(&chosen)
            .await
            .map_err(|e| error(&e)),
        None => kube::Config::infer().await.map_err(|e| error(&e)),
    }
}

/// What a tree is launched with.
struct Launch {
    client: kube::Client,
    address: String,
    clock: Clock,
    entropy: Entropy,
    crew: Crew,
    listener: Option<TcpListener>,
}

impl Launch {
    async fn launch(
        self,
        options: Options,
        controllers: Vec<Runnable>,
    ) -> Result<Running, StartError> {
        if controllers.is_empty() {
            return Err(StartError::NoController);
        }
        let mut names = HashSet::new();
        if let Some(twice) = controllers
            .iter()
            .find(|c| !names.insert(c.name().to_owned()))
        {
            return Err(StartError::DuplicateName(twice.name().to_owned()));
        }
        let Self {
            client,
            address,
            clock,
            entropy,
            crew,
            listener,
        } = self;
        let telemetry = Telemetry::default();
        let recorder = Recorder::default();
        let closing = Closing::default();
        let shared = SharedInformers::new(
            client.clone(),
            InformerOptions {
                indexer: Some(crew.indexers.clone()),
                ..InformerOptions::default()
            },
        );
        let roster = Roster::default();
        register_controllers(&roster, &clock, &telemetry.registry)?;
        let mut yard = Yard {
            client: client.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            crew: crew.clone(),
            recorder: recorder.clone(),
            roster: roster.clone(),
            informers: Informers::new(shared.clone(), options.namespaces),
            concurrency: options.workers,
            grace: options.grace,
            closing: closing.clone(),
            controllers: Vec::new(),
        };
        for controller in &controllers {
            controller.declare(&mut yard.informers)?;
        }
        let branches: Vec<_> = controllers
            .into_iter()
            .map(|c| c.assemble(&mut yard))
            .collect::<Result<_, _>>()?;
        let controllers = yard.controllers.into();
        let used = yard.informers.into_views();
        let connection = Connection::new(&address);
        let reached = connection.clone();
        telemetry.ready.add("api-server", move || reached.check());
        let scraped = shared.clone();
        register_informers(move || scraped.cores(), &clock, &telemetry.registry)?;
        let checked = shared.clone();
        let checks = informers::checks(move || checked.cores(), clock.clone());
        telemetry.ready.add_all(checks);
        register_recorder(&recorder, &telemetry.registry)?;
        let parts = Parts {
            client,
            telemetry: telemetry.clone(),
            recorder,
            connection,
            crew,
            informers: shared.clone(),
            listener: listener.map(Arc::new),
        };
        let root = root(parts, branches);
        let tree = Tree::start(
            root,
            TreeOptions {
                clock: clock.clone(),
                entropy,
                watchdog: options.patience,
            },
        )
        .await?;
        telemetry.live.add("threads", blocked(tree.observer()));
        let observer = Observer {
            tree: tree.observer(),
            clock,
            telemetry,
            informers: shared,
            controllers,
        };
        Ok(Running {
            tree,
            observer,
            _informers: used,
            closing,
            grace: options.grace,
        })
    }
}

struct Parts {
    client: kube::Client,
    telemetry: Telemetry,
    recorder: Recorder,
    connection: Connection,
    crew: Crew,
    informers: SharedInformers,
    listener: Option<Arc<TcpListener>>,
}

/// The tree, in start order: telemetry, events, connection, informers, controllers. It stops in reverse.
fn root(parts: Parts, controllers: Vec<Branch>) -> SupervisorSpec {
    // the windows grow towards the root, or what is broken for good below would never fill them (the tree refuses such windows)
    let intensity = Intensity::new(3, Duration::from_secs(5 * 60));
    let last = Intensity::new(3, Duration::from_secs(20 * 60));
    let controllers = Arc::new(controllers);
    SupervisorSpec::new("root", Strategy::OneForOne)
        .intensity(last)
        .children(move |root: &mut Children| {
            if let Some(listener) = &parts.listener {
                let (telemetry, listener) = (parts.telemetry.clone(), listener.clone());
                let make = move |_: &Link| TelemetryActor::new(telemetry.clone(), listener.clone());
                root.add(
                    ChildSpec::actor("telemetry", Mailbox::new(), make)
                        .thread(parts.crew.telemetry.clone()),
                );
            }
            let (recorder, client) = (parts.recorder.clone(), parts.client.clone());
            let instance = hostname();
            let make = move |link: &Link| {
                RecorderActor::new(recorder.clone(), client.clone(), instance.clone(), link)
            };
            root.add(
                ChildSpec::actor("events", Mailbox::new(), make).thread(parts.crew.events.clone()),
            );
            let (connection, client) = (parts.connection.clone(), parts.client.clone());
            let make =
                move |link: &Link| ConnectionActor::new(connection.clone(), client.clone(), link);
            root.add(
                ChildSpec::actor("connection", Mailbox::new(), make)
                    .thread(parts.crew.events.clone()),
            );

            let informers = parts.informers.supervisor("informers");
            let informers = informers
                .thread(parts.crew.informers.clone())
                .intensity(intensity);
            root.add(ChildSpec::supervisor(informers));

            let branches = controllers.clone();
            let controllers = SupervisorSpec::new("controllers", Strategy::OneForOne)
                .intensity(intensity)
                .children(move |children: &mut Children| {
                    for branch in branches.iter() {
                        children.add(ChildSpec::supervisor(branch()));
                    }
                });
            root.add(ChildSpec::supervisor(controllers));
        })
}

/// The check of liveness that fails while an actor blocks its thread: nothing but the end of the process can interrupt it.
fn blocked(tree: boatswain_supervision::Observer) -> impl Fn() -> Result<(), String> {
    move || {
        let blocked = tree.blocked();
        let names: Vec<String> = blocked
            .iter()
            .map(
                |Blocked {
                     path,
                     thread,
                     for_ms,
                 }| {
                    format!("{path} has blocked thread {thread} for {} s", for_ms / 1000)
                },
            )
            .collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(names.join(", "))
        }
    }
}

/// Who reports Events: the pod's name inside a cluster.
fn hostname() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "boatswain".into())
}
