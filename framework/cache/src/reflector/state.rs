//! When to list, watch, resume, relist, probe and wait, as plain data.
//!
//! The rules for versions are client-go's (its `reflector.go`), with these differences: a watch that ends is resumed whatever ended it, unless the
//! version expired; streams that end early back off however politely they end; a cached list older than what is known is refused.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use boatswain_supervision::Entropy;

use super::answer::Failure;
use super::backoff::Backoff;
use super::plan::{At, End, List, Plan, Reason};
use crate::framing::ListMeta;
use crate::status::{Trouble, TroubleCause};
use crate::version::Version;

mod streaming;
#[cfg(test)]
mod tests;

/// A watch that ends sooner is a failure.
const SHORT: Duration = Duration::from_secs(10);
/// A stream that reports errors this often in a row, without an event between them, is not worth resuming.
const MAX_STREAM_ERRORS: u32 = 5;
const MAX_SILENCE: Duration = Duration::from_secs(3600);
/// Kinds that do not exist (yet) are looked for at least this often, give or take the jitter: nobody waits long for a CRD just installed.
const MISSING_RETRY: Duration = Duration::from_secs(5);
/// Whoever has been missing for longer is looked for at the pace of other failures.
const MISSING_EAGER: Duration = Duration::from_secs(600);
/// Longest pause a server can ask for: a proxy that says hours must not make a mirror blind for hours.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// Watches of one server expire together, in every process; their lists are spread over this time.
const SPREAD: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum State {
    List {
        reason: Reason,
        token: Option<String>,
        /// Version of the first page, once there is one.
        at: Option<Version>,
        /// What is left of every token so far.
        tokens: HashSet<u64>,
    },
    /// A list that comes as a watch.
    Streaming {
        reason: Reason,
    },
    Watch,
    Watching {
        opened: Instant,
    },
    Probe,
    Waiting {
        until: Instant,
        then: Next,
    },
}

#[derive(Clone, Copy, Debug)]
enum Next {
    List(Reason),
    Watch,
}

impl State {
    /// A list at its beginning.
    fn list(reason: Reason) -> Self {
        Self::List {
            reason,
            token: None,
            at: None,
            tokens: HashSet::new(),
        }
    }
}

/// The reflector's mind. It is told what happened and says what to do; `now` is always passed in.
#[derive(Debug)]
pub(crate) struct Machine {
    page_size: u32,
    base_silence: Duration,
    entropy: Entropy,
    /// After requests that failed.
    backoff: Backoff,
    /// After watches that ended at once although nothing failed. Apart from the other: a server that has just come back ends young watches, and
    /// the delays of its absence must not be added to that.
    churn: Backoff,
    state: State,
    /// Everything up to here was handed over.
    version: Option<Version>,
    /// Cached answers do not do; until a list succeeds.
    quorum: bool,
    /// Continuing does not do; until a list succeeds.
    unpaged: bool,
    /// Whether lists are to be streamed where they can be.
    streams: bool,
    /// Streaming does not do; until a list succeeds.
    plain: bool,
    /// Streamed lists that failed in a row.
    broken_streams: u32,
    /// A consistent list is wanted.
    asked: bool,
    stream_errors: u32,
    silence: Duration,
    /// The server's version when the last silence was probed.
    probed: Option<Version>,
    trouble: Option<Trouble>,
    /// Since when the server does not know the kind.
    missing: Option<Instant>,
}

impl Machine {
    /// Begins behind `version`, or with nothing. `exact` says whether nothing newer was handed over: where it was not, and versions have no order,
    /// resuming could tell old states as new.
    pub(crate) fn new(
        version: Option<Version>,
        exact: bool,
        page_size: u32,
        silence: Duration,
        entropy: Entropy,
    ) -> Self {
        let (state, quorum) = match &version {
            None => (State::list(Reason::Initial), false),
            Some(version) if exact || version.is_ordered() => (State::Watch, false),
            Some(_) => (State::list(Reason::Restarted), true),
        };
        Self {
            page_size,
            base_silence: silence,
            entropy,
            backoff: Backoff::new(),
            churn: Backoff::new(),
            state,
            version,
            quorum,
            unpaged: false,
            streams: false,
            plain: false,
            broken_streams: 0,
            asked: false,
            stream_errors: 0,
            silence,
            probed: None,
            trouble: None,
            missing: None,
        }
    }

    /// What to do next. A list or watch is begun by asking for it: ask again only after saying how it went.
    pub(crate) fn plan(&mut self, now: Instant) -> Plan {
        if let State::Waiting { until, then } = self.state {
            if now < until {
                return Plan::Wait(until);
            }
            self.state = match then {
                Next::List(reason) => State::list(reason),
                Next::Watch => State::Watch,
            };
        }
        if self.asked && !matches!(self.state, State::List { token: Some(_), .. }) {
            (self.asked, self.quorum) = (false, true);
            self.state = State::list(Reason::Asked);
        }
        match (&self.state, &self.version) {
            (State::List { reason, token, .. }, _) => {
                let (reason, token) = (*reason, token.clone());
                if token.is_none()
                    && let Some(stream) = self.stream(reason)
                {
                    self.state = State::Streaming { reason };
                    return Plan::Stream(stream);
                }
                Plan::List(self.list(reason, token))
            }
            (State::Probe, _) => Plan::Probe,
            (_, Some(version)) => {
                let version = version.clone();
                self.state = State::Watching { opened: now };
                let timeout = self.timeout();
                Plan::Watch { version, timeout }
            }
            (_, None) => {
                self.state = State::list(Reason::Initial);
                self.plan(now)
            }
        }
    }

    /// After how long the server is asked to end a watch.
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.entropy.range(300..600))
    }

    fn list(&self, reason: Reason, token: Option<String>) -> List {
        let at = match &self.version {
            _ if self.quorum => At::Now,
            None => At::Any,
            Some(version) => At::NotOlderThan(version.clone()),
        };
        // a page of a list "not older than" is cut from etcd, the whole of it comes out of the server's cache
        let paged = !self.unpaged && !matches!(at, At::NotOlderThan(_));
        List {
            at,
            limit: paged.then_some(self.page_size),
            token,
            reason,
        }
    }

    /// Whether more than this version is known.
    pub(crate) fn is_ahead_of(&self, version: &Version) -> bool {
        self.version
            .as_ref()
            .is_some_and(|known| version.is_before(known))
    }

    /// Whether more is known than up to this version, or whether that cannot be told.
    pub(crate) fn is_beyond(&self, version: &Version) -> bool {
        !self
            .version
            .as_ref()
            .is_some_and(|known| version.has_reached(known))
    }

    /// Whether the list being read may be taken at `version`, which is known now; `None` if its items come before its version.
    pub(crate) fn accept(&self, version: Option<&Version>) -> Result<(), Failure> {
        if let (
            State::List {
                at: Some(first), ..
            },
            Some(version),
        ) = (&self.state, version)
            && version.is_before(first)
        {
            // another server answered, which has not come as far: its pages do not go with the ones before
            return Err(Failure::Old(version.clone()));
        }
        let (false, Some(known)) = (self.quorum, &self.version) else {
            return Ok(());
        };
        match version {
            None => Err(Failure::UnknownAge),
            Some(version) if version.is_before(known) => Err(Failure::Old(version.clone())),
            Some(_) => Ok(()),
        }
    }

    /// Whether the next page is one that was not read yet.
    pub(crate) fn leads_on(&mut self, meta: &ListMeta) -> Result<(), Failure> {
        let (State::List { tokens, .. }, Some(next)) = (&mut self.state, &meta.next) else {
            return Ok(());
        };
        let mut hash = DefaultHasher::new();
        next.hash(&mut hash);
        if tokens.insert(hash.finish()) {
            return Ok(());
        }
        // what cannot be read in pages may be had in one
        self.unpaged = true;
        Err(Failure::Circle)
    }

    /// A page is complete. Returns the list's version with the last.
    pub(crate) fn listed(&mut self, meta: &ListMeta) -> Option<Version> {
        let State::List { token, at, .. } = &mut self.state else {
            return None;
        };
        let version = at.get_or_insert_with(|| meta.version.clone()).clone();
        if meta.next.is_some() {
            token.clone_from(&meta.next);
            return None;
        }
        self.complete(version.clone());
        self.state = State::Watch;
        Some(version)
    }

    /// A list at `version` was handed over.
    fn complete(&mut self, version: Version) {
        self.version = Some(version);
        (self.quorum, self.unpaged, self.plain) = (false, false, false);
        (self.stream_errors, self.broken_streams) = (0, 0);
        (self.probed, self.trouble, self.missing) = (None, None, None);
    }

    /// The list could not be read to its end: it begins anew.
    pub(crate) fn list_failed(&mut self, failure: &Failure, now: Instant) {
        let State::List { reason, token, .. } = &self.state else {
            return;
        };
        let (reason, continued) = (*reason, token.is_some());
        let expired = failure.status().is_some_and(|status| status.is_expired());
        let cached = !self.quorum;
        let at_once = match failure {
            _ if expired && continued && !self.unpaged => {
                self.unpaged = true;
                true
            }
            Failure::Old(_) | Failure::UnknownAge => self.distrust_caches(),
            Failure::Refused(status) if expired || status.too_large => self.distrust_caches(),
            // whatever is wrong with the question, the plain one has less of it
            Failure::Refused(status) if matches!(status.code, 400 | 422) => {
                self.quorum = true;
                false
            }
            _ => false,
        };
        if at_once {
            self.state = State::list(reason);
            return;
        }
        self.list_refused(failure, reason, cached, now);
    }

    fn list_refused(&mut self, failure: &Failure, reason: Reason, cached: bool, now: Instant) {
        self.trouble = Some(Trouble::of("list", failure.code()));
        let missing = failure.code() == Some(404);
        let reason = if missing && cached && self.version.is_some() {
            Reason::Missing
        } else {
            reason
        };
        self.wait(now, failure, Next::List(reason));
    }

    /// The watch was answered: it is open from `now`.
    pub(crate) fn opened(&mut self, now: Instant) {
        if let State::Watching { opened } = &mut self.state {
            *opened = now;
            self.trouble = None;
        }
    }

    /// The stream has told everything up to `version`.
    pub(crate) fn advanced(&mut self, version: &Version) {
        if let Some(probed) = self.probed.take()
            && probed.has_reached(version)
        {
            // the watch before this one was not silent because nothing happened
            self.silence = self.base_silence;
        }
        self.stream_errors = 0;
        if !self
            .version
            .as_ref()
            .is_some_and(|known| version.is_before(known))
        {
            self.version = Some(version.clone());
        }
    }

    /// How long a stream may be silent before the server is probed.
    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    pub(crate) fn watch_ended(&mut self, end: &End, now: Instant) {
        let State::Watching { opened } = self.state else {
            return;
        };
        let short = now.saturating_duration_since(opened) < SHORT;
        if !short && !matches!(end, End::NotOpened(_)) {
            // it worked: whatever was before is over
            (self.backoff, self.churn) = (Backoff::new(), Backoff::new());
        }
        match end {
            End::Closed if short => self.rest(now, Next::Watch),
            End::Closed => self.state = State::Watch,
            End::Silent => self.state = State::Probe,
            End::Asked => self.state = State::Watch,
            End::Unreadable => self.rest(now, Next::List(Reason::Unreadable)),
            End::SetBack => {
                self.quorum = true;
                self.rest(now, Next::List(Reason::History));
            }
            End::NotOpened(failure) | End::Error(failure) => {
                let status = failure.status();
                if status.is_some_and(|status| status.is_expired()) {
                    if short && matches!(end, End::Error(_)) {
                        return self.rest(now, Next::List(Reason::Expired));
                    }
                    let until = now + SPREAD.mul_f64(self.entropy.unit());
                    let then = Next::List(Reason::Expired);
                    self.state = State::Waiting { until, then };
                    return;
                }
                if status.is_some_and(|status| status.too_large) {
                    self.quorum = true;
                    return self.wait(now, failure, Next::List(Reason::History));
                }
                self.trouble = Some(Trouble::of("watch", failure.code()));
                match failure.code() {
                    Some(404) => return self.wait(now, failure, Next::List(Reason::Missing)),
                    Some(400 | 422) => {
                        self.quorum = true;
                        return self.wait(now, failure, Next::List(Reason::Errors));
                    }
                    _ => {}
                }
                if matches!(end, End::Error(_)) {
                    self.stream_errors += 1;
                    if self.stream_errors >= MAX_STREAM_ERRORS {
                        self.stream_errors = 0;
                        return self.wait(now, failure, Next::List(Reason::Errors));
                    }
                }
                self.wait(now, failure, Next::Watch);
            }
        }
    }

    /// The server answered the probe with its version.
    pub(crate) fn probed(&mut self, version: Version) {
        if self
            .version
            .as_ref()
            .is_some_and(|known| version.is_before(known))
        {
            self.quorum = true;
            self.state = State::list(Reason::History);
            return;
        }
        self.silence = (self.silence * 2).min(MAX_SILENCE);
        self.probed = Some(version);
        self.state = State::Watch;
    }

    pub(crate) fn probe_failed(&mut self, failure: &Failure, now: Instant) {
        self.trouble = Some(Trouble::of("list", failure.code()));
        self.wait(now, failure, Next::Watch);
    }

    /// A consistent list is wanted. One that is being read is finished first: nobody knows what it missed.
    pub(crate) fn asked(&mut self) {
        self.asked = true;
    }

    /// Whether the kind went missing after it had been mirrored.
    pub(crate) fn is_parked(&self) -> bool {
        let missing = |trouble: Trouble| trouble.cause == TroubleCause::Missing;
        self.version.is_some() && self.trouble.is_some_and(missing)
    }

    /// Why the informer does not work as it should, if so.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// From now on only a quorum list will do; false if that was so already.
    fn distrust_caches(&mut self) -> bool {
        !std::mem::replace(&mut self.quorum, true)
    }

    fn wait(&mut self, now: Instant, failure: &Failure, then: Next) {
        let asked = failure.retry_after().min(MAX_RETRY_AFTER);
        let mut until = self.backoff.next(now, asked, &self.entropy);
        if failure.code() == Some(404) {
            let since = *self.missing.get_or_insert(now);
            if now.saturating_duration_since(since) < MISSING_EAGER {
                until = until.min(now + self.missing_retry());
            }
        }
        self.state = State::Waiting { until, then };
    }

    /// Waits after a watch that ended without a failure.
    fn rest(&mut self, now: Instant, then: Next) {
        let until = self.churn.next(now, Duration::ZERO, &self.entropy);
        self.state = State::Waiting { until, then };
    }

    fn missing_retry(&self) -> Duration {
        MISSING_RETRY + MISSING_RETRY.mul_f64(self.entropy.unit())
    }
}
