//! A simulated cluster to point kubectl at: prints a kubeconfig's path and serves until it is interrupted.

use std::{net::SocketAddr, path::PathBuf};

use boatswain_apisim::{ApiSim, WorldOptions};
use clap::Parser;

/// Simulates a cluster to point kubectl at, prints a kubeconfig's path and serves until it is interrupted
///
/// With STILL in the environment no controllers run, as on a cluster without a controller manager.
#[derive(Parser)]
struct Cli {
    /// Address to serve on
    #[arg(default_value = "127.0.0.1:0")]
    address: SocketAddr,
    /// Files of manifests to start with
    manifests: Vec<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Cli { address, manifests } = Cli::parse();
    let sim = ApiSim::default();
    for file in manifests {
        sim.create_yaml(&std::fs::read_to_string(file)?)?;
    }
    let server = sim.serve(&address.to_string()).await?;
    let kubeconfig =
        std::env::temp_dir().join(format!("apisim-{}.kubeconfig", server.addr().port()));
    server.write_kubeconfig(&kubeconfig)?;
    println!("KUBECONFIG={}", kubeconfig.display());
    match std::env::var_os("STILL") {
        Some(_) => std::future::pending().await,
        None => sim.world(WorldOptions::default()).run().await,
    }
    Ok(())
}
