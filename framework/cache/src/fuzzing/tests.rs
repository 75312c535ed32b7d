//! Each harness on seeded documents: `BOATSWAIN_SEED=<seed>` plays others, and a failure names the seed and the document.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::generate::{self, Random};

/// Documents per harness.
const CASES: u64 = 25_000;

fn play(harness: fn(&[u8]), make: impl Fn(&mut Random) -> Vec<u8>) {
    let seed = std::env::var("BOATSWAIN_SEED")
        .ok()
        .map_or(1, |seed| seed.parse().expect("BOATSWAIN_SEED is a number"));
    for case in 0..CASES {
        let mut random = Random::new(seed ^ (case << 20));
        let document = make(&mut random);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| harness(&document))) {
            eprintln!(
                "BOATSWAIN_SEED={seed}, case {case}: {:?}",
                String::from_utf8_lossy(&document)
            );
            resume_unwind(panic);
        }
    }
}

fn with_choices(random: &mut Random, document: String) -> Vec<u8> {
    let mut data = generate::choices(random);
    data.extend(generate::mutate(random, document));
    data
}

#[test]
fn any_list_is_split_like_serde_json_reads_it_wherever_it_is_cut() {
    play(super::list, |random| {
        let document = generate::list(random);
        with_choices(random, document)
    });
}

#[test]
fn any_object_behind_another_one_is_the_one_it_is_alone() {
    play(super::twins, |random| {
        let first = generate::object(random);
        let second = generate::alike(random, &first);
        let length = u16::try_from(first.len()).expect("a short object");
        [&length.to_le_bytes()[..], first.as_bytes(), &second].concat()
    });
}

#[test]
fn any_watch_body_is_split_into_its_lines_wherever_it_is_cut() {
    play(super::lines, |random| {
        let lines: Vec<_> = (0..random.below(4))
            .map(|_| generate::line(random))
            .collect();
        let document = lines.join(random.pick(&["\n", "\r\n", "\n\n"]));
        with_choices(random, document)
    });
}

#[test]
fn any_object_is_identified_kept_and_read_like_serde_json_does() {
    play(super::envelope, |random| {
        let document = generate::object(random);
        generate::mutate(random, document)
    });
}

#[test]
fn any_line_of_a_watch_is_understood_or_said_not_to_be() {
    play(super::event, |random| {
        let document = generate::line(random);
        generate::mutate(random, document)
    });
}

#[test]
fn any_path_finds_in_any_document_what_is_there() {
    play(super::path, |random| {
        let path = random.pick(&[
            "metadata.name",
            "spec.a[*].b",
            "[*]",
            "a..b",
            "\\",
            "metadata.labels.app\\.io/x",
            "spec",
            "é[",
            "[*][*].a",
        ]);
        let mut data = vec![u8::try_from(path.len()).expect("a short path")];
        data.extend(path.as_bytes());
        let document = generate::object(random);
        data.extend(generate::mutate(random, document));
        data
    });
}

#[test]
fn the_documents_are_good_and_bad_in_fair_shares() {
    let mut random = Random::new(7);
    let mut good = [0; 2];
    for _ in 0..1000 {
        let object = generate::object(&mut random);
        good[0] += usize::from(crate::envelope::open(object.as_bytes()).is_ok());
        let list = generate::list(&mut random);
        let mut splitter = crate::framing::ListSplitter::new(1 << 20);
        let pushed = splitter.push(list.as_bytes(), &mut |_| {});
        good[1] += usize::from(pushed.is_ok() && splitter.finish().is_ok());
    }
    assert!(
        good.iter().all(|good| (200..900).contains(good)),
        "{good:?}"
    );
}
