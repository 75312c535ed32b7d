//! The mirror itself: one writer by type, many readers.

pub(crate) mod body;
mod dictionary;
pub(crate) mod edits;
mod head;
mod index;
mod keeper;
pub(crate) mod memo;
mod objects;
mod press;
mod settle;
#[expect(
    clippy::module_inception,
    reason = "the folder is the idea, the file its centre"
)]
mod store;

pub(crate) use body::Packed;
pub use index::IndexSpec;
pub(crate) use keeper::Keeper;
pub use keeper::{Decoder, Layout, StoreOptions};
pub use memo::MemoStatus;
pub(crate) use press::{Due, Hand, Press};
pub(crate) use store::{Applied, Reader, Writer, store};
