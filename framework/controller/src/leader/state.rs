//! The elector: who leads, by what was read of a Lease and when. Pure; time is an argument.
//!
//! Rules. (1) The times written in a Lease are for people: another's lease is over when its duration has passed on *our* clock since we saw it change
//! (client-go's rule; clocks may differ by any offset). (2) Our own lease counts from the *sending* of the last successful renewal. (3) An answer that
//! did not come may have been given: after it the lease is read before it is written. (4) Whoever reads that another holds the lease leads no more,
//! whatever its own clock says. (5) A lease is given back only if, read once more, it is still ours. (6) A lease that was deleted is left to whoever held it
//! for as long as it would have lasted: who finds it gone cannot know when it was renewed last. (7) Of several leases, a free one is left for a while to those who lead fewer.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

use super::LeaseTerms;

/// A moment of the boot clock, which counts time the machine was suspended.
type Boot = Duration;

/// How often who leads others waits for half a retry period before it claims one more: twice for each of them, and so often at most.
const YIELDS: u32 = 6;

/// What the elector wants done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing before this moment.
    Wait(Boot),
    /// Read the lease, within this time.
    Read(Duration),
    /// Write it within this time: the lease as it was read, or one that does not exist yet.
    Write(Box<Lease>, Duration),
    /// Nothing any more: the lease is given back, or was not ours.
    Rest,
}

/// How a step ended.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The lease as it is now, read or written.
    Lease(Box<Lease>),
    /// There is none.
    Absent,
    /// Another wrote it first.
    Conflict,
    /// No answer, or a refusal.
    Failed(String),
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// We lead.
    Gained,
    /// We lead no more, because of this.
    Lost(String),
    /// Somebody, or nobody, holds the lease now.
    Holder(Option<String>),
}

/// A lease as it was seen, and since when it has looked like that.
#[derive(Clone, Debug)]
struct Seen {
    lease: Box<Lease>,
    since: Boot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Candidate,
    Leader {
        /// When the last successful renewal was sent.
        renewed: Boot,
    },
    /// The lease is being given back, if it is still ours.
    Resigning,
    Resigned,
}

pub(super) struct Elector {
    terms: LeaseTerms,
    identity: String,
    standing: Standing,
    seen: Option<Seen>,
    /// Somebody deleted it: until then its holder may go on.
    deleted: Option<Boot>,
    /// What is known may be out of date.
    must_read: bool,
    /// A write was sent of which it is not known what became.
    pending: bool,
    /// When the next try is due.
    due: Boot,
    /// How often it was left to others who lead fewer, since it was seen to be free.
    yielded: u32,
    /// Renewals that had to read first.
    pub(super) slow: u64,
}

impl Elector {
    pub(super) fn new(terms: LeaseTerms, identity: String) -> Self {
        Self {
            terms,
            identity,
            standing: Standing::Candidate,
            seen: None,
            deleted: None,
            must_read: true,
            pending: false,
            due: Boot::ZERO,
            yielded: 0,
            slow: 0,
        }
    }

    pub(super) fn leads(&self) -> bool {
        matches!(self.standing, Standing::Leader { .. })
    }

    /// Until when its holder may write.
    pub(super) fn fence(&self) -> Option<Boot> {
        match self.standing {
            Standing::Leader { renewed } => Some(renewed + self.terms.fence()),
            _ => None,
        }
    }

    /// When the last successful renewal was sent, while we lead.
    pub(super) fn renewed(&self) -> Option<Boot> {
        match self.standing {
            Standing::Leader { renewed } => Some(renewed),
            _ => None,
        }
    }

    pub(super) fn holder(&self) -> Option<&str> {
        holder(self.spec()?)
    }

    pub(super) fn transitions(&self) -> i32 {
        let spec = self.spec();
        spec.and_then(|spec| spec.lease_transitions).unwrap_or(0)
    }

    /// What is under way is lost with whoever was at it. Who had resigned is a candidate again.
    pub(super) fn interrupted(&mut self) {
        self.must_read = true;
        if matches!(self.standing, Standing::Resigning | Standing::Resigned) {
            self.standing = Standing::Candidate;
        }
    }

    /// Whether nobody is known to lead: neither we, nor anybody whose lease is not over yet. Who has not read the lease yet, or gives it back, knows nothing.
    pub(super) fn vacant(&self, now: Boot) -> bool {
        let unread = self.seen.is_none() && self.must_read;
        self.standing == Standing::Candidate
            && !unread
            && self.others().is_none_or(|until| now >= until)
    }

    /// Gives the lease back, also one that was ours when it was last seen or that a claim still on its way may win; the fence is closed from here on.
    pub(super) fn resign(&mut self) {
        self.standing = match self.standing {
            Standing::Resigned => Standing::Resigned,
            Standing::Candidate if !self.pending && !self.is_ours() => Standing::Resigned,
            Standing::Candidate | Standing::Leader { .. } | Standing::Resigning => {
                self.must_read = true;
                self.due = Boot::ZERO;
                Standing::Resigning
            }
        };
    }

    /// What is to be done now. `wall` is what people will read in the lease, `load` how many others this process leads.
    pub(super) fn step(&mut self, now: Boot, wall: Timestamp, load: u32) -> (Step, Option<Change>) {
        let change = self.expire(now);
        let step = self.next(now, wall);
        let claims = self.standing == Standing::Candidate && matches!(step, Step::Write(..));
        if claims && self.yielded < load.saturating_mul(2).min(YIELDS) {
            self.yielded += 1;
            self.must_read = true;
            self.due = now + self.terms.retry / 2;
            return (Step::Wait(self.due), change);
        }
        self.pending |= matches!(step, Step::Write(..));
        (step, change)
    }

    /// A leader that could not renew in time is none any more.
    fn expire(&mut self, now: Boot) -> Option<Change> {
        let Standing::Leader { renewed } = self.standing else {
            return None;
        };
        let deadline = self.terms.deadline;
        (now >= renewed + deadline).then(|| {
            self.demote(now);
            Change::Lost(format!(
                "the lease could not be renewed within {deadline:?}"
            ))
        })
    }

    fn demote(&mut self, now: Boot) {
        self.standing = Standing::Candidate;
        self.must_read = true;
        self.due = now;
    }

    fn next(&self, now: Boot, wall: Timestamp) -> Step {
        // nobody waits for an answer longer than until what it is for is over
        let patience = match self.standing {
            Standing::Resigned => return Step::Rest,
            Standing::Leader { renewed } => {
                let end = renewed + self.terms.deadline;
                if now < self.due {
                    return Step::Wait(self.due.min(end));
                }
                self.terms.patience().min(end.saturating_sub(now))
            }
            Standing::Candidate | Standing::Resigning => {
                if now < self.due {
                    return Step::Wait(self.due);
                }
                self.terms.patience()
            }
        };
        if self.must_read {
            return Step::Read(patience);
        }
        let lease = match self.standing {
            Standing::Resigning => self.given_back(wall),
            _ => self.claimed(wall),
        };
        Step::Write(Box::new(lease), patience)
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.seen.as_ref()?.lease.spec.as_ref()
    }

    fn is_ours(&self) -> bool {
        self.holder() == Some(&self.identity)
    }

    /// When the lease as it was seen is over for us; `None` where nobody holds it.
    fn over(&self) -> Option<Boot> {
        let seen = self.seen.as_ref()?;
        holder(seen.lease.spec.as_ref()?)?;
        Some(seen.since + self.duration())
    }

    /// How long the lease as it was seen lasts.
    fn duration(&self) -> Duration {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds);
        seconds.map_or(self.terms.duration, |seconds| {
            Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        })
    }

    /// Until when others must be left alone.
    fn others(&self) -> Option<Boot> {
        let theirs = self.over().filter(|_| !self.is_ours());
        theirs.or(self.deleted)
    }

    /// The lease as we want it: renewed, taken over, or made.
    fn claimed(&self, wall: Timestamp) -> Lease {
        let mut lease = match &self.seen {
            Some(seen) => (*seen.lease).clone(),
            None => Lease::default(),
        };
        let ours = self.is_ours();
        let spec = lease.spec.get_or_insert_default();
        if !ours {
            let first = self.seen.is_none();
            let transitions = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(transitions.saturating_add(i32::from(!first)));
            spec.acquire_time = Some(MicroTime(wall));
            spec.holder_identity = Some(self.identity.clone());
        }
        spec.renew_time = Some(MicroTime(wall));
        spec.lease_duration_seconds = i32::try_from(self.terms.duration.as_secs()).ok();
        lease
    }

    /// Held by nobody: whoever reads it takes it at once.
    fn given_back(&self, wall: Timestamp) -> Lease {
        let mut lease = self
            .seen
            .as_ref()
            .map_or_else(Lease::default, |seen| (*seen.lease).clone());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(wall));
        lease
    }

    /// Takes in the answer to a read. `chance` is from 0 to 1.
    pub(super) fn read(&mut self, answer: Answer, now: Boot, chance: f64) -> Vec<Change> {
        let mut changes = Vec::new();
        match answer {
            Answer::Lease(lease) => self.see(Some(lease), now, &mut changes),
            Answer::Absent => self.see(None, now, &mut changes),
            Answer::Conflict => {}
            Answer::Failed(_) => {
                self.later(now, chance);
                return changes;
            }
        }
        self.must_read = false;
        self.pending = false;
        match self.standing {
            Standing::Leader { .. } if self.is_ours() => self.slow += 1,
            // deleted: made anew, unless somebody else was faster
            Standing::Leader { .. } if self.seen.is_none() => self.slow += 1,
            Standing::Leader { .. } => {
                let why = match self.holder() {
                    Some(rival) => format!("{rival} holds the lease"),
                    None => "somebody took the lease away from us".to_owned(),
                };
                self.demote(now);
                changes.insert(0, Change::Lost(why));
            }
            Standing::Candidate => self.consider(now, chance),
            Standing::Resigning if !self.is_ours() => self.standing = Standing::Resigned,
            Standing::Resigning | Standing::Resigned => {}
        }
        changes
    }

    /// Takes in the answer to a write sent at `sent`.
    pub(super) fn wrote(
        &mut self,
        answer: Answer,
        sent: Boot,
        now: Boot,
        chance: f64,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        self.pending = matches!(answer, Answer::Failed(_));
        match answer {
            Answer::Lease(lease) if self.standing == Standing::Resigning => {
                self.see(Some(lease), now, &mut changes);
                // ours: the answer is to a claim or a renewal that was on its way when we resigned
                self.must_read = self.is_ours();
                if !self.must_read {
                    self.standing = Standing::Resigned;
                }
            }
            Answer::Lease(lease) => {
                self.see(Some(lease), now, &mut changes);
                // whoever changes what is written (admission) decides who leads
                self.must_read = !self.is_ours();
                if self.must_read {
                    self.later(now, chance);
                    return changes;
                }
                self.due = sent + self.terms.retry;
                if !self.leads() {
                    self.yielded = 0;
                    changes.push(Change::Gained);
                }
                self.standing = Standing::Leader { renewed: sent };
                // it took so long that it is over already
                changes.extend(self.expire(now));
            }
            // it must be read soon: whoever was faster may be ourselves
            Answer::Conflict => {
                self.must_read = true;
                self.due = now + self.terms.retry.mul_f64(0.1 * chance);
            }
            Answer::Absent => self.must_read = true,
            Answer::Failed(_) => {
                self.must_read = true;
                self.later(now, chance);
            }
        }
        changes
    }

    fn see(&mut self, lease: Option<Box<Lease>>, now: Boot, changes: &mut Vec<Change>) {
        let before = self.holder().map(str::to_owned);
        self.deleted = match &lease {
            // another may have claimed it since it was seen
            None if self.seen.is_some() && !self.leads() => {
                Some(now + self.duration().max(self.terms.duration))
            }
            None => self.deleted,
            Some(_) => None,
        };
        self.seen = lease.map(|lease| match &self.seen {
            // another version of the same words, such as a label: no sign of life
            Some(seen) if seen.lease.spec == lease.spec && is_same(&seen.lease, &lease) => Seen {
                lease,
                since: seen.since,
            },
            _ => Seen { lease, since: now },
        });
        let after = self.holder();
        if before.as_deref() != after {
            changes.push(Change::Holder(after.map(str::to_owned)));
        }
    }

    /// Whether to claim the lease now, or when to look again.
    fn consider(&mut self, now: Boot, chance: f64) {
        match self.others() {
            Some(over) if now < over => {
                self.must_read = true;
                self.yielded = 0;
                // a renewal is seen within 0.8 periods and followed within 0.1: takeover takes no longer than the duration and one period
                let retry = self.terms.retry;
                let soon = now + retry.mul_f64(0.6 + 0.2 * chance);
                self.due = soon.min(over + retry.mul_f64(0.1 * chance));
            }
            _ => self.due = now,
        }
    }

    fn later(&mut self, now: Boot, chance: f64) {
        let wait = match self.standing {
            // twice as often as usual: what failed was meant to be in time
            Standing::Leader { .. } | Standing::Resigning => self.terms.retry / 2,
            _ => self.terms.retry.mul_f64(1.0 + 1.2 * chance),
        };
        self.due = now + wait;
    }
}

fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity
        .as_deref()
        .filter(|name| !name.is_empty())
}

fn is_same(a: &Lease, b: &Lease) -> bool {
    a.metadata.uid == b.metadata.uid
}

#[cfg(test)]
mod tests;
