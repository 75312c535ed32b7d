//! What is stored and what is known of each kind.

pub(crate) mod builtin;
pub(crate) mod crd;
pub(crate) mod event;
pub(crate) mod object;
pub(crate) mod registry;
pub(crate) mod served;
