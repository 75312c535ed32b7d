//! The documentation does not lie: every test it names exists.

#![allow(clippy::expect_used, reason = "a test that cannot read has failed")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The crates the documentation names tests of, and where these are.
const CRATES: [(&str, &str); 11] = [
    ("", ""),
    ("it", "tests"),
    ("supervision", "framework/supervision"),
    ("workqueue", "framework/workqueue"),
    ("cache", "framework/cache"),
    ("boatswain", "framework/controller"),
    ("dashboard", "framework/dashboard"),
    ("apisim", "framework/apisim"),
    ("podautoscaler", "controllers/podautoscaler"),
    ("replica-fixer", "controllers/replica-fixer"),
    ("scaling", "controllers/scaling"),
];

/// A test that a text names: of any crate if it names none, any that begin so if it ends in an ellipsis.
#[derive(Debug, PartialEq)]
struct Named<'a> {
    of: &'a str,
    name: &'a str,
    is_prefix: bool,
}

/// What stands in backticks and can only be the name of a test.
fn named(text: &str) -> Vec<Named<'_>> {
    let spans = text.split('`').skip(1).step_by(2);
    let named = spans.map(|span| {
        let (of, name) = span.split_once(": ").unwrap_or(("", span));
        let is_prefix = name.ends_with('…');
        let name = name.trim_end_matches('…').trim();
        Named {
            of,
            name,
            is_prefix,
        }
    });
    named.filter(Named::is_a_test).collect()
}

impl Named<'_> {
    /// Names of tests are sentences.
    fn is_a_test(&self) -> bool {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let words = self.name.matches('_').count();
        self.name.chars().all(is_word) && (words >= 2 || !self.of.is_empty())
    }

    fn is_function(&self, source: &str) -> bool {
        let mut names = source.split("fn ").skip(1);
        names.any(|rest| match rest.strip_prefix(self.name) {
            Some(rest) => self.is_prefix || rest.starts_with(['(', '<']),
            None => false,
        })
    }

    fn exists(&self, sources: &BTreeMap<&str, Vec<String>>) -> bool {
        let of = sources.get(self.of);
        of.is_some_and(|sources| sources.iter().any(|source| self.is_function(source)))
    }
}

/// The sources of each crate.
fn crates() -> BTreeMap<&'static str, Vec<String>> {
    let root = root();
    let read = |(of, folder): (&'static str, &str)| (of, sources(&root.join(folder)));
    CRATES.map(read).into()
}

fn sources(folder: &Path) -> Vec<String> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() {
            if !hidden && !path.ends_with("target") {
                sources.extend(self::sources(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(fs::read_to_string(&path).expect("text"));
        }
    }
    sources
}

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the workspace").to_owned()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).expect("a page")
}

/// Every test that the page names exists, and it names `least` at least.
fn check(page: &str, least: usize) {
    let named = named(page);
    assert!(named.len() >= least, "only {} names are found", named.len());
    let crates = crates();
    let missing: Vec<_> = named.iter().filter(|test| !test.exists(&crates)).collect();
    assert!(missing.is_empty(), "there are no such tests: {missing:#?}");
}

#[test]
fn every_test_that_the_promises_name_exists() {
    check(&page("semantics.md"), 50);
}

#[test]
fn every_test_that_the_page_of_faults_names_exists() {
    check(&page("faults.md"), 100);
}

#[test]
fn every_fault_names_its_test_or_says_why_there_is_none() {
    let page = page("faults.md");
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| reported in"))
        .collect();
    assert!(rows.len() >= 60, "only {} rows are found", rows.len());
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [reference, fault, here, shown] = cells[..] else {
            panic!("not four cells: {row}");
        };
        assert!(!reference.is_empty() && !fault.is_empty(), "{row}");
        let without = ["by type", "by design"].contains(&shown) || shown.starts_with("not yet: ");
        assert!(without || !named(shown).is_empty(), "no test: {row}");
        assert!(here != "—" || shown.starts_with("not yet: "), "{row}");
    }
}

#[test]
fn a_name_is_told_from_other_code_and_looked_for_where_it_is_said_to_be() {
    let text =
        "`Done` in `run`, `tests/it`: `it: x`, `a_b_c`, `g1_g2_…`, `Retry-After`, `of: a_b_c`";
    let tests = named(text);
    let names: Vec<_> = tests.iter().map(|test| (test.of, test.name)).collect();
    assert_eq!(
        names,
        [("it", "x"), ("", "a_b_c"), ("", "g1_g2_"), ("of", "a_b_c")]
    );
    let found = |source: &str| {
        tests
            .iter()
            .map(|t| t.is_function(source))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("async fn x<T>() {} fn g1_g2_more() {}"),
        [true, false, true, false]
    );
    assert_eq!(
        found("fn a_b_c_and_more() { x() } "),
        [false, false, false, false]
    );
    assert!(!tests[3].exists(&crates()), "no such crate");
}
