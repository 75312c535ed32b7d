use super::*;

/// Where permits end up, by shard.
#[derive(Clone, Default)]
struct Hands(Arc<Mutex<Vec<(usize, Permit)>>>);

impl Hands {
    fn of(&self, shard: usize) -> Hand {
        let hands = self.clone();
        Arc::new(move |permit| hands.0.lock().expect("lock").push((shard, permit)))
    }

    fn drain(&self) -> Vec<(usize, Permit)> {
        std::mem::take(&mut self.0.lock().expect("lock"))
    }
}

fn shards(handed: &[(usize, Permit)]) -> Vec<usize> {
    handed.iter().map(|(shard, _)| *shard).collect()
}

#[test]
fn a_permit_that_is_given_back_is_handed_to_whoever_waited_longest() {
    let permits = Permits::new(1);
    let hands = Hands::default();
    let held = permits.take(0, &hands.of(0)).expect("the first is free");
    assert!(permits.take(1, &hands.of(1)).is_none());
    assert!(permits.take(2, &hands.of(2)).is_none());
    drop(held);
    let handed = hands.drain();
    assert_eq!(shards(&handed), [1]);
    assert!(
        permits.take(0, &hands.of(0)).is_none(),
        "who has just given it back waits behind the others"
    );
    drop(handed);
    let handed = hands.drain();
    assert_eq!(shards(&handed), [2]);
    drop(handed);
    assert_eq!(shards(&hands.drain()), [0]);
}

#[test]
fn a_shard_that_asks_again_waits_once_and_keeps_its_place() {
    let permits = Permits::new(1);
    let hands = Hands::default();
    let held = permits.take(0, &hands.of(0));
    for shard in [1, 2, 1] {
        assert!(permits.take(shard, &hands.of(shard)).is_none());
    }
    drop(held);
    let first = hands.drain();
    assert_eq!(shards(&first), [1]);
    drop(first);
    let second = hands.drain();
    assert_eq!(shards(&second), [2]);
    drop(second);
    assert!(permits.take(0, &hands.of(0)).is_some(), "nobody waits");
}

#[test]
fn a_permit_handed_to_a_shard_that_is_gone_goes_on_to_the_next() {
    let permits = Permits::new(1);
    let hands = Hands::default();
    let held = permits.take(0, &hands.of(0));
    let gone: Hand = Arc::new(drop);
    assert!(permits.take(1, &gone).is_none());
    assert!(permits.take(2, &hands.of(2)).is_none());
    drop(held);
    assert_eq!(shards(&hands.drain()), [2]);
    assert!(permits.take(0, &hands.of(0)).is_some(), "none was lost");
}
