//! The command line.

use clap::{Parser, Subcommand, ValueEnum};

/// Boatswain's cache beside kube-rs' reflector and client-go's informer: the same pods from the same server, each contestant a process of its own.
///
/// Prints Markdown on the standard output and its progress on the other. Nothing else should run on the machine meanwhile: the server needs a core of its own.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p boatswain-benches --bench cache --")]
pub(crate) struct Options {
    /// Numbers of pods to measure with.
    #[arg(long, value_delimiter = ',', default_value = "20000,100000")]
    pub(crate) objects: Vec<u64>,
    /// Runs of each measurement; medians are shown.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
    /// Modifications sent at saturation.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) events: u64,
    /// Whom to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "boatswain,kube-rs,client-go"
    )]
    pub(crate) contestants: Vec<Who>,
    /// What to measure.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cache,framing,growth"
    )]
    pub(crate) only: Vec<Part>,
    /// Numbers of pods the growth of cost is shown at.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,10000,100000,1000000"
    )]
    pub(crate) growth: Vec<u64>,
    /// Where to draw the growth of cost, as SVG.
    #[arg(long)]
    pub(crate) svg: Option<std::path::PathBuf>,
    /// Where to write every single run, as CSV.
    #[arg(long)]
    pub(crate) csv: Option<std::path::PathBuf>,
    /// Different workloads among the pods.
    #[arg(long, default_value_t = 300)]
    pub(crate) workloads: u64,
    /// Another seed makes other pods.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The server streams lists to whoever asks (`sendInitialEvents`), as servers since 1.32 do; by default it refuses, as those before 1.27.
    #[arg(long)]
    pub(crate) stream_lists: bool,
    /// Once and tiny, to see that it works; says nothing about speed.
    #[arg(long)]
    pub(crate) test: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Who {
    /// Our informer.
    Boatswain,
    /// kube-rs' reflector.
    KubeRs,
    /// client-go's shared informer; left out where there is no Go.
    ClientGo,
    /// Our informer with every pod kept decoded (`Layout::typed`).
    BoatswainTyped,
    /// kube-rs' reflector with `managedFields` taken out of every pod.
    KubeRsLean,
    /// client-go's shared informer with `managedFields` taken out of every pod by its transform.
    ClientGoLean,
}

impl Who {
    /// Its name in tables and on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boatswain => "boatswain",
            Self::KubeRs => "kube-rs",
            Self::ClientGo => "client-go",
            Self::BoatswainTyped => "boatswain-typed",
            Self::KubeRsLean => "kube-rs-lean",
            Self::ClientGoLean => "client-go-lean",
        }
    }

    /// Whether it is our own.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Boatswain | Self::BoatswainTyped)
    }

    /// Whether it is the Go module.
    pub(crate) fn is_go(self) -> bool {
        matches!(self, Self::ClientGo | Self::ClientGoLean)
    }
}

/// What there is to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Everything about caches that are filled from a server.
    Cache,
    /// Cutting a list into items, beside copying it.
    Framing,
    /// How our cost grows with the number of pods.
    Growth,
}

/// The processes a measurement starts.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Role {
    /// The server: prints its address, ends with its input.
    #[command(hide = true)]
    Serve { objects: u64 },
    /// A contestant: fills its cache from the server at this address and obeys its input.
    #[command(hide = true)]
    Contestant { who: Who, address: String },
    /// Prints one pod of as many, and the average sizes of all.
    Show { objects: u64 },
}

impl Options {
    /// The options as given, or the tiny ones of a test.
    pub(crate) fn chosen() -> Self {
        let given = Self::parse();
        if !given.test {
            return given;
        }
        Self {
            objects: vec![1000],
            runs: 1,
            events: 2000,
            growth: vec![100, 1000],
            ..given
        }
    }
}
