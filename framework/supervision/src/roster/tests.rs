mod ship;

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

use super::Action;
use crate::backoff::Backoff;
use crate::exit::{ErrorKind, Exit};
use crate::intensity::Intensity;
use crate::spec::{AutoShutdown, Policy, Restart, Shutdown, Strategy};
use ship::{Hand, Ship, State, panic_exit, terms};

const GRACE: Duration = Duration::from_secs(1);

fn restart_kinds() -> impl Generator<Value = Restart> {
    prop_oneof![
        Just(Restart::Permanent),
        Just(Restart::Transient),
        Just(Restart::Temporary)
    ]
}

fn strategies() -> impl Generator<Value = Strategy> {
    prop_oneof![
        Just(Strategy::OneForOne),
        Just(Strategy::OneForAll),
        Just(Strategy::RestForOne),
        Just(Strategy::SimpleOneForOne)
    ]
}

/// What a strategy promises, in its plainest form: whom the restart of `failed` stops, and whom it then starts, both in order.
fn group(
    strategy: Strategy,
    kinds: &[Restart],
    running: &[bool],
    failed: usize,
) -> (Vec<usize>, Vec<usize>) {
    let members: Vec<usize> = match strategy {
        Strategy::OneForOne | Strategy::SimpleOneForOne => vec![failed],
        Strategy::OneForAll => (0..kinds.len()).collect(),
        Strategy::RestForOne => (failed..kinds.len()).collect(),
    };
    let stop = members
        .iter()
        .rev()
        .copied()
        .filter(|&i| i != failed && running[i])
        .collect();
    let start = members
        .into_iter()
        .filter(|&i| i == failed || kinds[i] != Restart::Temporary)
        .collect();
    (stop, start)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn one_failure_stops_and_starts_exactly_what_the_strategy_promises(
        strategy in strategies(),
        mut kinds in prop::collection::vec(restart_kinds(), 1..8),
        done in prop::collection::vec(any::<bool>(), 8),
        failed in any::<prop::sample::Index>(),
        backoff in prop_oneof![Just(Backoff::none()), Just(Backoff::default())],
    ) {
        let failed = failed.index(kinds.len());
        if kinds[failed] == Restart::Temporary {
            kinds[failed] = Restart::Permanent;
        }
        let mut ship = Ship::new(strategy, Some(Intensity::default()));
        let tokens: Vec<_> = kinds.iter().map(|&kind| ship.hire(terms(kind, backoff.clone()))).collect();
        ship.open();
        ship.calm();
        // some transient children have already done their work
        let mut running = vec![true; kinds.len()];
        for (i, &token) in tokens.iter().enumerate() {
            if kinds[i] == Restart::Transient && done[i] && i != failed {
                ship.exit(token, Exit::Normal);
                running[i] = false;
            }
        }
        ship.calm();
        ship.log.clear();
        ship.exit(tokens[failed], panic_exit());
        ship.calm();

        let (stop, start) = group(strategy, &kinds, &running, failed);
        let of = |wanted: &[usize]| wanted.iter().map(|&i| tokens[i]).collect::<Vec<_>>();
        prop_assert_eq!(ship.logged(|action| matches!(action, Action::Stop(_))), of(&stop));
        prop_assert_eq!(ship.logged(|action| matches!(action, Action::Start(_))), of(&start));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    /// Any schedule of crashes, stops, removals, terminations, restarts by hand, blocked threads and time: the ship asserts on every action that it is allowed,
    /// and in the end that nothing is left hanging.
    #[test]
    fn no_schedule_breaks_an_invariant_and_every_end_is_reached(
        strategy in strategies(),
        auto_shutdown in prop_oneof![Just(AutoShutdown::Never), Just(AutoShutdown::AnySignificant), Just(AutoShutdown::AllSignificant)],
        intensity in prop_oneof![Just(None), Just(Some(Intensity::new(2, Duration::from_secs(60)))), Just(Some(Intensity::new(50, Duration::from_secs(60))))],
        crew in prop::collection::vec((restart_kinds(), 0..3u8, any::<bool>(), any::<bool>()), 0..6),
        events in prop::collection::vec((0..16u8, any::<prop::sample::Index>()), 0..120),
    ) {
        let mut ship = Ship::with(Policy { strategy, intensity, auto_shutdown });
        for (kind, shutdown, instant, significant) in crew {
            let backoff = if instant { Backoff::none() } else { Backoff::default() };
            let shutdown = [Shutdown::Brutal, Shutdown::Timeout(GRACE), Shutdown::Infinity][usize::from(shutdown)];
            let significant = significant && kind != Restart::Permanent;
            let added_later = strategy == Strategy::SimpleOneForOne;
            ship.hire(ship::Terms { shutdown, significant, added_later, ..terms(kind, backoff) });
        }
        ship.open();
        for (event, whom) in events {
            ship.happen(event, whom);
        }
        ship.unblock();
        ship.calm();
        if ship.is_open() {
            for hand in ship.hands.values().filter(|hand| hand.kind == Restart::Permanent && !hand.dismissed && !hand.held) {
                prop_assert_eq!(&hand.state, &State::Up, "a permanent child is not running in the calm: {:?}", hand);
            }
        }
        ship.close(false);
        ship.calm();
        prop_assert!(ship.finished, "asked to stop, and not finished: {:?}", ship.hands);
    }
}

fn two(strategy: Strategy, shutdown: Shutdown) -> (Ship, [u64; 2]) {
    let mut ship = Ship::new(strategy, Some(Intensity::default()));
    let hire = |ship: &mut Ship| {
        ship.hire(ship::Terms {
            shutdown,
            ..terms(Restart::Permanent, Backoff::default())
        })
    };
    let tokens = [hire(&mut ship), hire(&mut ship)];
    ship.open();
    ship.calm();
    ship.log.clear();
    (ship, tokens)
}

#[test]
fn a_child_that_ignores_its_stop_is_killed_at_its_deadline_and_the_rest_goes_on() {
    let (mut ship, [a, b]) = two(Strategy::OneForOne, Shutdown::Timeout(5 * GRACE));
    ship.hand(b).deaf = true;
    let asked = ship.now;
    ship.close(false);
    ship.calm();
    assert_eq!(ship.now - asked, 5 * GRACE);
    let orders = [
        Action::Release(b),
        Action::Stop(b),
        Action::Kill(b),
        Action::Forget {
            token: b,
            running: false,
        },
        Action::Release(a),
        Action::Stop(a),
        Action::Forget {
            token: a,
            running: false,
        },
        Action::Finish,
    ];
    assert_eq!(ship.log, orders);
}

#[test]
fn a_child_that_blocks_its_thread_is_left_behind_as_running() {
    let (mut ship, [a, b]) = two(Strategy::OneForOne, Shutdown::Brutal);
    ship.hand(b).blocked = true;
    let asked = ship.now;
    ship.close(false);
    ship.calm_but_blocked();
    assert_eq!(ship.now - asked, GRACE);
    assert!(
        ship.log.contains(&Action::Forget {
            token: b,
            running: true
        }),
        "{:?}",
        ship.log
    );
    assert!(
        ship.log.contains(&Action::Forget {
            token: a,
            running: false
        }),
        "{:?}",
        ship.log
    );
    assert!(ship.finished);
}

#[test]
fn a_group_with_a_child_that_cannot_be_stopped_gives_up() {
    let (mut ship, [a, b]) = two(Strategy::RestForOne, Shutdown::Timeout(GRACE));
    ship.hand(b).blocked = true;
    ship.exit(a, panic_exit());
    ship.calm_but_blocked();
    assert!(
        ship.log.contains(&Action::Escalate {
            token: b,
            exit: Exit::Stuck
        }),
        "{:?}",
        ship.log
    );
    assert!(ship.finished);
}

#[test]
fn a_group_that_may_not_give_up_waits_for_the_thread_to_come_free() {
    for comes_free in [true, false] {
        let mut ship = Ship::new(Strategy::RestForOne, None);
        let [a, b] = [(); 2].map(|()| ship.hire(terms(Restart::Permanent, Backoff::default())));
        ship.open();
        ship.calm();
        ship.hand(b).blocked = true;
        ship.exit(a, panic_exit());
        ship.calm_but_blocked();
        assert!(ship.is_open());
        assert_eq!(
            [&ship.hands[&a].state, &ship.hands[&b].state],
            [&State::Parked, &State::Up]
        );
        if comes_free {
            ship.unblock();
            ship.calm();
            assert_eq!(
                [&ship.hands[&a].state, &ship.hands[&b].state],
                [&State::Up, &State::Up]
            );
        }
        ship.close(false);
        ship.calm_but_blocked();
        assert!(ship.finished);
        let left_behind = ship.log.contains(&Action::Forget {
            token: b,
            running: true,
        });
        assert_eq!(left_behind, !comes_free);
    }
}

#[test]
fn a_stop_in_haste_kills_all_at_once() {
    let (mut ship, [a, b]) = two(Strategy::OneForOne, Shutdown::Infinity);
    ship.hand(a).deaf = true;
    ship.hand(b).deaf = true;
    ship.close(false);
    ship.close(true);
    let killed = ship.logged(|action| matches!(action, Action::Kill(_)));
    assert_eq!(killed.len(), 2, "{:?}", ship.log);
    let asked = ship.now;
    ship.calm();
    assert!(ship.finished);
    assert_eq!(ship.now, asked);
}

#[test]
fn a_thread_that_ends_under_a_child_waiting_for_its_restart_is_noticed() {
    let (mut ship, [a, _]) = two(Strategy::OneForOne, Shutdown::Brutal);
    ship.exit(
        a,
        Exit::Error {
            kind: ErrorKind::Transient,
            message: "no route".to_owned(),
        },
    );
    let before = ship.now;
    ship.leave(a);
    ship.calm();
    assert_eq!(ship.now, before, "not only when its backoff was over");
    assert!(
        ship.log.contains(&Action::Escalate {
            token: a,
            exit: Exit::Killed
        }),
        "{:?}",
        ship.log
    );
    assert!(ship.finished);
}

#[test]
fn a_child_added_later_that_fails_to_start_concerns_only_who_added_it() {
    let (mut ship, _) = two(Strategy::OneForOne, Shutdown::Brutal);
    let late = ship.hire(ship::Terms {
        added_later: true,
        ..terms(Restart::Permanent, Backoff::default())
    });
    ship.settle();
    ship.exit(late, panic_exit());
    ship.calm();
    assert!(
        ship.log.contains(&Action::NotStarted {
            token: late,
            exit: panic_exit()
        }),
        "{:?}",
        ship.log
    );
    assert!(ship.is_open());
}

#[test]
fn children_that_all_fail_at_once_come_back_each_on_its_own_timer() {
    let mut ship = Ship::new(Strategy::OneForOne, None);
    let tokens: Vec<_> = (0..500)
        .map(|_| ship.hire(terms(Restart::Permanent, Backoff::default())))
        .collect();
    ship.open();
    ship.calm();
    for &token in &tokens {
        ship.exit(token, panic_exit());
    }
    assert!(
        ship.hands
            .values()
            .all(|hand: &Hand| hand.state == State::Parked)
    );
    ship.calm();
    assert!(ship.hands.values().all(|hand| hand.state == State::Up));
}
