//! Runnable lessons in Boatswain; each is one file, run with `cargo run -p boatswain-examples --example NAME`.
//!
//! - `size_label`: a whole controller in under 40 lines.
//! - `owned_configmap`: a custom resource that owns a ConfigMap through an owner reference.
//! - `supervised_counter`: actors under a supervisor, without any cluster: one crashes, and its tree is printed as it heals.
