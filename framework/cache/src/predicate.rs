//! Which changes are worth hearing of.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Not;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use serde_json::value::RawValue;

use crate::delta::Change;
use crate::object::{Object, Path};

#[cfg(test)]
mod tests;

/// Says of a change whether it matters. The stock ones read what they need from the bytes of both states and never decode a type; a clone costs one
/// reference count.
///
/// There are two sorts. Those about a *difference* ([`Predicate::generation_changed`], [`Predicate::path_changed`]…) judge updates alone: of creations
/// and deletions they have no opinion. Those about a *state* ([`Predicate::labels_match`], [`Predicate::namespace_in`]…) judge every change, and one
/// that leads into or out of what they ask for counts. Combined, whoever has no opinion is left out; **a change of which none has an opinion passes**.
/// So none of the stock ones, however they are combined or turned around, loses a deletion or a recreation because of a difference it did not see.
/// Nothing is remembered between two changes: the state before is the one the subscriber was told of, kept by its backlog.
///
/// The initial replay consists of creations. A resync is an update from a state to itself: predicates about a difference filter it, those about a state
/// do not.
///
/// ```
/// use boatswain_cache::Predicate;
///
/// let specs = Predicate::generation_changed().or(Predicate::path_changed("metadata.annotations.pause"));
/// let mine = specs.and(!Predicate::namespace_in(["kube-system"]));
/// assert_eq!(mine.to_string(), "(generation changed or metadata.annotations.pause changed) and not in namespace kube-system");
/// ```
#[derive(Clone)]
pub struct Predicate(Arc<Rule>);

type Differ = dyn Fn(&Object, &Object) -> bool + Send + Sync;
type Holds = dyn Fn(&Object) -> bool + Send + Sync;
type Passes = dyn Fn(&Change) -> bool + Send + Sync;

enum Rule {
    Difference(String, Box<Differ>),
    State(String, Box<Holds>),
    Change(String, Box<Passes>),
    All(Predicate, Predicate),
    Any(Predicate, Predicate),
    Not(Predicate),
}

impl Predicate {
    /// Updates of the desired state: another `metadata.generation`, which the server also raises when a deletion is asked for. For kinds that count none,
    /// such as ConfigMaps, every update that is not a resync.
    #[must_use]
    pub fn generation_changed() -> Self {
        Self::difference("generation changed", |old, new| {
            match (old.meta().generation, new.meta().generation) {
                (Some(old), Some(new)) => old != new,
                _ => old.meta().resource_version != new.meta().resource_version,
            }
        })
    }

    /// Every update but those of a resync: another `metadata.resourceVersion`.
    #[must_use]
    pub fn version_changed() -> Self {
        Self::difference("version changed", |old, new| {
            old.meta().resource_version != new.meta().resource_version
        })
    }

    /// Updates of labels.
    #[must_use]
    pub fn labels_changed() -> Self {
        Self::part_changed("labels")
    }

    /// Updates of annotations.
    #[must_use]
    pub fn annotations_changed() -> Self {
        Self::part_changed("annotations")
    }

    /// Updates of finalizers.
    #[must_use]
    pub fn finalizers_changed() -> Self {
        Self::part_changed("finalizers")
    }

    /// The update by which a deletion is asked for: the object is then only waiting for its finalizers.
    #[must_use]
    pub fn deletion_requested() -> Self {
        Self::difference("deletion requested", |old, new| {
            old.meta().deletion_timestamp.is_none() && new.meta().deletion_timestamp.is_some()
        })
    }

    /// Updates of anything at or below a path such as `spec.replicas`, `status` or `spec.volumes[*].name`; see [`Path`] for the notation. A member that is
    /// null counts as absent.
    #[must_use]
    pub fn path_changed(path: &str) -> Self {
        let name = format!("{path} changed");
        let path = Path::new(path);
        Self::difference(name, move |old, new| differ(&path, old, new, false))
    }

    fn part_changed(part: &str) -> Self {
        let path = Path::new(&format!("metadata.{part}"));
        Self::difference(format!("{part} changed"), move |old, new| {
            differ(&path, old, new, true)
        })
    }

    /// Changes of objects whose labels match, before or after the change. An empty selector matches all.
    #[must_use]
    pub fn labels_match(selector: impl Into<Selector>) -> Self {
        let selector = selector.into();
        let name = format!("labels match {selector}");
        Self::state(name, move |object| selector.matches(&object.labels()))
    }

    /// Changes of objects in one of these namespaces. An object without namespace is in none.
    #[must_use]
    pub fn namespace_in<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        let names: Vec<_> = namespaces.iter().map(String::as_str).collect();
        let name = format!("in namespace {}", names.join(", "));
        Self::state(name, move |object| {
            object
                .key()
                .namespace()
                .is_some_and(|namespace| namespaces.contains(namespace))
        })
    }

    /// A predicate of one's own about a difference between the old and the new state; `name` completes the sentence "passes what is …". Of creations and
    /// deletions it has no opinion.
    ///
    /// It may panic: whoever asks it contains that.
    #[must_use]
    pub fn difference(
        name: impl Into<String>,
        differ: impl Fn(&Object, &Object) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Rule::Difference(name.into(), Box::new(differ))))
    }

    /// A predicate of one's own about a state. Of an update either state may hold.
    #[must_use]
    pub fn state(
        name: impl Into<String>,
        holds: impl Fn(&Object) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Rule::State(name.into(), Box::new(holds))))
    }

    /// A predicate of one's own about any change. It alone answers for deletions, also where it is turned around.
    #[must_use]
    pub fn change(
        name: impl Into<String>,
        passes: impl Fn(&Change) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Rule::Change(name.into(), Box::new(passes))))
    }

    /// What both let pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Arc::new(Rule::All(self, other)))
    }

    /// What either lets pass.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Arc::new(Rule::Any(self, other)))
    }

    /// Whether the change matters.
    ///
    /// # Panics
    ///
    /// When a closure in it does.
    #[must_use]
    pub fn passes(&self, change: &Change) -> bool {
        self.opinion(change, true).unwrap_or(true)
    }

    /// `wanted` is false below an odd number of negations: these are pushed down to the states, so that entering and leaving count for their opposite, too.
    fn opinion(&self, change: &Change, wanted: bool) -> Option<bool> {
        match &*self.0 {
            Rule::Difference(_, differ) => match change {
                Change::Updated { old, new } if old.meta().uid == new.meta().uid => {
                    Some(differ(old, new) == wanted)
                }
                _ => None,
            },
            Rule::State(_, holds) => {
                let mut states = change.old().into_iter().chain(change.new());
                Some(states.any(|state| holds(state) == wanted))
            }
            Rule::Change(_, passes) => Some(passes(change) == wanted),
            Rule::All(one, other) => one.join(other, change, wanted, wanted),
            Rule::Any(one, other) => one.join(other, change, wanted, !wanted),
            Rule::Not(inner) => inner.opinion(change, !wanted),
        }
    }

    /// Both opinions in one; `all` where it takes both to pass.
    fn join(&self, other: &Self, change: &Change, wanted: bool, all: bool) -> Option<bool> {
        match self.opinion(change, wanted) {
            None => other.opinion(change, wanted),
            Some(one) if one != all => Some(one),
            Some(one) => Some(other.opinion(change, wanted).unwrap_or(one)),
        }
    }
}

impl Not for Predicate {
    type Output = Self;

    /// What it would not let pass. It has an opinion of the same changes.
    fn not(self) -> Self {
        Self(Arc::new(Rule::Not(self)))
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = |f: &mut fmt::Formatter<'_>, predicate: &Self, closed: bool| {
            if closed {
                write!(f, "({predicate})")
            } else {
                write!(f, "{predicate}")
            }
        };
        let (one, word, other) = match &*self.0 {
            Rule::Difference(name, _) | Rule::State(name, _) | Rule::Change(name, _) => {
                return f.write_str(name);
            }
            Rule::Not(negated) => {
                f.write_str("not ")?;
                return inner(f, negated, negated.is_pair());
            }
            Rule::All(one, other) => (one, "and", other),
            Rule::Any(one, other) => (one, "or", other),
        };
        inner(f, one, one.is_pair())?;
        write!(f, " {word} ")?;
        inner(f, other, other.is_pair())
    }
}

impl Predicate {
    fn is_pair(&self) -> bool {
        matches!(&*self.0, Rule::All(..) | Rule::Any(..))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether two states differ at `path`. Servers write members in a fixed order, so equal bytes are the rule; only bytes that differ are compared as values.
fn differ(path: &Path, old: &Object, new: &Object, empty_is_absent: bool) -> bool {
    if old.is_same_state(new) {
        return false;
    }
    let (old, new) = (old.json(), new.json());
    let (Ok(before), Ok(after)) = (path.fragments(&old), path.fragments(&new)) else {
        return old != new;
    };
    let is_there =
        |text: &str| text != "null" && !(empty_is_absent && matches!(text, "{}" | "[]" | "\"\""));
    let (before, after) = (there(&before, is_there), there(&after, is_there));
    before.len() != after.len()
        || !before
            .iter()
            .zip(&after)
            .all(|(one, other)| same(one, other))
}

fn there<'a>(fragments: &[&'a RawValue], is_there: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let texts = fragments.iter().map(|fragment| fragment.get());
    texts.filter(|text| is_there(text)).collect()
}

fn same(one: &str, other: &str) -> bool {
    let value = serde_json::from_str::<serde_json::Value>;
    one == other || matches!((value(one), value(other)), (Ok(one), Ok(other)) if one == other)
}
