//! Watch bodies: one event a line.

use super::{Gather, Item};

/// Cuts a watch body into lines.
#[derive(Debug)]
pub struct LineSplitter {
    gather: Gather,
}

impl LineSplitter {
    /// A splitter that keeps lines of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            gather: Gather::new(limit),
        }
    }

    /// Takes the next bytes and hands every line that ends in them to `sink`, without its line end; blank lines are left out.
    pub fn push(&mut self, mut chunk: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = &rest[1..];
            self.gather.finish(line, &mut |item| match item {
                Item::Whole(line) if line.trim_ascii().is_empty() => {}
                Item::Whole(line) => sink(Item::Whole(line.trim_ascii())),
                oversized => sink(oversized),
            });
        }
        self.gather.add(chunk);
    }

    /// Bytes of a line that never ended. Its event counts as not received: the server sends it again when the watch is resumed.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.gather.total
    }
}
