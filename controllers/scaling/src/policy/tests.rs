use std::time::{Duration, Instant};

use super::*;

/// A Deployment, a controller that follows the policy, and a clock.
struct World {
    rivalry: Rivalry,
    wanted: Wanted,
    replicas: i32,
    now: Instant,
    writes: usize,
}

impl World {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin to count from, not a measurement"
    )]
    fn new(replicas: i32, wanted: i32) -> Self {
        let wanted = Wanted {
            generation: Some(1),
            target: Some("u1".into()),
            replicas: wanted,
        };
        Self {
            rivalry: Rivalry::default(),
            wanted,
            replicas,
            now: Instant::now(),
            writes: 0,
        }
    }

    fn run(&mut self) -> Decision {
        let decision = self.rivalry.decide(&self.wanted, self.replicas, self.now);
        if let Decision::Scale { to, .. } = decision {
            self.replicas = to;
            self.writes += 1;
            self.rivalry.wrote(&self.wanted, self.now);
        }
        decision
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn scale(from: i32, to: i32) -> Decision {
    let last = false;
    Decision::Scale { from, to, last }
}

#[test]
fn nothing_is_written_when_the_numbers_agree() {
    let mut world = World::new(3, 3);
    assert_eq!(world.run(), Decision::InSync);
    assert_eq!(world.writes, 0);
}

#[test]
fn a_difference_is_written_once() {
    let mut world = World::new(3, 5);
    assert_eq!(world.run(), scale(3, 5));
    assert_eq!(world.run(), Decision::InSync);
    assert_eq!(world.writes, 1);
}

#[test]
fn a_foreign_change_is_corrected() {
    let mut world = World::new(3, 5);
    world.run();
    world.replicas = 2;
    assert_eq!(world.run(), scale(2, 5));
}

#[test]
fn more_than_three_reversals_within_a_minute_make_it_step_back() {
    let mut world = World::new(3, 5);
    world.run();
    for last in [false, false, true] {
        world.pass(Duration::from_secs(5));
        world.replicas = 3;
        let (from, to) = (3, 5);
        assert_eq!(world.run(), Decision::Scale { from, to, last });
    }
    world.pass(Duration::from_secs(5));
    world.replicas = 3;
    assert_eq!(
        world.run(),
        Decision::Hold {
            left: HOLD,
            begins: true
        }
    );
    world.pass(Duration::from_secs(1));
    assert_eq!(
        world.run(),
        Decision::Hold {
            left: HOLD - Duration::from_secs(1),
            begins: false
        }
    );
    assert_eq!(world.writes, 4);
}

#[test]
fn each_step_back_lasts_twice_as_long_and_allows_one_try() {
    let mut world = World::new(3, 5);
    let mut expected = HOLD;
    let mut holds = 0;
    for _ in 0..20_000 {
        world.pass(Duration::from_secs(5));
        world.replicas = 3;
        if let Decision::Hold { left, begins: true } = world.run() {
            assert_eq!(left, expected);
            expected = (expected * 2).min(HOLD_MAX);
            holds += 1;
        }
    }
    // 100,000 s against a stubborn rival: the first write, three corrections, then one try after each step back
    assert!(holds > 10);
    assert!(
        world.writes <= 4 + holds,
        "{} writes in {holds} step-backs",
        world.writes
    );
}

#[test]
fn slow_reversals_are_corrected_for_ever() {
    let mut world = World::new(3, 5);
    world.run();
    for _ in 0..100 {
        world.pass(Duration::from_secs(21));
        world.replicas = 3;
        assert!(matches!(world.run(), Decision::Scale { .. }));
    }
}

#[test]
fn a_new_generation_or_a_new_deployment_starts_with_a_clean_slate() {
    for change in [
        (|wanted: &mut Wanted| wanted.generation = Some(2)) as fn(&mut Wanted),
        |wanted| wanted.target = Some("u2".into()),
    ] {
        let mut world = World::new(3, 5);
        for _ in 0..5 {
            world.replicas = 3;
            world.run();
        }
        assert!(world.rivalry.held(world.now));
        change(&mut world.wanted);
        assert_eq!(world.run(), scale(3, 5));
        assert!(!world.rivalry.held(world.now));
    }
}

#[test]
fn a_rivalry_is_forgotten_after_a_time_of_agreement() {
    let mut world = World::new(3, 5);
    for _ in 0..5 {
        world.replicas = 3;
        world.run();
    }
    world.replicas = 5;
    assert_eq!(world.run(), Decision::InSync);
    world.pass(PEACE);
    assert_eq!(world.run(), Decision::InSync);
    world.replicas = 3;
    assert_eq!(world.run(), scale(3, 5));
}

/// Two controllers that want one Deployment to have different numbers, each of which sees every change at once.
struct Quarrel {
    sides: [Rivalry; 2],
    replicas: i32,
    now: Instant,
    writes: usize,
}

impl Quarrel {
    fn new(replicas: i32) -> Self {
        let World { now, .. } = World::new(0, 0);
        Self {
            sides: Default::default(),
            replicas,
            now,
            writes: 0,
        }
    }

    /// Lets both look until neither has anything to write; each wants the number at its place.
    fn settle(&mut self, wanted: [i32; 2]) -> [Decision; 2] {
        loop {
            let mut quiet = true;
            let decisions = [0, 1].map(|side| {
                let wanted = Wanted {
                    generation: None,
                    target: Some("u1".into()),
                    replicas: wanted[side],
                };
                let decision = self.sides[side].decide(&wanted, self.replicas, self.now);
                if let Decision::Scale { to, .. } = decision {
                    self.replicas = to;
                    self.writes += 1;
                    self.sides[side].wrote(&wanted, self.now);
                    quiet = false;
                }
                decision
            });
            if quiet {
                return decisions;
            }
        }
    }
}

#[test]
fn of_two_that_want_different_numbers_one_steps_back_and_both_know_whoever_began() {
    for (start, wanted) in [(1, [3, 5]), (3, [3, 5]), (5, [3, 5]), (1, [5, 3])] {
        let mut quarrel = Quarrel::new(start);
        let mut decisions = quarrel.settle(wanted);
        assert!(quarrel.writes <= 8, "{} writes", quarrel.writes);
        let stands = quarrel.replicas;
        let winner = usize::from(wanted[1] == stands);
        assert_eq!(decisions[winner], Decision::Wait { left: SETTLED });
        quarrel.now += SETTLED;
        decisions = quarrel.settle(wanted);
        let left = GONE - SETTLED;
        let begins = true;
        assert_eq!(decisions[winner], Decision::Upheld { left, begins });
        let loser = decisions[1 - winner];
        assert!(matches!(loser, Decision::Hold { .. }), "{loser:?}");
    }
}

#[test]
fn a_quarrel_costs_two_writes_for_each_step_back_and_one_word_of_the_one_that_upholds_its_number() {
    let wanted = [3, 5];
    let mut quarrel = Quarrel::new(1);
    quarrel.settle(wanted);
    let stands = quarrel.replicas;
    let winner = usize::from(wanted[1] == stands);
    let (mut said, mut held) = (0, 1);
    let begin = quarrel.now;
    while quarrel.now - begin < Duration::from_secs(24 * 3600) {
        quarrel.now += Duration::from_secs(1);
        let decisions = quarrel.settle(wanted);
        assert_eq!(quarrel.replicas, stands);
        let upheld = matches!(decisions[winner], Decision::Upheld { .. });
        assert!(upheld || quarrel.now - begin < SETTLED, "{decisions:?}");
        said += usize::from(matches!(
            decisions[winner],
            Decision::Upheld { begins: true, .. }
        ));
        held += usize::from(matches!(
            decisions[1 - winner],
            Decision::Hold { begins: true, .. }
        ));
    }
    assert_eq!(said, 1);
    assert_eq!(quarrel.writes, 8 + 2 * (held - 1));
    assert!(held < 60, "{held} step-backs in a day");
}

#[test]
fn one_that_upheld_its_number_forgets_it_when_the_rival_is_gone() {
    let mut world = World::new(3, 5);
    world.run();
    for _ in 0..CORRECTIONS {
        world.replicas = 3;
        world.run();
    }
    assert_eq!(world.run(), Decision::Wait { left: SETTLED });
    world.pass(SETTLED);
    assert!(matches!(world.run(), Decision::Upheld { begins: true, .. }));
    world.pass(GONE - SETTLED);
    assert_eq!(world.run(), Decision::InSync);
}
