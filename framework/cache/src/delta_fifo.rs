//! Pending news per key between the reflector and the indexer.

pub(crate) mod actor;
pub(crate) mod state;
