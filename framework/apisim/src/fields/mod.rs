//! Which manager set which field.

pub(crate) mod apply;
pub(crate) mod managers;
pub(crate) mod set;
pub(crate) mod shape;
