//! Applies pending news to the store and tells the subscribers.

pub(crate) mod actor;
