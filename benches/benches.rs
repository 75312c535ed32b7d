//! Benchmarks of Boatswain; each is one file, run with `cargo bench -p boatswain-benches --bench NAME`.
//!
//! - `fleet`: ten thousand PodAutoscalers converge; with a stalled indexer, too.
