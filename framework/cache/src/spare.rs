//! Buffers a thread uses again and again.

/// Buffers above this many bytes are not kept: they were needed for an exception.
const MOST: usize = 1 << 20;

/// `buffer` to be kept for the next use; an empty one in its stead where it grew too large.
pub(crate) fn spare(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() <= MOST {
        buffer
    } else {
        Vec::new()
    }
}
