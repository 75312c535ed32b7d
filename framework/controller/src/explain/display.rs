//! What a person reads who was woken by it.

use std::{fmt, time::Duration};

use boatswain_workqueue::Lane;
use jiff::Timestamp;

use super::{Doing, Explanation, LastRun, Needs, Waits};
use crate::reconcile::Causes;

/// A time and how far away it is.
struct At(Timestamp, Timestamp);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(at, now) = self;
        let far = Duration::try_from(now.duration_since(*at).abs()).unwrap_or_default();
        let far = rounded(far);
        if at <= now {
            write!(f, "{at:.0} ({far:?} ago)")
        } else {
            write!(f, "{at:.0} (in {far:?})")
        }
    }
}

/// Three digits are enough for anybody.
fn rounded(time: Duration) -> Duration {
    match time.as_millis() {
        0..10 => Duration::from_micros(time.as_micros() as u64),
        10..10_000 => Duration::from_millis(time.as_millis() as u64),
        _ => Duration::from_secs(time.as_secs()),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            controller,
            key,
            at,
            now,
            shut,
            pending,
            next,
            failures,
            failing_since,
            last,
            quarantined,
        } = self;
        let time = |time: &Timestamp| At(*time, *at);
        write!(f, "{key} of {controller}: ")?;
        match now {
            Doing::Idle => write!(f, "idle; it runs when something changes")?,
            Doing::Queued {
                lane,
                since,
                of,
                needs,
            } => {
                let lane = match lane {
                    Lane::User => "urgent",
                    Lane::Normal => "normal",
                    Lane::Low => "low",
                };
                let since = time(since);
                write!(f, "ready since {since}, one of {of} in the {lane} lane; ")?;
                match needs {
                    Needs::Open => write!(f, "no run may begin")?,
                    Needs::Permit(1) => write!(f, "the one run that is allowed at once goes on")?,
                    Needs::Permit(n) => write!(f, "all {n} runs that are allowed at once go on")?,
                    Needs::Worker => write!(f, "all workers of its shard are busy")?,
                    Needs::Turn => write!(f, "it is about to run")?,
                }
            }
            Doing::Running { since, again } => {
                let since = time(since);
                let more = if *again {
                    "; something happened meanwhile, so it runs again"
                } else {
                    ""
                };
                write!(f, "running since {since}{more}")?;
            }
            Doing::Waiting { until, why } => {
                let until = time(until);
                match why {
                    Waits::Requeue => write!(f, "it asked to run again at {until}")?,
                    Waits::NotReady => write!(
                        f,
                        "it was not ready and is looked at again at {until}, or when something changes"
                    )?,
                    Waits::Backoff { error } => write!(
                        f,
                        "it failed and backs off until {until}; changes do not hurry it; last error: {error}"
                    )?,
                    Waits::Line { error } => write!(
                        f,
                        "it failed, its backoff was over at {until}, and it stands in the line of retries; last error: {error}"
                    )?,
                    Waits::Conflict => write!(
                        f,
                        "somebody else wrote at the same time; tried again at {until}"
                    )?,
                    Waits::Lost => write!(
                        f,
                        "its worker was lost while it ran; tried again at {until}"
                    )?,
                }
            }
            Doing::Held { since, what, why } => {
                let since = time(since);
                write!(
                    f,
                    "it waits since {since}, for 5s at most, until the cache shows what it wrote: {what}; {why}"
                )?;
            }
            Doing::Parked { since, reason } => {
                let since = time(since);
                write!(
                    f,
                    "parked since {since}, until it changes or is unparked: {reason}"
                )?;
            }
            Doing::Undecodable { since, reason } => {
                let since = time(since);
                write!(f, "left alone since {since}, until it changes: {reason}")?;
            }
            Doing::Unknown { why } => write!(f, "nothing is known of it: {why}")?,
        }
        if let Some(shut) = shut {
            write!(f, "\n  no run begins: {shut}")?;
        }
        if *failures > 0 {
            let s = if *failures == 1 { "" } else { "s" };
            write!(f, "\n  {failures} failure{s} in a row")?;
            if let Some(since) = failing_since {
                write!(f, ", the first {}", time(since))?;
            }
        }
        if *pending != Causes::default() {
            write!(f, "\n  to run because: {pending}")?;
        }
        if let Some(next) = next {
            write!(f, "\n  next run: {} at the earliest", time(next))?;
        }
        match last {
            Some(last) => last.tell(f, "last run", *at)?,
            None => write!(f, "\n  no run of it is remembered")?,
        }
        if let Some(change) = quarantined {
            write!(
                f,
                "\n  set aside, for it crashed its trigger twice: {change}"
            )?;
        }
        Ok(())
    }
}

/// An explanation and the runs before the last one.
pub(crate) struct Whole<'a> {
    pub(crate) told: &'a Explanation,
    /// The newest first, with the last one.
    pub(crate) runs: &'a [LastRun],
}

/// Runs that are told in words; of the last one alone nobody learns much where it is the echo of what the one before wrote.
const TOLD: usize = 5;

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { told, runs } = self;
        told.fmt(f)?;
        for run in runs.iter().take(TOLD).skip(1) {
            run.tell(f, "run before", told.at)?;
        }
        Ok(())
    }
}

impl LastRun {
    fn tell(&self, f: &mut fmt::Formatter<'_>, what: &str, at: Timestamp) -> fmt::Result {
        let Self {
            id,
            began,
            took,
            causes,
            trigger,
            attempt,
            seen,
            result,
            text,
            decided,
            writes,
            written,
        } = self;
        write!(f, "\n  {what}")?;
        if let Some(id) = id {
            write!(f, " {id}")?;
        }
        let (began, took) = (At(*began, at), rounded(*took));
        write!(f, ": began {began}, took {took:?}, because: {causes}")?;
        if let Some(trigger) = trigger {
            write!(f, ", by {trigger}")?;
        }
        if *attempt > 0 {
            let s = if *attempt == 1 { "" } else { "s" };
            write!(f, ", after {attempt} failure{s} in a row")?;
        }
        match seen {
            Some(version) => write!(f, "\n    it saw version {version}")?,
            None => write!(f, "\n    it saw no object")?,
        }
        write!(f, ", and ended with {result}")?;
        if let Some(text) = text {
            write!(f, ": {text}")?;
        }
        if let Some(decided) = decided {
            write!(f, "\n    it decided: {decided}")?;
        }
        match written {
            0 => write!(f, "\n    it wrote nothing")?,
            1 => write!(f, "\n    it wrote once")?,
            n => write!(f, "\n    it wrote {n} times")?,
        }
        for write in writes {
            write!(f, "\n      {write}")?;
        }
        Ok(())
    }
}
