//! Replicas against a server, with clocks of their own, lost requests and answers, and pauses: never may two write, and who has resigned holds nothing.

use boatswain_supervision::Entropy;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

/// A request that is on its way, and when what happens next.
enum Flight {
    /// To the server, which acts on it when it arrives.
    Going(Step, Duration, Boot),
    /// Back with its answer; absent where it is lost.
    Coming(Option<Answer>, bool, Duration, Boot),
}

struct Replica {
    elector: Elector,
    /// What its clock shows beyond the true time, and how much faster it goes.
    offset: Duration,
    rate: f64,
    flight: Option<Flight>,
    /// Until when in true time it gets no processor.
    asleep: Duration,
    /// When it gives up waiting, by its own clock.
    patience: Boot,
}

impl Replica {
    fn clock(&self, now: Duration) -> Boot {
        self.offset + now.mul_f64(self.rate)
    }

    fn may_write(&self, now: Duration) -> bool {
        let fence = self.elector.fence();
        fence.is_some_and(|until| self.clock(now) < until)
    }
}

#[derive(Default)]
struct Server {
    lease: Option<Box<Lease>>,
    version: u64,
}

impl Server {
    fn act(&mut self, step: Step) -> Answer {
        match step {
            Step::Read(_) => self.lease.clone().map_or(Answer::Absent, Answer::Lease),
            Step::Write(mut lease, _) => {
                let asked = lease.metadata.resource_version.as_deref();
                let present = self.lease.as_ref();
                let present = present.and_then(|lease| lease.metadata.resource_version.as_deref());
                match (asked, present) {
                    (Some(_), None) => return Answer::Absent,
                    (asked, present) if asked != present => return Answer::Conflict,
                    _ => {}
                }
                self.version += 1;
                lease.metadata.resource_version = Some(self.version.to_string());
                self.lease = Some(lease.clone());
                Answer::Lease(lease)
            }
            Step::Wait(_) | Step::Rest => unreachable!("not for the server"),
        }
    }
}

struct World {
    entropy: Entropy,
    server: Server,
    replicas: Vec<Replica>,
    gained: usize,
    /// How often one resigned, and was done with it.
    returned: usize,
    /// Out of reach for everybody until then.
    away: Duration,
}

impl World {
    fn new(seed: u64) -> Self {
        let entropy = Entropy::seeded(seed);
        let replicas = (0..3)
            .map(|i| Replica {
                elector: elector(&format!("replica-{i}")),
                offset: Duration::from_secs((entropy.unit() * 1e7) as u64),
                // client-go's assumption: rates differ by less than duration / deadline
                rate: 0.98 + 0.04 * entropy.unit(),
                flight: None,
                asleep: Duration::ZERO,
                patience: Boot::ZERO,
            })
            .collect();
        Self {
            entropy,
            server: Server::default(),
            replicas,
            gained: 0,
            returned: 0,
            away: Duration::ZERO,
        }
    }

    fn anyone(&self) -> usize {
        (self.entropy.unit() * 3.0) as usize
    }

    /// How long a message is on its way: mostly short, sometimes longer than anybody waits.
    fn delay(&self) -> Duration {
        let longest = if self.entropy.unit() < 0.05 {
            12_000.0
        } else {
            200.0
        };
        Duration::from_millis(1 + (self.entropy.unit() * longest) as u64)
    }

    fn turn(&mut self, i: usize, now: Duration) {
        // a request that was sent reaches the server whatever becomes of its sender
        if let Some(Flight::Going(_, arrives, _)) = &self.replicas[i].flight
            && *arrives <= now
            && let Some(Flight::Going(step, _, sent)) = self.replicas[i].flight.take()
        {
            let is_read = matches!(step, Step::Read(_));
            let lost = self.entropy.unit() < 0.03 || now < self.away;
            let answer = (!lost || self.entropy.unit() < 0.5).then(|| self.server.act(step));
            let answer = answer.filter(|_| !lost);
            let back = now + self.delay();
            self.replicas[i].flight = Some(Flight::Coming(answer, is_read, back, sent));
        }
        if self.replicas[i].asleep > now {
            return;
        }
        let chance = self.entropy.unit();
        let replica = &mut self.replicas[i];
        let clock = replica.clock(now);
        let (answer, is_read, sent) = match &replica.flight {
            Some(Flight::Coming(Some(answer), is_read, back, sent)) if *back <= now => {
                (answer.clone(), *is_read, *sent)
            }
            Some(Flight::Coming(_, is_read, _, sent)) if clock >= replica.patience => {
                (Answer::Failed("no answer".into()), *is_read, *sent)
            }
            Some(_) => return,
            None => return self.ask(i, now),
        };
        replica.flight = None;
        let changes = if is_read {
            replica.elector.read(answer, clock, chance)
        } else {
            replica.elector.wrote(answer, sent, clock, chance)
        };
        self.gained += changes.iter().filter(|c| **c == Change::Gained).count();
    }

    fn ask(&mut self, i: usize, now: Duration) {
        let arrives = now + self.delay();
        let replica = &mut self.replicas[i];
        let clock = replica.clock(now);
        // some lead others, too
        let load = u32::try_from(i).unwrap_or(0);
        let wall = Timestamp::UNIX_EPOCH + now;
        let (step, _) = replica.elector.step(clock, wall, load);
        if let Step::Read(within) | Step::Write(_, within) = &step {
            replica.patience = clock + *within;
            replica.flight = Some(Flight::Going(step, arrives, clock));
            return;
        }
        if step == Step::Rest {
            let present = self.server.lease.as_ref();
            let held = present.and_then(|lease| holder(lease.spec.as_ref()?));
            let name = &replica.elector.identity;
            assert_ne!(held, Some(name.as_str()), "it has resigned after {now:?}");
            self.returned += 1;
            // its successor in the same process
            replica.elector.interrupted();
        }
    }

    fn writers(&self, now: Duration) -> usize {
        self.replicas.iter().filter(|r| r.may_write(now)).count()
    }
}

/// The one that is asked for, and all that are to be tried.
fn seeds() -> (Option<u64>, std::ops::Range<u64>) {
    let seed = std::env::var("BOATSWAIN_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
    (seed, seed.map_or(0..200, |seed| seed..seed + 1))
}

#[test]
fn never_may_two_write_whatever_their_clocks_show_and_however_long_they_sleep() {
    let (seed, seeds) = seeds();
    let mut gained = 0;
    for seed in seeds {
        let mut world = World::new(seed);
        let mut now = Duration::ZERO;
        // ten minutes
        while now < 600 * SECOND {
            now += 20 * MILLI;
            if world.entropy.unit() < 0.000_5 {
                let who = world.anyone();
                world.replicas[who].asleep = now + SECOND.mul_f64(60.0 * world.entropy.unit());
            }
            if world.entropy.unit() < 0.000_1 {
                world.away = now + SECOND.mul_f64(40.0 * world.entropy.unit());
            }
            if world.entropy.unit() < 0.000_1 {
                let who = world.anyone();
                // its actor is restarted: what was under way is lost
                world.replicas[who].flight = None;
                world.replicas[who].elector.interrupted();
            }
            // by hand, when all know that it is there: who does not cannot know how long it would have lasted
            let known = |r: &Replica| r.elector.seen.is_some();
            if world.entropy.unit() < 0.000_2 && world.replicas.iter().all(known) {
                world.server.lease = None;
            }
            for i in 0..3 {
                world.turn(i, now);
            }
            let writers = world.writers(now);
            assert!(
                writers <= 1,
                "seed {seed}: {writers} may write after {now:?}"
            );
        }
        gained += world.gained;
        // left alone there is a leader within two durations
        world.away = Duration::ZERO;
        world
            .replicas
            .iter_mut()
            .for_each(|r| r.asleep = Duration::ZERO);
        let calm = now + 60 * SECOND;
        while world.writers(now) == 0 {
            now += 20 * MILLI;
            assert!(now < calm, "seed {seed}: nobody leads");
            for i in 0..3 {
                world.turn(i, now);
            }
        }
    }
    assert!(
        seed.is_some() || gained > 400,
        "only {gained} changes of leaders: nothing was tried"
    );
}

#[test]
fn who_has_resigned_holds_nothing_whatever_was_on_its_way_and_whichever_answers_are_lost() {
    let (seed, seeds) = seeds();
    let mut returned = 0;
    for seed in seeds {
        println!("seed {seed}");
        let mut world = World::new(seed);
        let mut now = Duration::ZERO;
        while now < 120 * SECOND {
            now += 20 * MILLI;
            if world.entropy.unit() < 0.005 {
                let who = world.anyone();
                world.replicas[who].elector.resign();
            }
            for i in 0..3 {
                world.turn(i, now);
            }
        }
        returned += world.returned;
    }
    assert!(
        seed.is_some() || returned > 400,
        "only {returned} resignations: nothing was tried"
    );
}
