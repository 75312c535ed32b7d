//! Lists that come as the first events of a watch (`sendInitialEvents`), and when to do without.
//!
//! A list that may overrule what is known must say its version before its items; a streamed one says it last. So where something is known, and no
//! cached answer will do, the list is a plain one by quorum. What is streamed is
//!
//! 1. everything, while nothing is known: without a version, which is consistent and yet served from the server's cache;
//! 2. what is "not older than" the known version: it counts as a cached answer until its end has proved it.

use std::time::Instant;

use super::{Machine, Next, State};
use crate::reflector::answer::Failure;
use crate::reflector::plan::{At, End, Reason, StreamList};
use crate::status::Trouble;
use crate::version::Version;

/// Streams that fail this often in a row make the list a plain one.
const MAX_BROKEN: u32 = 2;

impl Machine {
    /// Whether lists may be streamed, from the next one on.
    pub(crate) fn allow_streams(&mut self, streams: bool) {
        self.streams = streams;
    }

    pub(super) fn stream(&self, reason: Reason) -> Option<StreamList> {
        let overrules = self.quorum || reason == Reason::History;
        let at = match &self.version {
            None => At::Now,
            Some(_) if overrules => return None,
            Some(version) => At::NotOlderThan(version.clone()),
        };
        (self.streams && !self.plain).then(|| StreamList {
            at,
            timeout: self.timeout(),
            reason,
        })
    }

    /// The list just planned is not to be streamed: the server is known not to.
    pub(crate) fn not_streamed(&mut self) {
        if let State::Streaming { reason } = self.state {
            self.plain = true;
            self.state = State::list(reason);
        }
    }

    /// A streamed list has been handed over to its end at `version`; the same stream goes on as the watch.
    pub(crate) fn streamed(&mut self, version: &Version, now: Instant) {
        if matches!(self.state, State::Streaming { .. }) {
            self.complete(version.clone());
            self.state = State::Watching { opened: now };
        }
    }

    /// A streamed list could not be read to its end: it begins anew, in this way or the plain one. Returns what makes this server unfit for it.
    pub(crate) fn stream_ended(&mut self, end: &End, now: Instant) -> Option<String> {
        let State::Streaming { reason } = self.state else {
            return None;
        };
        let known = self.version.is_some();
        let failure = match end {
            End::Closed | End::Unreadable | End::Asked | End::SetBack => {
                if self.is_broken() {
                    self.state = State::list(reason);
                    return Some("it ends before the initial events do".to_owned());
                }
                self.rest(now, Next::List(reason));
                return None;
            }
            End::Silent => {
                self.plain = true;
                self.state = State::list(reason);
                return Some("the end of the initial events never comes".to_owned());
            }
            End::NotOpened(failure) | End::Error(failure) => failure,
        };
        let status = failure.status();
        let expired = status.is_some_and(|status| status.is_expired() || status.too_large);
        if known && (expired || matches!(failure, Failure::Old(_) | Failure::UnknownAge)) {
            self.quorum = true;
            self.state = State::list(reason);
            return None;
        }
        match failure.code() {
            // who may list but not watch gets the list, and is told about the watch
            Some(403) => {
                self.plain = true;
                self.state = State::list(reason);
            }
            Some(401 | 404 | 408 | 429) => self.list_refused(failure, reason, known, now),
            Some(code @ 400..500) if !expired => {
                self.plain = true;
                self.state = State::list(reason);
                return Some(format!("the server refuses it with {code}"));
            }
            code => {
                self.trouble = Some(Trouble::of("list", code));
                // a server that is away says nothing about streams
                if !matches!(failure, Failure::Transport(_)) {
                    self.is_broken();
                }
                self.wait(now, failure, Next::List(reason));
            }
        }
        None
    }

    /// Counts a stream that failed; whether it was one too many.
    fn is_broken(&mut self) -> bool {
        self.broken_streams += 1;
        self.plain |= self.broken_streams >= MAX_BROKEN;
        self.plain
    }
}
