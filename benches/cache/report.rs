//! Tables, CSV and a drawing.

use std::fmt::Write as _;

use crate::options::Who;
use crate::run::{Measure, Values};

/// A Markdown table of medians with the ratios of the others to ours.
pub(crate) fn table(objects: u64, medians: &[(Who, Values)]) -> String {
    let mut text = format!("\n## {} pods\n\n|", thousands(objects as f64));
    let ours = medians.iter().find(|(who, _)| *who == Who::Boatswain);
    for (who, _) in medians {
        let _ = write!(text, " | {}", who.name());
    }
    let rivals = medians
        .iter()
        .filter(|(who, _)| !who.is_ours() && ours.is_some());
    for (who, _) in rivals.clone() {
        let _ = write!(text, " | better than {}", who.name());
    }
    text.push_str(" |\n|---");
    text.push_str(&"|---".repeat(medians.len() + rivals.clone().count()));
    text.push_str("|\n");
    for measure in Measure::ALL {
        if medians
            .iter()
            .all(|(_, values)| !values.contains_key(&measure))
        {
            continue;
        }
        let _ = write!(text, "| {}", measure.title());
        for (_, values) in medians {
            let shown = values
                .get(&measure)
                .map_or_else(String::new, |value| number(*value));
            let _ = write!(text, " | {shown}");
        }
        for (_, values) in rivals.clone() {
            let ratio = ours
                .and_then(|(_, ours)| ratio(measure, *ours.get(&measure)?, *values.get(&measure)?));
            let _ = write!(text, " | {}", ratio.unwrap_or_default());
        }
        text.push_str(" |\n");
    }
    text
}

/// By how much ours is better; below 1 it is worse.
fn ratio(measure: Measure, ours: f64, theirs: f64) -> Option<String> {
    if matches!(measure, Measure::EventCalls | Measure::RelistCalls) || ours <= 0.0 || theirs <= 0.0
    {
        return None;
    }
    let ratio = if measure.more_is_better() {
        ours / theirs
    } else {
        theirs / ours
    };
    let loses = if ratio < 1.0 { " (worse)" } else { "" };
    Some(format!("{}×{loses}", number(ratio)))
}

/// Three digits that matter, or whole numbers with separators.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The first line of a CSV.
pub(crate) fn csv_head() -> String {
    let columns: Vec<_> = Measure::ALL.into_iter().map(Measure::column).collect();
    format!("contestant,objects,run,{}\n", columns.join(","))
}

/// One run as a line of a CSV.
pub(crate) fn csv_line(who: Who, objects: u64, run: usize, values: &Values) -> String {
    let cells: Vec<_> = Measure::ALL
        .into_iter()
        .map(|measure| {
            values
                .get(&measure)
                .map_or_else(String::new, f64::to_string)
        })
        .collect();
    format!("{},{objects},{run},{}\n", who.name(), cells.join(","))
}

/// A table of how our cost grows, with bars of what each pod costs.
pub(crate) fn growth(steps: &[(u64, Values)]) -> String {
    let mut text = "\n## Growth\n\n| pods | time to synced, s | CPU, µs/pod | peak, B/pod | steady, B/pod | steady, MB | CPU per pod |\n|---|---|---|---|---|---|---|\n".to_owned();
    let of = |values: &Values, measure| values.get(&measure).copied().unwrap_or(0.0);
    let most = steps
        .iter()
        .map(|(_, values)| of(values, Measure::SyncedCpu))
        .fold(0.0, f64::max);
    for (objects, values) in steps {
        let cpu = of(values, Measure::SyncedCpu);
        let steady = of(values, Measure::Steady);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            thousands(*objects as f64),
            number(of(values, Measure::Synced)),
            number(cpu),
            number(of(values, Measure::Peak)),
            number(steady),
            number(steady * *objects as f64 / 1e6),
            "█".repeat((cpu / most.max(1e-9) * 20.0).round() as usize)
        );
    }
    text
}

/// Seconds and megabytes over the number of pods, both axes logarithmic: what grows in proportion is a line of slope one.
pub(crate) fn svg(steps: &[(u64, Values)]) -> String {
    const SIDE: f64 = 420.0;
    const EDGE: f64 = 60.0;
    let series = [
        ("time to synced, s", "#1f6feb", Measure::Synced, 1.0, false),
        ("CPU, s", "#8250df", Measure::SyncedCpu, 1e-6, true),
        ("steady memory, MB", "#1a7f37", Measure::Steady, 1e-6, true),
    ];
    let points: Vec<_> = series
        .iter()
        .map(|(name, colour, measure, unit, each)| {
            let points: Vec<_> = steps
                .iter()
                .filter_map(|(objects, values)| {
                    let scale = if *each { *objects as f64 } else { 1.0 };
                    let value = values.get(measure)? * unit * scale;
                    (value > 0.0).then(|| ((*objects as f64).log10(), value.log10()))
                })
                .collect();
            (*name, *colour, points)
        })
        .collect();
    let all = || {
        points
            .iter()
            .flat_map(|(_, _, points)| points.iter().copied())
    };
    let least = |pick: fn((f64, f64)) -> f64| all().map(pick).fold(f64::MAX, f64::min).floor();
    let most = |pick: fn((f64, f64)) -> f64| all().map(pick).fold(f64::MIN, f64::max).ceil();
    let (left, right) = (least(|point| point.0), most(|point| point.0));
    let (low, high) = (least(|point| point.1), most(|point| point.1));
    let x = |value: f64| EDGE + (value - left) / (right - left).max(1.0) * SIDE;
    let y = |value: f64| EDGE + SIDE - (value - low) / (high - low).max(1.0) * SIDE;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        size = SIDE + 2.0 * EDGE
    );
    for decade in left as i32..=right as i32 {
        let at = x(f64::from(decade));
        let _ = writeln!(
            text,
            "<path d=\"M{at} {EDGE}V{}\" stroke=\"#ddd\"/><text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{} pods</text>",
            EDGE + SIDE,
            EDGE + SIDE + 18.0,
            thousands(10f64.powi(decade))
        );
    }
    for decade in low as i32..=high as i32 {
        let at = y(f64::from(decade));
        let _ = writeln!(
            text,
            "<path d=\"M{EDGE} {at}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            EDGE + SIDE,
            EDGE - 6.0,
            at + 4.0,
            number(10f64.powi(decade))
        );
    }
    for (line, (name, colour, points)) in points.iter().enumerate() {
        let path: Vec<_> = points
            .iter()
            .map(|(across, up)| format!("{:.1},{:.1}", x(*across), y(*up)))
            .collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            EDGE + 12.0,
            EDGE + 18.0 * (line + 1) as f64
        );
    }
    text.push_str("</svg>\n");
    text
}
