//! Scripts nobody would think of: against the model, against another hasher, and with the timer's
//! side attached.

use std::hash::{BuildHasherDefault, Hasher};

use proptest::prelude::*;

use super::model::Model;
use super::script::{Ids, ops};
use super::*;
use crate::Pacer;

/// A hasher that puts every key in one bucket.
#[derive(Clone, Default)]
struct Blind;

impl Hasher for Blind {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        0
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_queue_answers_as_a_naive_model_does(script in ops()) {
        let mut model = Model::default();
        let mut queue = Queue::new(QueueOptions::default());
        for op in script {
            model.step(&mut queue, op)?;
        }
    }

    #[test]
    fn the_hasher_changes_nothing_but_speed(script in ops()) {
        let mut seeded = Model::default();
        let mut blind = Model::default();
        let mut with_seed = Queue::new(QueueOptions { hash_seed: 7, ..QueueOptions::default() });
        let mut without = Queue::with_hasher(QueueOptions::default(), BuildHasherDefault::<Blind>::default());
        for op in script {
            seeded.step(&mut with_seed, op.clone())?;
            blind.step(&mut without, op)?;
            let cells: Vec<_> = with_seed.cells().map(|(key, view)| format!("{key} {:?} {:?}", view.phase, view.lane)).collect();
            prop_assert_eq!(cells.len(), with_seed.len());
            let start = blind.origin() - seeded.origin();
            prop_assert!(without.waits().zip(with_seed.waits()).all(|(a, b)| a.0 == b.0 && a.1.until == b.1.until + start));
            prop_assert!(without.cells().map(|(key, _)| key).eq(with_seed.cells().map(|(key, _)| key)));
        }
    }
}

/// Everything a script asked of the queue, by number of the add.
#[derive(Debug, Default)]
struct Ledger {
    asked: u32,
    settled: Vec<u32>,
}

impl Ledger {
    fn ask(&mut self) -> u32 {
        self.asked += 1;
        self.asked - 1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The queue and a pacer that loses its memory now and then, as the shard and the limiter would
    /// use them. Then the storm ends, and every add must have been settled by exactly one
    /// successful run that started after it.
    #[test]
    fn every_add_is_settled_by_one_later_run_whatever_happens(
        script in prop::collection::vec((0..6_u8, 0..12_u8, 0..2000_u64), 1..150)
    ) {
        let mut now = origin();
        let mut queue: Queue<u8, Ids> = Queue::new(QueueOptions::default());
        let mut pacer = Pacer::default();
        let mut running: Vec<Activation<u8, Ids>> = Vec::new();
        let mut ledger = Ledger::default();
        for (key, what, amount) in script {
            match what {
                0..=2 => {
                    let id = ledger.ask();
                    if let Added::Delayed(delay) = queue.add(key, Lane::ALL[usize::from(what)], Ids(vec![id]), now) {
                        pacer.insert(key, delay);
                    }
                }
                3 => running.extend(queue.start(now)),
                4 | 5 if !running.is_empty() => {
                    let run = running.remove(usize::from(key) % running.len());
                    let verdict = match amount % 8 {
                        0 => Verdict::Done,
                        1 => Verdict::RequeueAfter(ms(amount)),
                        2 => Verdict::Again { delay: ms(amount / 10) },
                        3 => Verdict::Backoff { delay: ms(amount), fault: Fault::Infrastructure },
                        4 => Verdict::Park("broken".into()),
                        5 => Verdict::NotReady { delay: ms(amount) },
                        6 => Verdict::Lost { delay: ms(amount / 10) },
                        _ => failed(ms(amount)),
                    };
                    report(&mut queue, &mut pacer, &mut ledger, &run, verdict, now);
                }
                6 => {
                    pacer = Pacer::default();
                    for (key, delay) in queue.waits() {
                        pacer.insert(*key, delay);
                    }
                }
                7 => {
                    let added = queue.renew(key, Lane::Normal, Ids(vec![ledger.ask()]), now);
                    prop_assert!(!matches!(added, Added::Delayed(_)));
                }
                8 => {
                    let when = [When::Earliest, When::Latest, When::Replace][amount as usize % 3];
                    let until = now + ms(amount);
                    let cause = Ids(vec![ledger.ask()]);
                    if let Added::Delayed(delay) = queue.schedule(key, Lane::Low, cause, until, when, now) {
                        pacer.insert(key, delay);
                    }
                }
                9 if !running.is_empty() => {
                    let run = running.remove(usize::from(key) % running.len());
                    queue.hold(&run.key, run.run, now);
                }
                10 => _ = queue.free(&key, now),
                _ => now += ms(amount),
            }
            ring(&mut queue, &mut pacer, now);
            let mut keys: Vec<u8> = running.iter().map(|run| run.key).collect();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), running.len(), "two runs of one key at once");
        }

        for _ in 0..10_000 {
            running.extend(queue.start(now));
            if let Some(run) = running.pop() {
                report(&mut queue, &mut pacer, &mut ledger, &run, Verdict::Done, now);
            } else if let Some(at) = pacer.next_due() {
                now = now.max(at);
                ring(&mut queue, &mut pacer, now);
            } else if (0..6).any(|key| queue.free(&key, now)) {
                // it stands in its lane
            } else if queue.wake_parked(now, now).is_empty() {
                break;
            }
        }
        prop_assert!(queue.is_empty(), "left behind: {:?}", queue);
        ledger.settled.sort_unstable();
        prop_assert_eq!(ledger.settled, (0..ledger.asked).collect::<Vec<_>>());
    }
}

fn report(
    queue: &mut Queue<u8, Ids>,
    pacer: &mut Pacer<u8>,
    ledger: &mut Ledger,
    run: &Activation<u8, Ids>,
    verdict: Verdict,
    now: Instant,
) {
    if matches!(verdict, Verdict::Done | Verdict::RequeueAfter(_)) {
        ledger
            .settled
            .extend(run.cause.iter().flat_map(|ids| &ids.0));
    }
    if let Next::Waiting(delay) = queue.finish(&run.key, run.run, verdict, now) {
        pacer.insert(run.key, delay);
    }
}

fn ring(queue: &mut Queue<u8, Ids>, pacer: &mut Pacer<u8>, now: Instant) {
    for key in pacer.release(now) {
        if let Due::Early(delay) = queue.due(&key, now) {
            pacer.insert(key, delay);
        }
    }
}
