//! What `top` shows; pure.

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Paragraph, Row, Table},
};

use super::{
    panel::{self, Panel},
    screen::Screen,
};
use crate::view::{ControllerView, Level, Overview};

/// Troubles that are shown.
const TROUBLES: usize = 4;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let overview = &screen.overview;
    let mut head = vec![first_line(overview, screen.lost.as_deref())];
    let troubles = overview.health.troubles.iter().take(TROUBLES);
    head.extend(troubles.map(|trouble| {
        let lasting = span(overview.at_ms.saturating_sub(trouble.since_ms));
        let text = format!("  for {lasting}: {} — {}", trouble.what, trouble.why);
        Line::styled(text, colour(trouble.level))
    }));
    // where there are many controllers there is room for the rest, too
    let controllers = (overview.controllers.len() as u16).saturating_add(3);
    let area = frame.area();
    let [above, middle, below] = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Length(controllers.min((area.height / 3).max(4))),
        Constraint::Fill(1),
    ])
    .areas(area);
    let lines = panel::lines(screen, below.width);
    let most = (lines.len() as u16).saturating_sub(below.height.saturating_sub(2));
    screen.top = screen.top.min(most);
    frame.render_widget(Paragraph::new(head), above);
    frame.render_widget(table(&screen.overview, middle.width), middle);
    let panel = Paragraph::new(lines)
        .scroll((screen.top, 0))
        .block(Block::bordered().title(title(screen.panel)));
    frame.render_widget(panel, below);
}

/// The names of the panels, the one that is looked at in bold, and how to go on.
fn title(panel: Panel) -> Line<'static> {
    let names = Panel::ALL.iter().zip(1..).map(|(one, number)| {
        let style = match *one == panel {
            true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => Style::new(),
        };
        [
            Span::raw(" "),
            Span::styled(format!("{number} {}", one.name()), style),
        ]
    });
    let mut title: Vec<_> = names.flatten().collect();
    title.push(Span::raw(" · q quits, ↑↓ scroll "));
    Line::from(title)
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

pub(super) fn colour(level: Level) -> Style {
    Style::new().fg(match level {
        Level::Ok => Color::Green,
        Level::Notice => Color::Blue,
        Level::Warning => Color::Yellow,
        Level::Critical => Color::Red,
    })
}

/// A column of the table of controllers.
struct Column {
    head: &'static str,
    width: Constraint,
    /// Columns a terminal has at least for it to be shown.
    from: u16,
    cell: fn(&ControllerView) -> String,
}

const fn column(
    head: &'static str,
    width: u16,
    from: u16,
    cell: fn(&ControllerView) -> String,
) -> Column {
    Column {
        head,
        width: Constraint::Length(width),
        from,
        cell,
    }
}

fn time(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".into(), |ms| span(ms as u64))
}

const COLUMNS: [Column; 11] = [
    Column {
        head: "CONTROLLER",
        width: Constraint::Fill(2),
        from: 0,
        cell: |one| one.name.clone(),
    },
    column("READY", 7, 0, |one| one.queued.sum().to_string()),
    column("OLDEST", 6, 90, |one| span(one.oldest_ms.max())),
    column("RUN", 5, 50, |one| {
        format!("{}/{}", one.running, one.concurrency)
    }),
    column("WAIT", 6, 80, |one| one.waiting.to_string()),
    column("PARKED", 6, 0, |one| one.parked.to_string()),
    column("RUNS/S", 7, 60, |one| format!("{:.1}", one.point.rate)),
    column("ERR/S", 6, 70, |one| format!("{:.1}", one.point.errors)),
    column("P50", 5, 100, |one| time(one.point.p50_ms)),
    column("P99", 5, 90, |one| time(one.point.p99_ms)),
    Column {
        head: "STATE",
        width: Constraint::Fill(1),
        from: 0,
        cell: |one| {
            one.shut
                .as_ref()
                .map_or("works".into(), |shut| shut.why.clone())
        },
    },
];

/// The controllers, in as many columns as a terminal of that width has room for.
fn table(overview: &Overview, width: u16) -> Table<'static> {
    let columns = || COLUMNS.iter().filter(|column| column.from <= width);
    let rows = overview.controllers.iter();
    let rows = rows.map(|one| Row::new(columns().map(|column| (column.cell)(one))));
    let head = Row::new(columns().map(|column| column.head));
    Table::new(rows, columns().map(|column| column.width))
        .header(head.style(Style::new().add_modifier(Modifier::DIM)))
        .block(Block::bordered())
}

/// A span of time in one unit.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}s", ms / 1_000),
        60_000..3_600_000 => format!("{}m", ms / 60_000),
        3_600_000..86_400_000 => format!("{}h", ms / 3_600_000),
        _ => format!("{}d", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests;
