//! A program that cannot stop.

use std::process::Command;

use boatswain_tests::{Replica, Space, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_whose_reconciler_blocks_its_thread_ends_by_a_signal_says_what_still_runs_and_fails()
 {
    let world = World::sim().await;
    let space = Space::create(&world.client().await, "stuck").await;
    space.put("block", "x").await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_blocker"));
    command
        .arg("--kubeconfig")
        .arg(world.kubeconfig())
        .args(["--namespace", &space.name, "--dashboard-listen=off"])
        .args(["--workers=1", "--grace-period=100ms"])
        .env_remove("RUST_LOG");
    let program = Replica::spawn(command, "blocker");
    program.says(&["blocks"], 0).await;
    program.terminate();
    let (status, log) = program.ends().await;
    assert_eq!(status.code(), Some(1), "{log:#?}");
    let errors: Vec<_> = log.iter().filter(|l| l.starts_with("error: ")).collect();
    let [error] = errors[..] else {
        panic!("one line: {log:#?}")
    };
    assert_eq!(log.last(), Some(error), "{log:#?}");
    for words in [
        "still running",
        "root/controllers/blocker/workers-0/worker-",
        "block their threads",
    ] {
        assert!(error.contains(words), "{error}");
    }
    assert!(!log.iter().any(|l| l.contains("panicked")), "{log:#?}");
}
