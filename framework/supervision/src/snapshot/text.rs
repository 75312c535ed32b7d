//! A tree as text, for terminals and logs.

use std::fmt;

use super::{NodeSnapshot, NodeSort, NodeState, TreeSnapshot};
use crate::spec::Strategy;

/// A line per node, indented as it stands in the tree, in columns: state, restarts, messages waiting and handled, thread, and how its last
/// incarnation ended or why it is degraded, as far as that fits on the line. What was left behind follows by path.
impl fmt::Display for TreeSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![
            [
                "ACTOR",
                "STATE",
                "RESTARTS",
                "INBOX",
                "HANDLED",
                "THREAD",
                "LAST EXIT",
            ]
            .map(str::to_owned),
        ];
        if let Some(root) = &self.root {
            below(root, "", "", &mut rows);
        }
        for left in &self.left_behind {
            rows.push(row(format!("left behind: {}", left.path), left));
        }
        write(f, &rows)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeState::Starting => "starting",
            NodeState::Running => "running",
            NodeState::Backoff { until_ms } => return write!(f, "back in {until_ms} ms"),
            NodeState::Suspended => "suspended",
            NodeState::Blocked => "blocked",
            NodeState::Stopping => "stopping",
            NodeState::Stopped => "stopped",
            NodeState::Failed => "failed",
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::OneForOne => "one for one",
            Strategy::OneForAll => "one for all",
            Strategy::RestForOne => "rest for one",
            Strategy::SimpleOneForOne => "simple one for one",
        })
    }
}

type Row = [String; 7];

/// The columns that hold numbers.
const NUMBERS: std::ops::RangeInclusive<usize> = 2..=4;
/// Longer ends of incarnations are cut.
const LAST_EXIT: usize = 80;

fn below(node: &NodeSnapshot, branch: &str, indent: &str, rows: &mut Vec<Row>) {
    let name = match node.kind {
        NodeSort::Actor => format!("{branch}{}", node.id),
        NodeSort::Supervisor { strategy, .. } => format!("{branch}{} ({strategy})", node.id),
    };
    rows.push(row(name, node));
    let mut children = node.children.iter().peekable();
    while let Some(child) = children.next() {
        let (fork, rail) = match children.peek() {
            Some(_) => ("├─ ", "│  "),
            None => ("└─ ", "   "),
        };
        let (branch, indent) = (format!("{indent}{fork}"), format!("{indent}{rail}"));
        below(child, &branch, &indent, rows);
    }
}

fn row(name: String, node: &NodeSnapshot) -> Row {
    let last = match (&node.degraded, &node.last_exit) {
        (Some(why), _) => format!("degraded: {why}"),
        (None, Some(exit)) => exit.to_string(),
        (None, None) => String::new(),
    };
    [
        name,
        node.state.to_string(),
        node.restarts.to_string(),
        node.inbox.to_string(),
        node.handled.to_string(),
        node.thread.clone(),
        one_line(&last),
    ]
}

/// Messages of panics have lines of their own.
fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.len() == text.len() && line.chars().count() <= LAST_EXIT {
        return line.to_owned();
    }
    line.chars().take(LAST_EXIT).chain(['…']).collect()
}

fn write(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or_default());
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            line += &if NUMBERS.contains(&column) {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:<width$}  ")
            };
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
