//! Runnable lessons in Boatswain; each is one file.
//!
//! By `cargo run -p boatswain-examples --example NAME`, on a cluster:
//!
//! - `size_label`: a whole controller in under 40 lines.
//! - `owned_configmap`: a custom resource that owns a ConfigMap through an owner reference.
//! - `dynamic`: a controller of kinds that are named on the command line.
//! - `evictor`: subresources that have no helper: it reads logs and evicts.
//! - `fleet`: two controllers in one process that share the watch of Deployments, and what they do where they disagree.
//!
//! Of the crates below, without any cluster:
//!
//! - `cargo run -p boatswain-cache --example harbour_cache`: the cache alone: what it mirrors, finds, tells and waits for.
//! - `cargo run -p boatswain-supervision --example supervised_counter`: actors under a supervisor: one crashes, and its tree is printed as it heals.
