//! Whether an object is selected, without asking a server.

use super::Selection;
use crate::object::Object;

impl Selection {
    /// Whether the server would select `object`, a whole one: by its namespace, labels and fields. What an object does not have counts as the field's empty
    /// value, be it a text, a number or a truth value, as servers count it.
    #[must_use]
    pub fn meets(&self, object: &Object) -> bool {
        self.scope.contains(object.key().namespace())
            && (self.labels.is_empty() || self.meets_labels(&object.labels()))
            && self.fields.iter().all(|condition| has(object, condition))
    }

    /// Whether nothing is asked of labels and fields.
    #[must_use]
    pub fn is_unconditional(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Whether a condition on a field, as the server reads it, holds.
fn has(object: &Object, condition: &str) -> bool {
    let (path, value) = condition.split_once('=').unwrap_or((condition, ""));
    let (path, equal) = path
        .strip_suffix('!')
        .map_or((path, true), |path| (path, false));
    let (mut wanted, mut letters) = (String::new(), value.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => wanted.extend(letters.next()),
            letter => wanted.push(letter),
        }
    }
    let same = match object.path(path) {
        Some(found) => found == wanted,
        None => matches!(&*wanted, "" | "0" | "false"),
    };
    same == equal
}
