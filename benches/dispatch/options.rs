//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Boatswain's dispatcher beside kube-rs' controller: reconciles that do nothing, over the same objects, each contestant a process of its own.
///
/// Prints Markdown on the standard output and its progress on the other. Nothing else should run on the machine meanwhile.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p boatswain-benches --bench dispatch --")]
pub(crate) struct Options {
    /// Runs of each measurement; medians are shown.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Seconds each of them takes.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) seconds: f64,
    /// Whom to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "boatswain,kube-rs"
    )]
    pub(crate) contestants: Vec<Who>,
    /// What to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "rate,cores,latency,readers"
    )]
    pub(crate) only: Vec<Part>,
    /// The number of keys where there are many.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) many: usize,
    /// Changes a second to measure the latency at.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    pub(crate) changes: Vec<u32>,
    /// Once and tiny, to see that it works; says nothing about speed.
    #[arg(long)]
    pub(crate) test: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What a process started by the benchmark is.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Role {
    /// Measures one thing, and says what it found as JSON.
    #[command(hide = true)]
    Contestant(Task),
}

/// One measurement.
#[derive(Clone, Debug, Args)]
pub(crate) struct Task {
    pub(crate) who: Who,
    /// Distinct keys.
    #[arg(long)]
    pub(crate) keys: usize,
    #[arg(long, value_enum, default_value = "noop")]
    pub(crate) shape: Shape,
    /// How each run asks for the next of its key.
    #[arg(long, value_enum, default_value = "channel")]
    pub(crate) ask: Ask,
    #[arg(long, default_value_t = 3.0)]
    pub(crate) seconds: f64,
    /// Changes a second; without it each run asks for the next of its key.
    #[arg(long)]
    pub(crate) changes: Option<u32>,
    /// Cores to keep to; all of them where it is missing.
    #[arg(long)]
    pub(crate) cores: Option<usize>,
    /// Serve a dashboard, and say where.
    #[arg(long)]
    pub(crate) dashboard: bool,
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Who {
    /// `Manager`, with threads of its own.
    Boatswain,
    /// `kube::runtime::Controller`, on a runtime with as many threads as cores.
    KubeRs,
}

/// What the reconciler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Nothing.
    Noop,
    /// Yields once.
    Yield,
}

/// How a run asks for the next of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ask {
    /// It sends it by a channel: the news come from outside.
    Channel,
    /// It asks to run again after no time at all.
    Requeue,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Reconciles a second, as fast as it goes.
    Rate,
    /// The same on one core and on two.
    Cores,
    /// Time from a change to its run, at a fixed rate of changes.
    Latency,
    /// The same of Boatswain without a dashboard, with one, and with 50 readers of its stream of which 10 never read.
    Readers,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boatswain => "boatswain",
            Self::KubeRs => "kube-rs",
        }
    }
}

impl Shape {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Yield => "yield",
        }
    }
}

impl Ask {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Requeue => "requeue",
        }
    }
}

impl Options {
    pub(crate) fn chosen() -> Self {
        let mut options = Self::parse();
        if options.test {
            options.runs = 1;
            options.seconds = 0.1;
            options.many = options.many.min(500);
            options.changes = vec![1000];
        }
        options
    }
}
