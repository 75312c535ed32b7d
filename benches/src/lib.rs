//! Benchmarks of Boatswain.
