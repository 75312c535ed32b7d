//! What `top` shows; pure.

use boatswain_supervision::{NodeSnapshot, NodeState};
use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Paragraph, Row, Table},
};

use crate::view::{ControllerView, Level, Overview};

/// Troubles that are shown.
const TROUBLES: usize = 4;

pub(super) struct Screen {
    overview: Overview,
    lost: Option<String>,
    top: u16,
}

impl Screen {
    pub(super) fn new(overview: Overview) -> Self {
        Self {
            overview,
            lost: None,
            top: 0,
        }
    }

    pub(super) fn show(&mut self, overview: Overview) {
        self.overview = overview;
        self.lost = None;
    }

    pub(super) fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    pub(super) fn scroll(&mut self, by: i16) {
        self.top = self.top.saturating_add_signed(by);
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let Screen {
        overview,
        lost,
        top,
    } = screen;
    let troubles = overview.health.troubles.iter().take(TROUBLES);
    let mut head = vec![first_line(overview, lost.as_deref())];
    head.extend(troubles.map(|trouble| {
        let since = overview.at_ms.saturating_sub(trouble.since_ms);
        let text = format!(
            "  {} — {}, since {}",
            trouble.what,
            trouble.why,
            span(since)
        );
        Line::styled(text, colour(trouble.level))
    }));
    let controllers = overview.controllers.len() as u16 + 3;
    let [above, middle, below] = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Length(controllers),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head), above);
    frame.render_widget(table(overview), middle);
    let mut lines = Vec::new();
    if let Some(root) = &overview.tree.root {
        tree(&mut lines, root, 0);
    }
    let most = (lines.len() as u16).saturating_sub(below.height.saturating_sub(2));
    *top = (*top).min(most);
    let title = format!(" tree of {} actors · q quits, ↑↓ scroll ", lines.len());
    let tree = Paragraph::new(lines)
        .scroll((*top, 0))
        .block(Block::bordered().title(title));
    frame.render_widget(tree, below);
}

fn first_line(overview: &Overview, lost: Option<&str>) -> Line<'static> {
    if let Some(why) = lost {
        return Line::styled(format!("✕ {why}"), colour(Level::Critical));
    }
    let health = &overview.health;
    let sign = match health.level {
        Level::Ok => "✓",
        Level::Notice => "i",
        Level::Warning => "!",
        Level::Critical => "✕",
    };
    let name = Span::raw(format!(
        "  {}@{}",
        overview.process.name, overview.process.host
    ));
    let words = format!("{sign} {}", health.line);
    let style = colour(health.level).add_modifier(Modifier::BOLD);
    Line::from(vec![Span::styled(words, style), name])
}

fn colour(level: Level) -> Style {
    Style::new().fg(match level {
        Level::Ok => Color::Green,
        Level::Notice => Color::Blue,
        Level::Warning => Color::Yellow,
        Level::Critical => Color::Red,
    })
}

fn table(overview: &Overview) -> Table<'_> {
    let head = [
        "CONTROLLER",
        "READY",
        "OLDEST",
        "RUN",
        "WAIT",
        "PARKED",
        "RUNS/S",
        "ERR/S",
        "P50",
        "P99",
        "STATE",
    ];
    let row = |one: &ControllerView| {
        let point = &one.point;
        let time = |ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| span(ms as u64));
        let state = one.shut.as_ref().map_or("works", |shut| &shut.why);
        Row::new([
            one.name.clone(),
            one.queued.sum().to_string(),
            span(one.oldest_ms.max()),
            format!("{}/{}", one.running, one.concurrency),
            one.waiting.to_string(),
            one.parked.to_string(),
            format!("{:.1}", point.rate),
            format!("{:.1}", point.errors),
            time(point.p50_ms),
            time(point.p99_ms),
            state.to_owned(),
        ])
    };
    let mut widths = vec![Constraint::Min(14)];
    widths.extend([8, 8, 7, 7, 7, 7, 6, 7, 7].map(Constraint::Length));
    widths.push(Constraint::Min(10));
    Table::new(overview.controllers.iter().map(row), widths)
        .header(Row::new(head).style(Style::new().add_modifier(Modifier::DIM)))
        .block(Block::bordered())
}

fn tree(lines: &mut Vec<Line<'static>>, node: &NodeSnapshot, depth: usize) {
    let (state, level) = match node.state {
        NodeState::Running if node.degraded.is_some() => ("degraded".to_owned(), Level::Warning),
        NodeState::Running => ("running".to_owned(), Level::Ok),
        NodeState::Backoff { until_ms } => (format!("back in {}", span(until_ms)), Level::Warning),
        NodeState::Starting => ("starting".to_owned(), Level::Notice),
        NodeState::Suspended => ("suspended".to_owned(), Level::Notice),
        NodeState::Stopping => ("stopping".to_owned(), Level::Notice),
        NodeState::Stopped => ("stopped".to_owned(), Level::Notice),
        NodeState::Blocked => ("blocked".to_owned(), Level::Critical),
        NodeState::Failed => ("failed".to_owned(), Level::Critical),
    };
    let name = format!("{:width$}{}", "", node.id, width = depth * 2);
    let mut spans = vec![
        Span::raw(format!("{name:<44} ")),
        Span::styled(format!("{state:<16}"), colour(level)),
    ];
    if node.restarts > 0 {
        spans.push(Span::raw(format!(" ↻{}", node.restarts)));
    }
    if let Some(exit) = node.last_exit.as_ref().filter(|exit| !exit.is_orderly()) {
        spans.push(Span::raw(format!(" {}", exit.root_cause().1)));
    }
    lines.push(Line::from(spans));
    for child in &node.children {
        tree(lines, child, depth + 1);
    }
}

/// A span of time in one unit.
fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}s", ms / 1_000),
        60_000..3_600_000 => format!("{}m", ms / 60_000),
        3_600_000..86_400_000 => format!("{}h", ms / 3_600_000),
        _ => format!("{}d", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::TreeSnapshot;
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;

    use super::*;
    use crate::view::{Health, Trouble};

    #[test]
    fn the_screen_says_what_is_stuck_why_and_since_when() {
        let node = |path: &str, state| {
            json!({
                "path": path, "id": path.rsplit('/').next(), "kind": { "type": "actor" }, "state": state, "thread": "main",
                "incarnation": 2, "restarts": 3, "streak": 3, "significant": false, "last_exit": { "exit": "panic", "message": "boom",
                "location": null }, "uptime_ms": 5, "inbox": 0, "inbox_high_water": 0, "handled": 0, "facts": {}, "degraded": null, "children": [],
            })
        };
        let mut root = node("root", json!({ "state": "running" }));
        let failing = json!({ "state": "backoff", "until_ms": 4200 });
        root["children"] = json!([node("root/events", failing)]);
        let tree = json!({ "root": root, "left_behind": [], "tasks": 2 });
        let tree: TreeSnapshot = serde_json::from_value(tree).expect("a tree");
        let overview = Overview {
            at_ms: 200_000,
            health: Health {
                level: Level::Warning,
                line: "root/events failed 3 times in a row".into(),
                troubles: vec![Trouble {
                    level: Level::Warning,
                    id: "node".into(),
                    what: "root/events is stuck".into(),
                    why: "panicked: boom".into(),
                    since_ms: 20_000,
                    path: None,
                }],
            },
            process: Default::default(),
            actions: false,
            tree,
            events: Vec::new(),
            controllers: vec![ControllerView {
                name: "scaler".into(),
                parked: 7,
                ..ControllerView::default()
            }],
            informers: Vec::new(),
            leases: Vec::new(),
        };
        let mut screen = Screen::new(overview);
        let mut terminal = Terminal::new(TestBackend::new(110, 16)).expect("a screen");
        screen.scroll(1000);
        terminal
            .draw(|frame| draw(frame, &mut screen))
            .expect("drawn");
        let shown = terminal.backend().to_string();
        for words in [
            "! root/events failed 3 times in a row",
            "root/events is stuck — panicked: boom, since 3m",
            "scaler",
            "back in 4s",
            "↻3 panicked: boom",
        ] {
            assert!(shown.contains(words), "{words}\n{shown}");
        }
        screen.lost("nobody answers".into());
        terminal
            .draw(|frame| draw(frame, &mut screen))
            .expect("drawn");
        assert!(terminal.backend().to_string().contains("✕ nobody answers"));
    }
}
