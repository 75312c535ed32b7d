//! Sets of nodes, ordered and found by what the nodes say of themselves.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::roster::Token;
use crate::stats::Node;

/// Nodes by token, which is the order of start.
pub(crate) type ByToken = BTreeSet<Kin<Token>>;

/// Nodes by id.
pub(crate) type ById = BTreeSet<Kin<str>>;

/// A node among others that differ in `K`.
pub(crate) struct Kin<K: ?Sized> {
    pub(crate) node: Arc<Node>,
    by: PhantomData<fn(&K)>,
}

/// Something of a node that can be its key.
pub(crate) trait Key: Ord {
    fn of(node: &Node) -> &Self;
}

impl Key for Token {
    fn of(node: &Node) -> &Token {
        &node.token
    }
}

impl Key for str {
    fn of(node: &Node) -> &str {
        node.id()
    }
}

impl<K: ?Sized> From<Arc<Node>> for Kin<K> {
    fn from(node: Arc<Node>) -> Self {
        let by = PhantomData;
        Kin { node, by }
    }
}

impl<K: Key + ?Sized> Borrow<K> for Kin<K> {
    fn borrow(&self) -> &K {
        K::of(&self.node)
    }
}

impl<K: Key + ?Sized> Ord for Kin<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        K::of(&self.node).cmp(K::of(&other.node))
    }
}

impl<K: Key + ?Sized> PartialOrd for Kin<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Key + ?Sized> PartialEq for Kin<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Key + ?Sized> Eq for Kin<K> {}
