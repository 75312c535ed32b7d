//! What the naive model answers to those who ask for runs and report on them.

use super::entry::Is;
use super::model::{Model, REST};
use super::*;

impl Model {
    pub(super) fn add(&mut self, key: u8, lane: Lane, id: u32) -> Added {
        let (now, step) = self.here();
        let Some(entry) = self.entry(key) else {
            self.enter(key, Is::Queued, lane, id);
            return Added::Queued;
        };
        match &mut entry.is {
            Is::Queued => {
                entry.merge(lane, &[id]);
                Added::Coalesced
            }
            Is::Held => {
                entry.merge(lane, &[id]);
                Added::Backoff
            }
            Is::Running { next, .. } => {
                let was_now = matches!(next, Some((_, _, None)));
                let (present, mut ids, _) = next.take().unwrap_or((lane, Vec::new(), None));
                ids.push(id);
                *next = Some((lane.max(present), ids, None));
                if was_now {
                    Added::Coalesced
                } else {
                    Added::Dirty
                }
            }
            Is::Waiting { why, until } => {
                let stays = *until > now && !matches!(why, Wait::Requeue | Wait::NotReady);
                entry.join(lane, id);
                if stays {
                    return Added::Backoff;
                }
                entry.turn(Is::Queued, now, step);
                Added::Woken
            }
            Is::Parked => {
                entry.merge(lane, &[id]);
                let rested = entry.since + REST;
                entry.wait(rested, Wait::Backoff(Fault::Object), now, step);
                entry.delay().map_or(Added::Woken, Added::Delayed)
            }
        }
    }

    pub(super) fn renew(&mut self, key: u8, lane: Lane, id: u32) -> Added {
        let (now, step) = self.here();
        let Some(entry) = self.entry(key) else {
            return self.add(key, lane, id);
        };
        entry.streak = Streak::default();
        match &mut entry.is {
            Is::Waiting { .. } | Is::Parked => {
                entry.join(lane, id);
                entry.turn(Is::Queued, now, step);
                return Added::Woken;
            }
            Is::Running { renewed, .. } => *renewed = true,
            Is::Queued | Is::Held => {}
        }
        self.add(key, lane, id)
    }

    pub(super) fn schedule(
        &mut self,
        key: u8,
        lane: Lane,
        id: u32,
        until: Instant,
        when: When,
    ) -> Added {
        let (now, step) = self.here();
        if until <= now {
            return self.add(key, lane, id);
        }
        let Some(entry) = self.entry(key) else {
            let why = Wait::Requeue;
            self.enter(key, Is::Waiting { until, why }, lane, id);
            let entry = self.entry(key).expect("it was just entered");
            return entry.delay().map_or(Added::Woken, Added::Delayed);
        };
        match &mut entry.is {
            Is::Queued => {
                entry.merge(lane, &[id]);
                Added::Coalesced
            }
            Is::Held | Is::Parked => {
                entry.merge(lane, &[id]);
                Added::Backoff
            }
            Is::Running { next, .. } => {
                let Some((present, ids, at)) = next else {
                    *next = Some((lane, vec![id], Some((until, when))));
                    return Added::Dirty;
                };
                *present = lane.max(*present);
                ids.push(id);
                if let Some((at, rule)) = at {
                    (*at, *rule) = (which(*at, until, when), when);
                }
                Added::Coalesced
            }
            Is::Waiting {
                until: present,
                why,
            } => {
                let (present, why) = (*present, *why);
                let until = match why {
                    Wait::Requeue => which(present, until, when),
                    Wait::NotReady => present.min(until),
                    _ => {
                        entry.join(lane, id);
                        return Added::Backoff;
                    }
                };
                entry.join(lane, id);
                if until == present {
                    return Added::Coalesced;
                }
                entry.wait(until, why, now, step);
                entry.delay().map_or(Added::Woken, Added::Delayed)
            }
        }
    }

    pub(super) fn cancel(&mut self, key: u8) -> bool {
        let Some(entry) = self.entry(key) else {
            return false;
        };
        match &mut entry.is {
            Is::Running { next, .. } if matches!(next, Some((_, _, Some(_)))) => {
                *next = None;
                true
            }
            Is::Waiting {
                why: Wait::Requeue, ..
            } => {
                self.drop_entry(key);
                true
            }
            _ => false,
        }
    }

    pub(super) fn hold(&mut self, key: u8) -> bool {
        let (now, step) = self.here();
        let Some(entry) = self.entry(key) else {
            return false;
        };
        let Is::Running {
            forgotten, next, ..
        } = entry.is.clone()
        else {
            return false;
        };
        entry.run = None;
        match (forgotten, next) {
            (true, None) => {
                self.drop_entry(key);
                return false;
            }
            (true, Some((lane, ids, _))) => (entry.lane, entry.ids) = (lane, ids),
            (false, Some((lane, ids, _))) => entry.merge(lane, &ids),
            (false, None) => {}
        }
        entry.turn(Is::Held, now, step);
        true
    }

    pub(super) fn free(&mut self, key: u8) -> bool {
        let (now, step) = self.here();
        let held = self.entry(key);
        let held = held.filter(|entry| matches!(entry.is, Is::Held));
        held.map(|entry| entry.turn(Is::Queued, now, step))
            .is_some()
    }

    pub(super) fn finish(&mut self, key: u8, verdict: Verdict) -> Next {
        let (now, step) = self.here();
        let Some(entry) = self.entry(key) else {
            return Next::NotRunning;
        };
        entry.run = None;
        let Is::Running {
            forgotten,
            renewed,
            next,
        } = entry.is.clone()
        else {
            return Next::NotRunning;
        };
        let settled = forgotten || matches!(verdict, Verdict::Done | Verdict::RequeueAfter(_));
        let at = next.as_ref().and_then(|&(_, _, at)| at);
        let now_too = matches!(next, Some((_, _, None)));
        if settled {
            let (lane, ids) = next.map_or((Lane::Normal, Vec::new()), |(lane, ids, _)| (lane, ids));
            (entry.lane, entry.ids) = (lane, ids);
        } else if let Some((lane, ids, _)) = next {
            entry.merge(lane, &ids);
        }
        if forgotten || renewed {
            entry.streak = Streak::default();
            if now_too {
                entry.turn(Is::Queued, now, step);
                return Next::Queued;
            }
        } else {
            entry.judge(&verdict);
        }
        let verdict = if forgotten { Verdict::Done } else { verdict };
        match verdict {
            Verdict::Done | Verdict::RequeueAfter(_) | Verdict::NotReady { .. } if now_too => {
                entry.turn(Is::Queued, now, step)
            }
            Verdict::Done => match at {
                None => {
                    self.drop_entry(key);
                    return Next::Idle;
                }
                Some((at, _)) => entry.wait(at, Wait::Requeue, now, step),
            },
            Verdict::RequeueAfter(delay) => {
                let until = at.map_or(now + delay, |(at, rule)| which(now + delay, at, rule));
                entry.wait(until, Wait::Requeue, now, step);
            }
            Verdict::NotReady { delay } => {
                let until = at.map_or(now + delay, |(at, _)| at.min(now + delay));
                entry.wait(until, Wait::NotReady, now, step);
            }
            Verdict::Backoff { delay, fault } => {
                entry.wait(now + delay, Wait::Backoff(fault), now, step)
            }
            Verdict::Again { delay } => entry.wait(now + delay, Wait::Conflict, now, step),
            Verdict::Lost { delay } => entry.wait(now + delay, Wait::Lost, now, step),
            Verdict::Park(_) if now_too => {
                entry.wait(now + REST, Wait::Backoff(Fault::Object), now, step)
            }
            Verdict::Park(_) => {
                entry.turn(Is::Parked, now, step);
                return Next::Parked;
            }
        }
        entry.delay().map_or(Next::Queued, Next::Waiting)
    }
}

fn which(present: Instant, asked: Instant, when: When) -> Instant {
    match when {
        When::Earliest if present < asked => present,
        When::Latest if present > asked => present,
        _ => asked,
    }
}
