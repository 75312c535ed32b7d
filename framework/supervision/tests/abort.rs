//! Restarts need unwinding: a build without it must not compile, and say why.

#![allow(clippy::expect_used, reason = "a test without a compiler has failed")]

use std::path::Path;
use std::process::Command;

/// What the compiler says to the module that catches panics, taken by itself.
fn compiled_with(panic: &str) -> String {
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| beside.into());
    let output = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ])
        .args(["-C", &format!("panic={panic}"), "-o"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("panics-{panic}.rmeta")))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/panics.rs"))
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // by itself the module misses the rest of the crate
    assert!(said.contains("src/panics.rs"), "{said}");
    said
}

const REASON: &str = "boatswain-supervision restarts actors that panic, which needs unwinding: remove `panic = \"abort\"` from the Cargo profile";

#[test]
fn a_build_that_aborts_on_panic_does_not_compile_and_says_why() {
    let said = compiled_with("abort");
    assert!(said.contains(REASON), "{said}");
}

#[test]
fn a_build_that_unwinds_is_not_refused() {
    let said = compiled_with("unwind");
    assert!(!said.contains(REASON), "{said}");
}
