//! Tables by key, and how they give memory back.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// A table of short names: its hash costs little, and its seed differs from process to process.
pub(crate) type Table<K, V> = HashMap<K, V, RandomState>;

/// Tables of fewer places are not worth the trouble.
const SMALL: usize = 1024;

/// Makes a table smaller that was much larger once: by itself it keeps the places of the most entries it ever had. Call it after removing; it costs
/// nothing until an eighth is left, so an entry is moved no more than a few times in its life.
pub(crate) fn trim<K: Eq + Hash, V>(table: &mut Table<K, V>) {
    if is_too_large(table.len(), table.capacity()) {
        table.shrink_to(table.len() * 2);
    }
}

/// Whether a table of so many entries has so many places that most should be given back.
pub(crate) fn is_too_large(len: usize, capacity: usize) -> bool {
    capacity > SMALL && len < capacity / 8
}
