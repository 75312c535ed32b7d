use std::time::Duration;

use proptest::prelude::*;

use super::Entropy;

#[test]
fn the_generator_is_splitmix64() {
    // the first outputs for seed 0, as published with the reference implementation
    let entropy = Entropy::seeded(0);
    let first = [entropy.next(), entropy.next(), entropy.next()];
    assert_eq!(
        first,
        [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f
        ]
    );
}

#[test]
fn clones_draw_from_one_stream() {
    let (one, other) = (Entropy::seeded(7), Entropy::seeded(7));
    let clone = one.clone();
    let drawn = [one.next(), clone.next(), one.next()];
    assert_eq!(drawn, [other.next(), other.next(), other.next()]);
    assert_eq!(clone.seed(), 7);
}

#[test]
fn two_sources_from_the_system_differ() {
    assert_ne!(Entropy::from_os().next(), Entropy::from_os().next());
}

proptest! {
    #[test]
    fn numbers_stay_in_their_range(seed: u64, start in 0..u64::MAX, width in 0..u64::MAX) {
        let end = start.saturating_add(width);
        let drawn = Entropy::seeded(seed).range(start..end);
        prop_assert!(drawn >= start && (drawn < end || end == start));
    }

    #[test]
    fn jitter_moves_by_no_more_than_its_ratio(seed: u64, millis in 0..1_000_000_000u64, ratio in 0.0..1.0f64) {
        let base = Duration::from_millis(millis);
        let moved = Entropy::seeded(seed).jitter(base, ratio).as_secs_f64();
        let (low, high) = (base.as_secs_f64() * (1.0 - ratio), base.as_secs_f64() * (1.0 + ratio));
        prop_assert!(moved >= low - 1e-6 && moved <= high + 1e-6, "{moved} not in {low}..{high}");
    }
}

#[test]
fn jitter_reaches_both_ends() {
    let entropy = Entropy::seeded(3);
    let draws: Vec<_> = (0..1000)
        .map(|_| entropy.jitter(Duration::from_secs(1), 0.2))
        .collect();
    assert!(draws.iter().min().unwrap() < &Duration::from_millis(810));
    assert!(draws.iter().max().unwrap() > &Duration::from_millis(1190));
}
