//! Many operators at once, each with plans of its own.

use std::time::Duration;

use futures::future::{Either, join_all, select};

use super::{HOUR, SECOND};
use crate::scripted::{Begin, Do, World};
use crate::testing::{assert_clean, run};
use crate::{
    AutoShutdown, Backoff, Clock, Entropy, Failure, Intensity, Restart, Strategy, SupervisorSpec,
    Tree,
};

const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// Does one thing to one child; true if there was an answer.
async fn act(tree: &Tree, world: &World, chance: &Entropy, heeds: bool) {
    let one_of = |n: u64| chance.range(0..n);
    let id = IDS[one_of(4) as usize];
    let path = format!("root/{id}");
    match one_of(10) {
        0..=2 => {
            let begins = (0..4).map(|_| match one_of(6) {
                0 => Begin::HoldStart(SECOND * one_of(4) as u32),
                1 => Begin::StopInStarted,
                2 => Begin::PanicInStarted,
                3 => Begin::FailInStarted(Failure::transient("not yet")),
                _ => Begin::Well,
            });
            let restart =
                [Restart::Permanent, Restart::Transient, Restart::Temporary][one_of(3) as usize];
            let child = world.child(id, begins.collect()).restart(restart);
            let child = if heeds && restart != Restart::Permanent && one_of(2) == 0 {
                child.significant()
            } else {
                child
            };
            let _ = tree.add_child("root", child.backoff(Backoff::none())).await;
        }
        3 => drop(tree.stop_child(&path).await),
        4 => drop(tree.terminate_child(&path).await),
        5 | 6 => drop(tree.restart_child(&path).await),
        7 => drop(tree.delete_child(&path).await),
        8 => {
            if let Some(node) = tree.root_node().find(&path) {
                node.kill();
            }
        }
        _ => {
            tree.suspend(&path);
            tree.resume(&path);
            if tree.root_node().find(&path).is_some() {
                let told = [
                    Do::Stop,
                    Do::Panic("chaos"),
                    Do::Refuse,
                    Do::Work(2 * SECOND),
                ];
                world.at(id).tell(told[one_of(4) as usize].clone());
            }
        }
    }
}

async fn within(clock: &Clock, time: Duration, work: impl Future<Output = ()>) -> bool {
    let work = std::pin::pin!(work);
    let late = std::pin::pin!(clock.sleep(time));
    matches!(select(work, late).await, Either::Left(_))
}

#[test]
fn whatever_many_operators_do_at_once_each_gets_an_answer_and_the_tree_stops_clean() {
    for seed in 0..150 {
        run(seed, async |options| {
            let (world, chance) = (World::default(), Entropy::seeded(seed));
            let strategy = [
                Strategy::OneForOne,
                Strategy::OneForAll,
                Strategy::RestForOne,
                Strategy::SimpleOneForOne,
            ][(seed % 4) as usize];
            let heeds = seed % 3 == 0;
            let spec = SupervisorSpec::new("root", strategy);
            let spec = match seed % 5 {
                0 => spec.intensity(Intensity::new(20, HOUR)),
                _ => spec.without_intensity(),
            };
            let spec = match heeds {
                true => spec.auto_shutdown(AutoShutdown::AllSignificant),
                false => spec,
            };
            let tree = Tree::start(spec, options.clone()).await.unwrap();
            let operators = (0..6).map(async |_| {
                for _ in 0..20 {
                    options
                        .clock
                        .sleep(Duration::from_millis(chance.range(0..700)))
                        .await;
                    // some are impatient, which takes nothing back
                    let impatient = chance.range(0..5) == 0;
                    let patience = if impatient { SECOND / 10 } else { HOUR };
                    let answered = act(&tree, &world, &chance, heeds);
                    let answered = within(&options.clock, patience, answered).await;
                    assert!(answered || impatient, "no answer with seed {seed}");
                }
            });
            join_all(operators).await;
            let observer = tree.observer();
            tree.stop(HOUR).await.unwrap();
            assert_clean(&observer);
        });
    }
}
