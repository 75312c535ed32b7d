//! Durations as people write them.

use std::{fmt, str::FromStr, time::Duration};

use super::text::as_text;

/// A duration as flags and files spell it: `15s`, `1m30s`, `500ms`, `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Nobody waits longer, and clocks have an end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let complaint =
            || format!("{text:?} is no duration: write one such as 500ms, 15s or 1m30s");
        let parsed: jiff::SignedDuration = text.parse().map_err(|_| complaint())?;
        match Duration::try_from(parsed) {
            Ok(time) if time > LONGEST => Err(format!("{text:?} is longer than a year (8760h)")),
            Ok(time) => Ok(Self(time)),
            Err(_) => Err(complaint()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let nanos = u64::from(self.0.subsec_nanos());
        let (millis, micros, nanos) = (nanos / 1_000_000, nanos / 1000 % 1000, nanos % 1000);
        for (count, unit) in [
            (hours, "h"),
            (minutes, "m"),
            (rest, "s"),
            (millis, "ms"),
            (micros, "us"),
            (nanos, "ns"),
        ] {
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        if self.0.is_zero() {
            f.write_str("0s")?;
        }
        Ok(())
    }
}

as_text!(Span);
