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

#[test]
fn nothing_is_written_when_the_numbers_agree() {
    let mut world = World::new(3, 3);
    assert_eq!(world.run(), Decision::InSync);
    assert_eq!(world.writes, 0);
}

#[test]
fn a_difference_is_written_once() {
    let mut world = World::new(3, 5);
    assert_eq!(world.run(), Decision::Scale { from: 3, to: 5 });
    assert_eq!(world.run(), Decision::InSync);
    assert_eq!(world.writes, 1);
}

#[test]
fn a_foreign_change_is_corrected() {
    let mut world = World::new(3, 5);
    world.run();
    world.replicas = 2;
    assert_eq!(world.run(), Decision::Scale { from: 2, to: 5 });
}

#[test]
fn more_than_three_reversals_within_a_minute_make_it_step_back() {
    let mut world = World::new(3, 5);
    world.run();
    for _ in 0..3 {
        world.pass(Duration::from_secs(5));
        world.replicas = 3;
        assert_eq!(world.run(), Decision::Scale { from: 3, to: 5 });
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
        assert_eq!(world.run(), Decision::Scale { from: 3, to: 5 });
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
        assert_eq!(world.run(), Decision::Scale { from: 3, to: 5 });
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
    assert_eq!(world.run(), Decision::Scale { from: 3, to: 5 });
}
