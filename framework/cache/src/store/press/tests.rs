use super::{Due, Press};
use crate::sync::lock;

/// What it does while so many objects come in that are like none before, and at how many.
fn done(synced: bool, objects: usize) -> (Vec<usize>, Vec<usize>) {
    let (press, mut quoted, mut trained) = (Press::new(), Vec::new(), Vec::new());
    for objects in 0..objects {
        lock(&press.state).referred += usize::from(objects > 200);
        match press.due(objects, synced) {
            None => continue,
            Some(Due::Quote) => quoted.push(objects),
            Some(Due::Train) => trained.push(objects),
            Some(Due::Repack) => panic!("nothing is packed"),
        }
        press.learn(press.due(objects, synced).unwrap(), objects, &[]);
    }
    (quoted, trained)
}

#[test]
fn dictionaries_are_trained_seldom_and_never_for_ever() {
    let (quoted, trained) = done(false, 100_000);
    assert_eq!(quoted, [200, 800, 3200]);
    assert_eq!(trained, [4_200, 44_200, 84_200]);
    let (quoted, trained) = done(true, 1_000_000);
    assert!(quoted.is_empty() && trained.len() < 25, "{trained:?}");
}

#[test]
fn a_store_that_learned_in_a_hurry_learns_well_once_the_list_is_in() {
    let press = Press::new();
    assert_eq!(press.due(300, false), Some(Due::Quote));
    press.learn(Due::Quote, 300, &[]);
    assert_eq!(press.due(300, false), None);
    assert_eq!(press.due(300, true), Some(Due::Train));
    press.learn(Due::Train, 300, &[]);
    assert_eq!(press.due(300, true), None);
    assert_eq!(press.due(450, true), Some(Due::Train));
}
