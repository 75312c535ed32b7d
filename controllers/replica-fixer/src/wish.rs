//! What the annotation of a Deployment says; pure.

use scaling::REPLICAS;

/// The annotation that says how many replicas a Deployment is to ask for.
pub const ANNOTATION: &str = "example.io/expected-replicas";

/// How much of a malformed value is repeated: it may be as long as the whole object.
const QUOTED: usize = 40;

/// What an annotation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Replicas(i32),
    /// Nothing that can be done, and why.
    Malformed(String),
}

impl Wish {
    pub(crate) fn of(value: &str) -> Self {
        // digits alone: what a person would not call a number is none
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match value.parse() {
            Ok(replicas) if digits && REPLICAS.contains(&replicas) => Self::Replicas(replicas),
            _ => {
                let mut quoted: String = value.chars().take(QUOTED).collect();
                if quoted.len() < value.len() {
                    quoted.push('…');
                }
                let (least, most) = (REPLICAS.start(), REPLICAS.end());
                Self::Malformed(format!(
                    "annotation {ANNOTATION} is {quoted:?}, not a number from {least} to {most}: the replicas are left alone"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_the_range_are_a_wish() {
        for (value, replicas) in [("0", 0), ("3", 3), ("007", 7), ("10000", 10_000)] {
            assert_eq!(Wish::of(value), Wish::Replicas(replicas));
        }
    }

    #[test]
    fn anything_else_is_malformed_and_quoted_in_part() {
        let long = "9".repeat(200_000);
        for value in [
            "",
            " ",
            "3 ",
            "+3",
            "-1",
            "three",
            "3.0",
            "0x3",
            "10001",
            "٣",
            "4294967299",
            &long,
        ] {
            let Wish::Malformed(why) = Wish::of(value) else {
                panic!("{value:?} is taken for a number");
            };
            assert!(why.len() < 300, "{why}");
            assert!(why.contains("0 to 10000"), "{why}");
        }
    }
}
