//! A simulated cluster to point kubectl at: prints a kubeconfig's path and serves until it is interrupted.
//!
//! Arguments: the address (default `127.0.0.1:0`), then files of manifests to start with. With `STILL` in the
//! environment no controllers run, as on a cluster without a controller manager.

use boatswain_apisim::{ApiSim, WorldOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let addr = args.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let sim = ApiSim::default();
    for file in args {
        sim.create_yaml(&std::fs::read_to_string(file)?)?;
    }
    let server = sim.serve(&addr).await?;
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
