//! The log of what was asked and how it was answered.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;

use crate::attributes::Attributes;

/// One answered request; a watch is logged when it starts.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Position in the log, from 0, rising by one.
    pub sequence: u64,
    /// What was asked for.
    pub request: Attributes,
    /// The query, undecoded.
    pub query: String,
    /// The status code of the answer.
    pub code: u16,
    /// `metadata.resourceVersion` of the object answered with, for writes that succeeded.
    pub version: Option<u64>,
    /// Whether the write changed something; `false` for reads.
    pub changed: bool,
    sent: Bytes,
    answered: Bytes,
}

impl Audit {
    /// The body that the client sent; `None` without one or if it is no JSON.
    pub fn body(&self) -> Option<Value> {
        serde_json::from_slice(&self.sent).ok()
    }

    /// The object answered with, for writes; the `Status` for refusals.
    pub fn response(&self) -> Option<Value> {
        serde_json::from_slice(&self.answered).ok()
    }
}

/// The newest entries, up to a limit.
#[derive(Debug)]
pub(crate) struct Log {
    entries: VecDeque<Audit>,
    next: u64,
    limit: usize,
}

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) code: u16,
    pub(crate) version: Option<u64>,
    pub(crate) changed: bool,
    pub(crate) answered: Bytes,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            next: 0,
            limit: limit.max(1),
        }
    }

    pub(crate) fn push(
        &mut self,
        request: Attributes,
        query: String,
        sent: Bytes,
        outcome: Outcome,
    ) {
        if self.entries.len() == self.limit {
            self.entries.pop_front();
        }
        let Outcome {
            code,
            version,
            changed,
            answered,
        } = outcome;
        self.entries.push_back(Audit {
            sequence: self.next,
            request,
            query,
            code,
            version,
            changed,
            sent,
            answered,
        });
        self.next += 1;
    }

    pub(crate) fn since(&self, sequence: u64) -> Vec<Audit> {
        self.entries
            .iter()
            .filter(|entry| entry.sequence >= sequence)
            .cloned()
            .collect()
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}
