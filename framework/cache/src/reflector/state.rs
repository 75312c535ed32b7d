//! When to list, watch, resume, relist, probe and wait, as plain data.
//!
//! The rules for versions are client-go's (its `reflector.go`), with these differences: a watch that ends is resumed whatever ended it, unless the
//! version expired; streams that end early back off however politely they end; a cached list older than what is known is refused.

use std::time::{Duration, Instant};

use boatswain_supervision::Entropy;

use super::answer::Failure;
use super::backoff::Backoff;
use crate::framing::ListMeta;
use crate::status::Trouble;
use crate::version::Version;

#[cfg(test)]
mod tests;

/// A watch that ends sooner is a failure.
const SHORT: Duration = Duration::from_secs(10);
/// A stream that reports errors this often in a row, without an event between them, is not worth resuming.
const MAX_STREAM_ERRORS: u32 = 5;
const MAX_SILENCE: Duration = Duration::from_secs(3600);
/// Kinds that do not exist (yet) are looked for at least this often, give or take the jitter: nobody waits long for a CRD just installed.
const MISSING_RETRY: Duration = Duration::from_secs(5);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing before this time.
    Wait(Instant),
    List(List),
    Watch {
        version: Version,
        /// The server is asked to end it after this time.
        timeout: Duration,
    },
    /// Ask for the server's version: the watch has been silent for long.
    Probe,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) at: At,
    /// Items asked for; `None` asks for all, which lets the server answer from its cache.
    pub(crate) limit: Option<u32>,
    /// Where this page begins; `None` on the first.
    pub(crate) token: Option<String>,
    pub(crate) reason: Reason,
}

/// Which state a list may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Any the server has at hand.
    Any,
    /// This or a later one.
    NotOlderThan(Version),
    /// The state now, by quorum.
    Now,
}

/// Why a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Initial,
    /// The version to resume from is no longer known to the server.
    Expired,
    /// Somebody asked for a consistent list.
    Asked,
    /// After a crash it is not known what was missed.
    Restarted,
    /// The server went back in time.
    History,
    /// The watch told something that could not be understood.
    Unreadable,
    /// The watch kept failing.
    Errors,
    /// The kind went missing while it was watched.
    Missing,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Expired => "expired",
            Self::Asked => "asked",
            Self::Restarted => "restarted",
            Self::History => "history",
            Self::Unreadable => "unreadable",
            Self::Errors => "errors",
            Self::Missing => "missing",
        }
    }
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// It was refused, or never answered.
    NotOpened(Failure),
    /// The stream ended or broke.
    Closed,
    /// The server said why in the stream.
    Error(Failure),
    /// An event could not be understood and could not be put down to a key.
    Unreadable,
    /// Nothing came for [`Machine::silence`].
    Silent,
    /// A consistent list was asked for.
    Asked,
}

#[derive(Debug)]
enum State {
    List {
        reason: Reason,
        token: Option<String>,
        at: Option<Version>,
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
    /// A consistent list is wanted.
    asked: bool,
    stream_errors: u32,
    silence: Duration,
    /// The server's version when the last silence was probed.
    probed: Option<Version>,
    trouble: Option<Trouble>,
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
            None => (
                State::List {
                    reason: Reason::Initial,
                    token: None,
                    at: None,
                },
                false,
            ),
            Some(version) if exact || version.is_ordered() => (State::Watch, false),
            Some(_) => (
                State::List {
                    reason: Reason::Restarted,
                    token: None,
                    at: None,
                },
                true,
            ),
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
            asked: false,
            stream_errors: 0,
            silence,
            probed: None,
            trouble: None,
        }
    }

    /// What to do next. A list or watch is begun by asking for it: ask again only after saying how it went.
    pub(crate) fn plan(&mut self, now: Instant) -> Plan {
        if let State::Waiting { until, then } = self.state {
            if now < until {
                return Plan::Wait(until);
            }
            self.state = match then {
                Next::List(reason) => State::List {
                    reason,
                    token: None,
                    at: None,
                },
                Next::Watch => State::Watch,
            };
        }
        if self.asked && !matches!(self.state, State::List { token: Some(_), .. }) {
            (self.asked, self.quorum) = (false, true);
            self.state = State::List {
                reason: Reason::Asked,
                token: None,
                at: None,
            };
        }
        match (&self.state, &self.version) {
            (State::List { reason, token, .. }, _) => Plan::List(self.list(*reason, token.clone())),
            (State::Probe, _) => Plan::Probe,
            (_, Some(version)) => {
                let version = version.clone();
                self.state = State::Watching { opened: now };
                let timeout = Duration::from_secs(self.entropy.range(300..600));
                Plan::Watch { version, timeout }
            }
            (_, None) => {
                self.state = State::List {
                    reason: Reason::Initial,
                    token: None,
                    at: None,
                };
                Plan::List(self.list(Reason::Initial, None))
            }
        }
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

    /// Whether the list being read may be taken at `version`, which is known now; `None` if its items come before its version.
    pub(crate) fn accept(&self, version: Option<&Version>) -> Result<(), Failure> {
        let (false, Some(known)) = (self.quorum, &self.version) else {
            return Ok(());
        };
        match version {
            None => Err(Failure::UnknownAge),
            Some(version) if version.is_before(known) => Err(Failure::Old(version.clone())),
            Some(_) => Ok(()),
        }
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
        self.version = Some(version.clone());
        (
            self.quorum,
            self.unpaged,
            self.stream_errors,
            self.probed,
            self.trouble,
        ) = (false, false, 0, None, None);
        self.state = State::Watch;
        Some(version)
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
            self.state = State::List {
                reason,
                token: None,
                at: None,
            };
            return;
        }
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
            End::NotOpened(failure) | End::Error(failure) => {
                let status = failure.status();
                if status.is_some_and(|status| status.is_expired()) {
                    if short && matches!(end, End::Error(_)) {
                        return self.rest(now, Next::List(Reason::Expired));
                    }
                    self.state = State::List {
                        reason: Reason::Expired,
                        token: None,
                        at: None,
                    };
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
            self.state = State::List {
                reason: Reason::History,
                token: None,
                at: None,
            };
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

    /// Why the informer does not work as it should, if so.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// From now on only a quorum list will do; false if that was so already.
    fn distrust_caches(&mut self) -> bool {
        !std::mem::replace(&mut self.quorum, true)
    }

    fn wait(&mut self, now: Instant, failure: &Failure, then: Next) {
        let until = self.backoff.next(now, failure.retry_after(), &self.entropy);
        let until = if failure.code() == Some(404) {
            until.min(now + self.missing_retry())
        } else {
            until
        };
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
