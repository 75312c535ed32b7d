//! Scripted misbehaviour.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;

use crate::{
    attributes::{Attributes, Matcher},
    bell::{Bell, Ear},
    failure::Failure,
    model::object::{Collection, Key},
};

/// How a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    code: u16,
    retry_after: Option<u32>,
    times: u32,
}

impl Rejection {
    /// Refuses one request with this status code.
    pub fn new(code: u16) -> Self {
        Self {
            code,
            retry_after: None,
            times: 1,
        }
    }

    /// Refuses this many requests before it lets them through again.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// Asks the client to come back after this many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

#[derive(Clone, Debug)]
enum Effect {
    Reject(Rejection),
    Delay(Duration),
    Lose,
    Hang,
}

#[derive(Debug)]
struct Rule {
    id: u64,
    matcher: Matcher,
    effect: Effect,
    /// How often it still applies; `None` until it is released.
    left: Option<u32>,
}

/// Watches that end among their initial events.
#[derive(Debug)]
struct Cut {
    matcher: Matcher,
    after: usize,
    times: u32,
}

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Fate {
    Pass,
    Refuse(Failure, Option<u32>),
    Wait(Duration),
    /// Carried out, but the answer is lost.
    Lose,
    /// Ask again when the control channel changes.
    Hang,
}

#[derive(Debug, Default)]
struct Script {
    next: u64,
    rules: Vec<Rule>,
    stalls: Vec<(u64, Matcher)>,
    drops: Vec<(u64, Matcher)>,
    withheld: Vec<(u64, Matcher)>,
    cuts: Vec<Cut>,
    corrupt: BTreeMap<(Collection, Key), Value>,
    unreachable: bool,
}

#[derive(Debug)]
struct Inner {
    script: Mutex<Script>,
    /// Rises with every change of the script; its value is the number of the newest change.
    changed: Bell,
}

/// The switchboard of faults: cheap to clone, all clones act on the same server.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Inner>);

/// Something held up; let go when dropped.
#[derive(Debug)]
#[must_use = "what is held is let go when this is dropped"]
pub struct Hold {
    faults: Faults,
    id: u64,
}

impl Hold {
    /// Lets go, like dropping.
    pub fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        let id = self.id;
        self.faults.script(|script| {
            script.rules.retain(|rule| rule.id != id);
            script.stalls.retain(|(stall, _)| *stall != id);
            script.withheld.retain(|(withheld, _)| *withheld != id);
        });
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(Inner {
            script: Mutex::default(),
            changed: Bell::default(),
        }))
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn script<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        let (out, now) = {
            let mut script = self.lock();
            script.next += 1;
            (change(&mut script), script.next)
        };
        self.0.changed.ring(now);
        out
    }

    fn rule(&self, matcher: Matcher, effect: Effect, left: Option<u32>) -> u64 {
        self.script(|script| {
            let id = script.next;
            script.rules.push(Rule {
                id,
                matcher,
                effect,
                left,
            });
            id
        })
    }

    /// Refuses matching requests as told, then lets them through again.
    pub fn reject(&self, matcher: Matcher, rejection: Rejection) {
        let times = rejection.times;
        self.rule(matcher, Effect::Reject(rejection), Some(times));
    }

    /// Holds matching requests, unanswered and without effect, until the [`Hold`] is let go.
    pub fn hang(&self, matcher: Matcher) -> Hold {
        Hold {
            id: self.rule(matcher, Effect::Hang, None),
            faults: self.clone(),
        }
    }

    /// Answers the next `times` matching requests only after a delay.
    pub fn delay(&self, matcher: Matcher, delay: Duration, times: u32) {
        self.rule(matcher, Effect::Delay(delay), Some(times));
    }

    /// Carries out the next `times` matching requests but breaks the connection instead of answering.
    pub fn lose_answers(&self, matcher: Matcher, times: u32) {
        self.rule(matcher, Effect::Lose, Some(times));
    }

    /// Holds back the events of matching watches, open and new, until the [`Hold`] is let go; the store moves on.
    pub fn stall_watches(&self, matcher: Matcher) -> Hold {
        let id = self.script(|script| {
            let id = script.next;
            script.stalls.push((id, matcher));
            id
        });
        Hold {
            id,
            faults: self.clone(),
        }
    }

    /// Holds back the bookmark that ends the initial events of matching watches, open and new, until the [`Hold`] is let go; changes are
    /// told meanwhile.
    pub fn withhold_initial_end(&self, matcher: Matcher) -> Hold {
        let id = self.script(|script| {
            let id = script.next;
            script.withheld.push((id, matcher));
            id
        });
        Hold {
            id,
            faults: self.clone(),
        }
    }

    /// Ends the next `times` matching watches politely behind this many of their initial events.
    pub fn cut_initial_events(&self, matcher: Matcher, after: usize, times: u32) {
        let cut = Cut {
            matcher,
            after,
            times,
        };
        self.script(|script| script.cuts.push(cut));
    }

    /// Ends all open watches, politely: their bodies end.
    pub fn drop_watches(&self) {
        self.drop_watches_of(Matcher::any());
    }

    /// Ends the open watches that match.
    pub fn drop_watches_of(&self, matcher: Matcher) {
        self.script(|script| {
            let id = script.next;
            script.drops.push((id, matcher));
            // a watch that has not looked since a thousand drops would have been found by an earlier one
            if script.drops.len() > 1000 {
                script.drops.remove(0);
            }
        });
    }

    /// Answers no one: connections are refused and open watches break off, until switched back.
    pub fn unreachable(&self, unreachable: bool) {
        self.script(|script| script.unreachable = unreachable);
    }

    /// Shows an object differently from how it is stored, in every answer and event: `patch` is merged into it. With
    /// `{"spec": "corrupt"}` typed clients cannot decode it. The store itself is not changed.
    pub fn corrupt(&self, group: &str, plural: &str, namespace: &str, name: &str, patch: Value) {
        let place = (Collection::new(group, plural), Key::new(namespace, name));
        self.script(|script| script.corrupt.insert(place, patch));
    }

    /// Shows an object as it is again.
    pub fn heal(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let place = (Collection::new(group, plural), Key::new(namespace, name));
        self.script(|script| script.corrupt.remove(&place));
    }

    /// Takes back everything that is scripted, except what a [`Hold`] holds.
    pub fn clear(&self) {
        self.script(|script| {
            script.rules.retain(|rule| rule.left.is_none());
            script.corrupt.clear();
            script.cuts.clear();
            script.unreachable = false;
        });
    }

    pub(crate) fn changes(&self) -> Ear {
        self.0.changed.listen()
    }

    /// The number of the newest change, to tell later drops from earlier ones.
    pub(crate) fn moment(&self) -> u64 {
        self.lock().next
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        self.lock().unreachable
    }

    /// Whether a watch opened at `moment` has been ended since.
    pub(crate) fn dropped_since(&self, moment: u64, watch: &Attributes) -> bool {
        self.lock()
            .drops
            .iter()
            .any(|(at, matcher)| *at > moment && matcher.matches(watch))
    }

    pub(crate) fn stalls(&self, watch: &Attributes) -> bool {
        self.lock()
            .stalls
            .iter()
            .any(|(_, matcher)| matcher.matches(watch))
    }

    pub(crate) fn withholds_initial_end(&self, watch: &Attributes) -> bool {
        self.lock()
            .withheld
            .iter()
            .any(|(_, matcher)| matcher.matches(watch))
    }

    /// Behind how many of its initial events this new watch ends.
    pub(crate) fn cut(&self, watch: &Attributes) -> Option<usize> {
        let mut script = self.lock();
        let cut = script
            .cuts
            .iter_mut()
            .find(|cut| cut.times > 0 && cut.matcher.matches(watch))?;
        cut.times -= 1;
        Some(cut.after)
    }

    /// What to merge into an object before it is shown.
    pub(crate) fn corruption(&self, collection: &Collection, key: &Key) -> Option<Value> {
        let script = self.lock();
        if script.corrupt.is_empty() {
            return None;
        }
        script
            .corrupt
            .get(&(collection.clone(), key.clone()))
            .cloned()
    }

    pub(crate) fn corrupts(&self) -> bool {
        !self.lock().corrupt.is_empty()
    }

    /// Decides on a request; rules met before, up to `after`, are not asked again.
    pub(crate) fn judge(&self, request: &Attributes, after: &mut u64) -> Fate {
        let mut script = self.lock();
        let found = script
            .rules
            .iter_mut()
            .find(|rule| rule.id > *after && rule.left != Some(0) && rule.matcher.matches(request));
        let Some(rule) = found else { return Fate::Pass };
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        let (id, effect) = (rule.id, rule.effect.clone());
        script.rules.retain(|rule| rule.left != Some(0));
        match effect {
            Effect::Hang => Fate::Hang,
            Effect::Reject(rejection) => Fate::Refuse(
                failure(rejection.code, rejection.retry_after),
                rejection.retry_after,
            ),
            Effect::Lose => Fate::Lose,
            Effect::Delay(delay) => {
                *after = id;
                Fate::Wait(delay)
            }
        }
    }
}

/// A failure as the real server words it for a code.
fn failure(code: u16, retry_after: Option<u32>) -> Failure {
    let (reason, message) = match code {
        400 => ("BadRequest", "the request was refused by a scripted fault"),
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden by a scripted fault"),
        404 => (
            "NotFound",
            "the server could not find the requested resource",
        ),
        408 | 504 => (
            "Timeout",
            "the request did not complete within the allowed time",
        ),
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        410 => (
            "Expired",
            "The resourceVersion for the provided list is too old.",
        ),
        422 => (
            "Invalid",
            "the request was found invalid by a scripted fault",
        ),
        429 => (
            "TooManyRequests",
            "too many requests, please try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        _ => (
            "InternalError",
            "an internal error occurred by a scripted fault",
        ),
    };
    let mut failure = Failure::new(code, reason, message);
    if let Some(seconds) = retry_after {
        failure.details = serde_json::json!({"retryAfterSeconds": seconds});
    }
    failure
}

#[cfg(test)]
mod tests;
