//! The mirror itself: one writer by type, many readers.

mod index;
pub(crate) mod layout;
mod settle;
#[expect(
    clippy::module_inception,
    reason = "the folder is the idea, the file its centre"
)]
mod store;

pub use index::IndexSpec;
pub(crate) use store::{Applied, Reader, Writer, store};
