//! Puts controllers, informers and what they share into one supervision tree, runs it and stops it in order.

mod bridge;
mod commission;
mod links;
mod rights;
mod tree;

use std::{
    collections::HashSet,
    future::Future,
    net::TcpListener,
    process::ExitCode,
    sync::{Arc, Mutex},
};

use boatswain_cache::{InformerOptions, SharedInformers};
use boatswain_supervision::{Clock, Entropy, Tree, TreeOptions};
use bridge::Bridge;
use clap::Parser;
use commission::Issuer;
pub(crate) use commission::{Commission, Commissions, Keepers, Leader};
use links::Links;
use tree::{Parts, blocked, root};

use crate::{
    assemble::{Defaults, Runnable, Yard},
    connection::Connection,
    controllers::{Berths, Deck, Leases, Muster},
    crew::{Crew, Pool},
    dashboard::Lookout,
    dispatch::Closing,
    error::{RunError, StartError},
    informers::{self, Informers},
    leader::{Election, catch_up},
    logging,
    options::{ManagerArgs, Options},
    recorder::Accounts,
    running::{Handle, Observer, Running},
    signals,
    telemetry::{
        Roster, Telemetry, bind, register_controllers, register_informers, register_leadership,
        register_recorder, register_requests,
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

    /// A manager with the options given on the command line, in the environment and in a file ([`ManagerArgs`]); prints help, the settings or a usage error and
    /// exits where clap would.
    pub fn from_args() -> Self {
        /// Runs the controllers of this program until SIGTERM or Ctrl-C
        #[derive(Parser)]
        struct Cli {
            #[command(flatten)]
            manager: ManagerArgs,
        }
        Self::new(Cli::parse().manager.options_or_exit())
    }

    /// Which leases are campaigned for, where one of several replicas is to work.
    fn election(&self, entropy: &Entropy) -> Result<Option<Election>, StartError> {
        let (Some(options), Some(first)) = (&self.options.leader, self.controllers.first()) else {
            return Ok(None);
        };
        Ok(Some(Election::of(options, first.name(), entropy)?))
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
        let service = self.controllers.first().map_or("boatswain", Runnable::name);
        let _logs = logging::start(self.options.log_format, self.options.verbosity, service);
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
                let started = |running: &Running| {
                    let _ = started.send((running.observer().clone(), running.controllers()));
                };
                run_to_end(self, connect, || Ok(stop), started)
            })?;
        match answer.recv() {
            Ok((observer, controllers)) => Ok(Handle {
                observer,
                controllers,
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
        let election = self.election(&entropy)?;
        let links = Links::over(client, &clock);
        let issuer = Issuer {
            links,
            clock,
            entropy,
            accounts: Accounts::default(),
        };
        let launch = Launch {
            commissions: Commissions::begin(election, issuer.clone()).await?,
            issuer,
            crew: Crew::here(),
            listener: None,
            bridge: None,
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
    started: impl FnOnce(&Running),
) -> Result<(), RunError> {
    let entropy = Entropy::from_os();
    let election = manager.election(&entropy)?;
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
    // the lease's connections: nothing else can make them late
    let own = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(threads)?;
    let shards = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(options.workers);
    let pool = Pool::default();
    let system = actix_rt::System::new();
    let ended = system.block_on(async {
        let stop = stop().map_err(threads)?;
        tokio::pin!(stop);
        let clock = Clock::system();
        let commissioned = async {
            let links = match connect {
                Some(connect) => {
                    let _io = io.enter();
                    Links::over(connect(), &clock)
                }
                None => {
                    let runtimes = [io.handle().clone(), own.handle().clone()];
                    Links::to_cluster(&options, clock.clone(), runtimes).await?
                }
            };
            let issuer = Issuer {
                links,
                clock,
                entropy,
                accounts: Accounts::default(),
            };
            let commissions = Commissions::begin(election, issuer.clone()).await?;
            Ok::<_, StartError>((issuer, commissions))
        };
        let (issuer, commissions) = tokio::select! {
            biased;
            why = &mut stop => return given_up(why),
            commissioned = commissioned => commissioned?,
        };
        let bridge = match &options.dashboard {
            Some(dashboard) => Bridge::open(dashboard)?,
            None => None,
        };
        let (mut crew, arbiters) = Crew::hire(shards);
        crew.pool = Some(pool.clone());
        let launch = Launch {
            issuer,
            commissions,
            crew,
            listener,
            bridge,
        };
        let running = tokio::select! {
            biased;
            why = &mut stop => return given_up(why),
            running = launch.launch(options, controllers) => running?,
        };
        started(&running);
        let ended = running.until(stop).await;
        // a thread that is blocked cannot be waited for
        if !matches!(ended, Err(RunError::StillRunning(_))) {
            arbiters.dismiss().map_err(threads)?;
        }
        ended
    });
    pool.end();
    io.shutdown_background();
    own.shutdown_background();
    ended
}

/// A stop that is asked for before anything runs.
fn given_up(why: &str) -> Result<(), RunError> {
    tracing::info!(why, "stopped before the start was over");
    Ok(())
}

/// What a tree is launched with.
struct Launch {
    issuer: Issuer,
    commissions: Commissions,
    crew: Crew,
    listener: Option<TcpListener>,
    bridge: Option<Bridge>,
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
            issuer:
                Issuer {
                    links,
                    clock,
                    entropy,
                    accounts,
                },
            commissions,
            crew,
            listener,
            bridge,
        } = self;
        let client = commissions.reader().clone();
        let telemetry = Telemetry::default();
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
        let yard = Yard {
            clock: clock.clone(),
            entropy: entropy.clone(),
            crew: crew.clone(),
            roster: roster.clone(),
            informers: Informers::new(shared.clone(), options.namespaces),
            defaults: Defaults {
                concurrency: options.workers,
                resync: options.resync,
                max_retries: options.max_retries,
                selector: options.selector,
            },
            grace: options.grace,
            closing: closing.clone(),
            assembled: 0,
        };
        let deck = Arc::new(Deck {
            yard: Mutex::new(yard),
            berths: Berths::default(),
            muster: Muster::default(),
            commissions: commissions.clone(),
            clock: clock.clone(),
        });
        deck.assemble_all(controllers).await?;
        let controllers = deck.muster.clone();
        let leases = Leases::new(&commissions, &controllers);
        if options.leader.is_some() {
            let (stuck, boot) = (leases.clone(), clock.clone());
            telemetry.live.add_all(move || stuck.check(boot.boot()));
            register_leadership(&leases, &telemetry.registry)?;
        }
        let keepers = commissions.shared().map(|commission| {
            if let Some(leadership) = commission.leadership() {
                let (led, recorder) = (controllers.clone(), commission.recorder.clone());
                leadership.follow(move |role| {
                    led.play(role);
                    recorder.play(role);
                });
            }
            let (worked, informed) = (controllers.clone(), shared.clone());
            Keepers {
                commission: commission.clone(),
                catch_up: catch_up(move || informed.cores(), clock.clone()),
                busy: Arc::new(move || worked.is_busy()),
                crew: crew.clone(),
            }
        });
        let connection = Connection::new(&links.address);
        let reached = connection.clone();
        telemetry.ready.add("api-server", move || reached.check());
        let scraped = shared.clone();
        register_informers(move || scraped.cores(), &clock, &telemetry.registry)?;
        let checked = shared.clone();
        let checks = informers::checks(move || checked.cores(), clock.clone());
        telemetry.ready.add_all(checks);
        let checked = controllers.clone();
        telemetry.ready.add_all(move || checked.check());
        register_recorder(&accounts, &telemetry.registry)?;
        register_requests(&links.requests, &telemetry.registry)?;
        let parts = Parts {
            client,
            keepers,
            berths: deck.berths.clone(),
            telemetry: telemetry.clone(),
            connection,
            crew,
            informers: shared.clone(),
            listener: listener.map(Arc::new),
            bridge: bridge.clone(),
        };
        let root = root(parts);
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
            leases,
            dashboard: bridge.as_ref().map(Bridge::address),
        };
        if let Some(bridge) = &bridge {
            let operator = tree.operator().clone();
            let lookout = Lookout::new(observer.clone(), operator, roster);
            bridge.dashboard.attach(Arc::new(lookout));
        }
        Ok(Running {
            tree,
            observer,
            deck,
            closing,
            grace: options.grace,
        })
    }
}
