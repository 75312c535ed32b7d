//! Benchmarks of Boatswain; each is one file, run with `cargo bench -p boatswain-benches --bench NAME`.
//!
//! - `fleet`: ten thousand PodAutoscalers converge; with a stalled indexer, too.
//!
//! What supervision itself costs is measured where it can be built alone: `cargo bench -p boatswain-supervision`.
