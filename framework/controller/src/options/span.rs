//! Durations as people write them.

use std::{fmt, str::FromStr, time::Duration};

use super::text::as_text;

/// A duration as flags and files spell it: `15s`, `1m30s`, `500ms`, `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let complaint =
            || format!("{text:?} is no duration: write one such as 500ms, 15s or 1m30s");
        let parsed: jiff::SignedDuration = text.parse().map_err(|_| complaint())?;
        Duration::try_from(parsed)
            .map(Self)
            .map_err(|_| complaint())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let millis = self.0.subsec_millis();
        for (count, unit) in [
            (hours, "h"),
            (minutes, "m"),
            (rest, "s"),
            (millis.into(), "ms"),
        ] {
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        if self.0 < Duration::from_millis(1) {
            f.write_str("0s")?;
        }
        Ok(())
    }
}

as_text!(Span);
