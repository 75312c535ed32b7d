//! Keeps up with the server: lists, watches, resumes, relists.

pub(crate) mod actor;
pub(crate) mod answer;
pub(crate) mod backoff;
pub(crate) mod doubts;
pub(crate) mod event;
pub(crate) mod plan;
pub(crate) mod state;
pub(crate) mod stream_lists;
pub(crate) mod voice;
