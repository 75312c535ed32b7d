//! Says a text by what it has in another one's place.
//!
//! Written as numbers of seven bits a byte: the length of the text; then, as often as needed, how much is the same, how much of the other text is left out,
//! how much is put in its place, and that itself. What follows the last edit is the same.

use std::ops::Range;

#[cfg(test)]
mod tests;

/// Edits that are being written down, in the order of their places.
pub(crate) struct Edits {
    frame: Vec<u8>,
    /// How far the other text is told.
    told: usize,
}

impl Edits {
    /// Of a text of `length` bytes, written in the room of `frame`.
    pub(crate) fn new(length: usize, mut frame: Vec<u8>) -> Self {
        frame.clear();
        put(&mut frame, length);
        Self { frame, told: 0 }
    }

    /// In this text stands `text`, and what is at `place` in the other one does not. `None` if that lies before what was said already.
    pub(crate) fn push(&mut self, place: Range<usize>, text: &[u8]) -> Option<()> {
        put(&mut self.frame, place.start.checked_sub(self.told)?);
        put(&mut self.frame, place.end.checked_sub(place.start)?);
        put(&mut self.frame, text.len());
        self.frame.extend_from_slice(text);
        self.told = place.end;
        Some(())
    }

    pub(crate) fn frame(self) -> Vec<u8> {
        self.frame
    }
}

/// How long the text is.
pub(super) fn size(mut frame: &[u8]) -> usize {
    take(&mut frame).unwrap_or(0)
}

/// Fills `text` with what was said of it by the `other`; leaves it empty if the frame was damaged in memory.
pub(crate) fn apply(frame: &[u8], other: &[u8], text: &mut Vec<u8>) {
    text.clear();
    if fill(frame, other, text).is_none() {
        text.clear();
    }
}

fn fill(mut frame: &[u8], mut other: &[u8], text: &mut Vec<u8>) -> Option<()> {
    let length = take(&mut frame)?;
    while !frame.is_empty() {
        let (same, dropped, put) = (take(&mut frame)?, take(&mut frame)?, take(&mut frame)?);
        text.extend_from_slice(other.split_off(..same)?);
        other.split_off(..dropped)?;
        text.extend_from_slice(frame.split_off(..put)?);
    }
    text.extend_from_slice(other);
    (text.len() == length).then_some(())
}

fn put(frame: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        frame.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    frame.push(number as u8);
}

fn take(frame: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = *frame.split_off_first()?;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
