//! A queue as one would write it to be obviously right: a list of keys, searched from end to end.

use proptest::prelude::*;

use super::entry::{Entry, Is};
use super::script::{Ids, Op};
use super::*;
use crate::{Activation, CellView};

pub(super) struct Model {
    origin: Instant,
    now: Instant,
    entries: Vec<Entry>,
    ended: Vec<RunId>,
    adds: u32,
    steps: usize,
    last_lane: usize,
    high_water: usize,
}

impl Default for Model {
    fn default() -> Self {
        let now = origin();
        Model {
            origin: now,
            now,
            entries: Vec::new(),
            ended: Vec::new(),
            adds: 0,
            steps: 0,
            last_lane: 0,
            high_water: 0,
        }
    }
}

pub(super) const REST: Duration = Duration::from_secs(10);
const AGEING: Duration = Duration::from_secs(30);

impl Model {
    pub(super) fn origin(&self) -> Instant {
        self.origin
    }

    /// Does the same to the queue and to the model and compares the answers and everything that
    /// shows.
    pub(super) fn step<S: BuildHasher>(
        &mut self,
        queue: &mut Queue<u8, Ids, S>,
        op: Op,
    ) -> Result<(), TestCaseError> {
        self.steps += 1;
        let now = self.now;
        match op {
            Op::Add(key, lane) => {
                let id = self.id();
                prop_assert_eq!(
                    queue.add(key, lane, Ids(vec![id]), now),
                    self.add(key, lane, id)
                );
            }
            Op::Start => {
                let started = queue.start(now);
                let expected = self.start(started.as_ref().map(|activation| activation.run));
                prop_assert_eq!(started.map(told), expected);
            }
            Op::Finish(which, verdict) => {
                if let Some((key, run)) = self.any_run(which) {
                    self.ended.push(run);
                    prop_assert_eq!(
                        queue.finish(&key, run, verdict.clone(), now),
                        self.finish(key, verdict)
                    );
                }
            }
            Op::Stray(which, key) => {
                if !self.ended.is_empty() {
                    let run = self.ended[which.index(self.ended.len())];
                    prop_assert!(!queue.hold(&key, run, now));
                    prop_assert_eq!(
                        queue.finish(&key, run, Verdict::Done, now),
                        Next::NotRunning
                    );
                }
            }
            Op::Due(key) => prop_assert_eq!(queue.due(&key, now), self.due(key)),
            Op::Adopt(key) => {
                let run = queue.adopt(key, now);
                prop_assert_eq!(
                    run.is_some(),
                    self.entry(key).is_none_or(|entry| entry.run.is_none())
                );
                if run.is_some() {
                    self.adopt(key, run);
                }
            }
            Op::Unpark(key) => prop_assert_eq!(queue.unpark(&key, now), self.unpark(key)),
            Op::WakeParked(ago) => {
                let since = self
                    .origin
                    .max(now.checked_sub(ms(ago)).unwrap_or(self.origin));
                prop_assert_eq!(queue.wake_parked(since, now), self.wake_parked(since));
            }
            Op::Promote(key, lane) => {
                prop_assert_eq!(queue.promote(&key, lane, now), self.promote(key, lane))
            }
            Op::Remove(key) => prop_assert_eq!(queue.remove(&key), self.remove(key)),
            Op::Renew(key, lane) => {
                let id = self.id();
                prop_assert_eq!(
                    queue.renew(key, lane, Ids(vec![id]), now),
                    self.renew(key, lane, id)
                );
            }
            Op::Schedule(key, lane, at, when) => {
                let id = self.id();
                let until = now + ms(at);
                let until = until.checked_sub(ms(1000)).unwrap_or(until);
                prop_assert_eq!(
                    queue.schedule(key, lane, Ids(vec![id]), until, when, now),
                    self.schedule(key, lane, id, until, when)
                );
            }
            Op::Cancel(key) => prop_assert_eq!(queue.cancel(&key), self.cancel(key)),
            Op::Hold(which) => {
                if let Some((key, run)) = self.any_run(which) {
                    self.ended.push(run);
                    prop_assert_eq!(queue.hold(&key, run, now), self.hold(key));
                }
            }
            Op::Free(key) => prop_assert_eq!(queue.free(&key, now), self.free(key)),
            Op::Clear => {
                queue.clear();
                (0..5).for_each(|key| _ = self.remove(key));
            }
            Op::Advance(by) => self.now += ms(by),
        }
        self.compare(queue)
    }

    fn id(&mut self) -> u32 {
        self.adds += 1;
        self.adds
    }

    fn any_run(&self, which: prop::sample::Index) -> Option<(u8, RunId)> {
        let runs = self.entries.iter();
        let runs: Vec<_> = runs
            .filter_map(|entry| Some((entry.key, entry.run?)))
            .collect();
        (!runs.is_empty()).then(|| runs[which.index(runs.len())])
    }

    pub(super) fn entry(&mut self, key: u8) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// The time and the number of this step.
    pub(super) fn here(&self) -> (Instant, usize) {
        (self.now, self.steps)
    }

    pub(super) fn enter(&mut self, key: u8, is: Is, lane: Lane, id: u32) {
        self.entries.push(Entry {
            key,
            is,
            since: self.now,
            arrival: self.steps,
            lane,
            ids: vec![id],
            streak: Streak::default(),
            run: None,
        });
    }

    pub(super) fn drop_entry(&mut self, key: u8) {
        self.entries.retain(|entry| entry.key != key);
    }

    fn start(&mut self, run: Option<RunId>) -> Option<Told> {
        let (now, step) = (self.now, self.steps);
        let heads: Vec<Option<Entry>> = Lane::ALL
            .iter()
            .map(|&lane| {
                let stand = self
                    .entries
                    .iter()
                    .filter(|entry| matches!(entry.is, Is::Queued) && entry.lane == lane);
                stand.min_by_key(|entry| entry.arrival).cloned()
            })
            .collect();
        let urgent = heads.iter().position(Option::is_some)?;
        let mut may_go = heads
            .iter()
            .map(|head| head.as_ref().is_some_and(|head| now - head.since >= AGEING))
            .collect::<Vec<_>>();
        may_go[urgent] = true;
        self.last_lane = (self.last_lane + 1..)
            .map(|lane| lane % 3)
            .find(|&lane| may_go[lane])?;
        let head = heads[self.last_lane].clone()?;
        let entry = self.entry(head.key)?;
        entry.turn(
            Is::Running {
                forgotten: false,
                renewed: false,
                next: None,
            },
            now,
            step,
        );
        entry.run = run;
        Some((head.key, head.lane, head.ids, head.streak, head.since))
    }

    fn due(&mut self, key: u8) -> Due {
        let (now, step) = (self.now, self.steps);
        let Some(entry) = self.entry(key) else {
            return Due::Stale;
        };
        match entry.delay() {
            None => Due::Stale,
            Some(delay) if delay.until > now => Due::Early(delay),
            Some(_) => {
                entry.turn(Is::Queued, now, step);
                Due::Queued
            }
        }
    }

    fn adopt(&mut self, key: u8, run: Option<RunId>) {
        let (now, step) = (self.now, self.steps);
        let mut running = Entry {
            key,
            is: Is::Running {
                forgotten: false,
                renewed: false,
                next: None,
            },
            since: now,
            arrival: step,
            lane: Lane::Normal,
            ids: Vec::new(),
            streak: Streak::default(),
            run,
        };
        if let Some(entry) = self.entry(key) {
            running.streak = entry.streak;
            running.is = Is::Running {
                forgotten: false,
                renewed: false,
                next: Some((entry.lane, entry.ids.clone(), None)),
            };
            *entry = running;
        } else {
            self.entries.push(running);
        }
    }

    fn unpark(&mut self, key: u8) -> bool {
        let (now, step) = (self.now, self.steps);
        let Some(entry) = self
            .entry(key)
            .filter(|entry| matches!(entry.is, Is::Parked))
        else {
            return false;
        };
        entry.streak = Streak::default();
        entry.turn(Is::Queued, now, step);
        true
    }

    fn wake_parked(&mut self, since: Instant) -> Vec<u8> {
        let mut parked: Vec<_> = self
            .entries
            .iter_mut()
            .filter(|entry| matches!(entry.is, Is::Parked) && entry.since <= since)
            .collect();
        parked.sort_by_key(|entry| entry.arrival);
        // Several keys arrive in one step here, so they get the steps one after the other.
        for entry in &mut parked {
            entry.lane = Lane::Low;
            entry.turn(Is::Queued, self.now, self.steps);
            self.steps += 1;
        }
        parked.iter().map(|entry| entry.key).collect()
    }

    fn promote(&mut self, key: u8, lane: Lane) -> bool {
        let (now, step) = (self.now, self.steps);
        let Some(entry) = self.entry(key) else {
            return false;
        };
        match &mut entry.is {
            Is::Running { next: None, .. } => return false,
            Is::Running {
                next: Some((present, _, at)),
                ..
            } => (*present, *at) = (lane.max(*present), None),
            Is::Queued | Is::Held => entry.merge(lane, &[]),
            Is::Waiting { .. } | Is::Parked => {
                if let Is::Parked = entry.is {
                    entry.streak = Streak::default();
                }
                entry.merge(lane, &[]);
                entry.turn(Is::Queued, now, step);
            }
        }
        true
    }

    fn remove(&mut self, key: u8) -> bool {
        let Some(entry) = self.entry(key) else {
            return false;
        };
        if let Is::Running {
            forgotten, next, ..
        } = &mut entry.is
        {
            (*forgotten, *next) = (true, None);
            entry.streak = Streak::default();
        } else {
            self.entries.retain(|entry| entry.key != key);
        }
        true
    }

    fn compare<S: BuildHasher>(&mut self, queue: &Queue<u8, Ids, S>) -> Result<(), TestCaseError> {
        let count = |is: fn(&Is) -> bool| self.entries.iter().filter(|entry| is(&entry.is)).count();
        let queued = count(|is| matches!(is, Is::Queued));
        prop_assert_eq!(queue.len(), self.entries.len());
        prop_assert_eq!(queue.queued(), queued);
        prop_assert_eq!(
            queue.running(),
            count(|is| matches!(is, Is::Running { .. }))
        );
        prop_assert_eq!(
            queue.waiting(),
            count(|is| matches!(is, Is::Waiting { .. }))
        );
        prop_assert_eq!(queue.held(), count(|is| matches!(is, Is::Held)));
        prop_assert_eq!(queue.parked(), count(|is| matches!(is, Is::Parked)));
        prop_assert_eq!(queue.parked_keys().count(), queue.parked());
        prop_assert_eq!(queue.cells().count(), queue.len());
        let mut runs: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.arrival, entry.key, entry.run?)))
            .collect();
        runs.sort_unstable_by_key(|&(arrival, ..)| arrival);
        prop_assert!(
            queue
                .runs()
                .eq(runs.iter().map(|(_, key, run)| (key, *run)))
        );
        self.high_water = self.high_water.max(queued);
        prop_assert_eq!(queue.high_water(), self.high_water);

        let mut waits: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.key, entry.delay()?, entry.arrival)))
            .collect();
        waits.sort_by_key(|&(_, delay, arrival)| (delay.until, arrival));
        prop_assert!(
            queue
                .waits()
                .eq(waits.iter().map(|(key, delay, _)| (key, *delay)))
        );

        for entry in &self.entries {
            let view = queue.state_of(&entry.key);
            let phase = match &entry.is {
                Is::Queued => Phase::Queued,
                Is::Running { next, .. } => Phase::Running {
                    dirty: next.is_some(),
                },
                Is::Waiting { until, why } => Phase::Waiting {
                    until: *until,
                    why: *why,
                },
                Is::Held => Phase::Held,
                Is::Parked => Phase::Parked { reason: "broken" },
            };
            let ids = Ids(entry.ids.clone());
            let cause = Some(&ids).filter(|ids| !ids.0.is_empty());
            let expected = CellView {
                phase,
                since: entry.since,
                lane: entry.lane,
                cause,
                streak: entry.streak,
            };
            if entry.run.is_some() {
                // What a run was started for is compared when it starts.
                prop_assert_eq!(
                    view.map(|view| (view.phase, view.since, view.streak)),
                    Some((phase, entry.since, entry.streak))
                );
            } else {
                prop_assert_eq!(view, Some(expected));
            }
        }
        Ok(())
    }
}

type Told = (u8, Lane, Vec<u32>, Streak, Instant);

fn told(activation: Activation<u8, Ids>) -> Told {
    let ids = activation.cause.unwrap_or_default().0;
    (
        activation.key,
        activation.lane,
        ids,
        activation.streak,
        activation.queued_at,
    )
}
