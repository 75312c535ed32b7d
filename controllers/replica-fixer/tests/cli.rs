//! The binary as its users meet it.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::process::{Command, Output, Stdio};

fn output(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replica-fixer"));
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_installs_it_is_printed_for_the_image_and_namespaces_that_are_said() {
    let printed = output(&[
        "manifests",
        "--image",
        "r.example.com/fixer:2",
        "--work-in",
        "shop,123",
    ]);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let printed = text(&printed.stdout);
    for words in [
        "image: r.example.com/fixer:2",
        "namespace: \"123\"",
        "--namespace=shop,123",
        "deployments/scale",
    ] {
        assert!(printed.contains(words), "{words} is missing in:\n{printed}");
    }
    assert!(!printed.contains("kind: ClusterRole"), "{printed}");
}

#[test]
fn a_missing_kubeconfig_is_one_line_and_a_code_that_is_not_zero() {
    let output = output(&["check", "--kubeconfig", "/nonexistent/kubeconfig"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("/nonexistent/kubeconfig"), "{error}");
}
