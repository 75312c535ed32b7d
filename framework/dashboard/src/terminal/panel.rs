//! What `top` shows below the controllers: the tree, keys, parked keys, or informers.

use boatswain_supervision::{NodeSnapshot, NodeState};
use ratatui::text::{Line, Span};

use super::{
    client::{Client, ClientError},
    draw::{colour, span},
    screen::Screen,
};
use crate::view::{InformerView, KeyRow, Keys, Level, Overview, Parked, ParkedRow};

/// Which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panel {
    #[default]
    Tree,
    /// Those that are not idle.
    Keys,
    Parked,
    Informers,
}

/// What was asked for beside the overview.
pub(super) enum Shown {
    /// Nothing.
    Overview,
    Keys(Keys),
    Parked(Parked),
}

impl Panel {
    pub(super) const ALL: [Self; 4] = [Self::Tree, Self::Keys, Self::Parked, Self::Informers];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Keys => "keys",
            Self::Parked => "parked",
            Self::Informers => "informers",
        }
    }

    pub(super) fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    pub(super) fn before(self) -> Self {
        Self::ALL[(self as usize + Self::ALL.len() - 1) % Self::ALL.len()]
    }

    /// Asks for what it shows beside the overview.
    pub(super) async fn ask(self, client: &Client) -> Result<Shown, ClientError> {
        Ok(match self {
            Self::Tree | Self::Informers => Shown::Overview,
            Self::Keys => Shown::Keys(client.get("keys?limit=200").await?),
            Self::Parked => Shown::Parked(client.get("parked?limit=200").await?),
        })
    }
}

/// Columns of a name and of a state at most.
const NAME: u16 = 44;
const STATE: usize = 16;

/// The lines of the panel that is looked at, in a terminal of so many columns.
pub(super) fn lines(screen: &Screen, width: u16) -> Vec<Line<'static>> {
    let overview = &screen.overview;
    let mut lines = Lines {
        name: usize::from((width / 2).min(NAME)),
        lines: Vec::new(),
    };
    match (screen.panel, &screen.shown) {
        (Panel::Tree, _) => {
            if let Some(root) = &overview.tree.root {
                tree(&mut lines, root, 0);
            }
        }
        (Panel::Informers, _) => informers(&mut lines, overview),
        (Panel::Keys, Shown::Keys(keys)) => {
            for key in &keys.keys {
                busy(&mut lines, key, overview.at_ms);
            }
            if keys.keys.is_empty() {
                lines.say("all are idle, until something changes");
            }
            if keys.more {
                lines.say("there are more");
            }
        }
        (Panel::Parked, Shown::Parked(found)) => {
            for key in &found.parked {
                parked(&mut lines, key, overview.at_ms);
            }
            match found.total.saturating_sub(found.parked.len()) {
                0 if found.total == 0 => lines.say("nothing is parked"),
                0 => {}
                more => lines.say(format!("{more} more")),
            }
        }
        (Panel::Keys | Panel::Parked, _) => lines.say("asking …"),
    }
    lines.lines
}

struct Lines {
    /// Columns of a name.
    name: usize,
    lines: Vec<Line<'static>>,
}

impl Lines {
    fn say(&mut self, words: impl Into<String>) {
        self.lines.push(Line::raw(words.into()));
    }

    /// A name, what it does, how bad that is, and whatever else fits on the line. A name that is too long loses its beginning, which others have, too.
    fn row(&mut self, name: &str, state: &str, level: Level, more: &str) {
        let width = self.name;
        let long = name.chars().count();
        let name = match long > width {
            true => {
                let end = name.chars().skip(long - width + 1);
                std::iter::once('…').chain(end).collect()
            }
            false => name.to_owned(),
        };
        self.lines.push(Line::from(vec![
            Span::raw(format!("{name:<width$} ")),
            Span::styled(format!("{state:<STATE$}"), colour(level)),
            Span::raw(format!(" {more}")),
        ]));
    }
}

fn tree(lines: &mut Lines, node: &NodeSnapshot, depth: usize) {
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
    let mut more = Vec::new();
    if node.restarts > 0 {
        more.push(format!("↻{}", node.restarts));
    }
    more.extend(node.degraded.clone());
    if let Some(exit) = node.last_exit.as_ref().filter(|exit| !exit.is_orderly()) {
        more.extend(node.last_exit_ms.map(|ms| format!("{} ago", span(ms))));
        more.push(exit.root_cause().1.to_string());
    }
    let name = format!("{:width$}{}", "", node.id, width = depth * 2);
    lines.row(&name, &state, level, &more.join(" "));
    for child in &node.children {
        tree(lines, child, depth + 1);
    }
}

/// How bad it is that a key does that.
fn level(key: &KeyRow) -> Level {
    match key.state.as_str() {
        "parked" => Level::Critical,
        "waiting" | "held" | "undecodable" => Level::Warning,
        "queued" => Level::Notice,
        _ => Level::Ok,
    }
}

fn busy(lines: &mut Lines, key: &KeyRow, now_ms: u64) {
    let due = match (key.next_ms, key.since_ms) {
        (Some(next), _) if next > now_ms => format!("next in {}", span(next - now_ms)),
        (_, Some(since)) => format!("for {}", span(now_ms.saturating_sub(since))),
        _ => String::new(),
    };
    let failed = match key.failures {
        0 => String::new(),
        n => format!("failed {n}×"),
    };
    let why = key.why.clone().unwrap_or_default();
    let more = [key.controller.clone(), due, failed, why];
    let more: Vec<_> = more.into_iter().filter(|part| !part.is_empty()).collect();
    lines.row(&key.key, &key.state, level(key), &more.join(" · "));
}

fn parked(lines: &mut Lines, key: &ParkedRow, now_ms: u64) {
    let lasting = span(now_ms.saturating_sub(key.since_ms));
    let more = format!("failed {}× · {}", key.failures, key.reason);
    let state = format!("for {lasting}");
    let name = format!("{} {}", key.controller, key.key);
    lines.row(&name, &state, Level::Critical, &more);
}

fn informers(lines: &mut Lines, overview: &Overview) {
    for one in &overview.informers {
        let (state, level) = match (&one.degraded, one.synced, one.fresh) {
            (Some(_), ..) => ("degraded", Level::Warning),
            (None, false, _) => (one.state.as_str(), Level::Warning),
            (None, true, false) => ("behind", Level::Warning),
            (None, true, true) => (one.state.as_str(), Level::Ok),
        };
        lines.row(&one.name, state, level, &informer(one));
    }
    for lease in &overview.leases {
        let (state, level) = match (&lease.error, lease.leads) {
            (Some(_), _) => ("in trouble", Level::Warning),
            (None, true) => ("leads", Level::Ok),
            (None, false) => ("stands by", Level::Notice),
        };
        let holder = lease.holder.as_deref().unwrap_or("nobody");
        let mut more = format!(
            "held by {holder}, changed hands {} times",
            lease.transitions
        );
        if let Some(error) = &lease.error {
            more = format!("{error}; {more}");
        }
        let of = lease.controller.as_ref().unwrap_or(&lease.identity);
        let name = format!("lease of {of}");
        lines.row(&name, state, level, &more);
    }
}

fn informer(one: &InformerView) -> String {
    let relists = one.relists.iter();
    let relists: Vec<_> = relists.map(|(why, n)| format!("{why} {n}")).collect();
    let event = one.last_event_ms.map_or("never".into(), span);
    let mut told = Vec::from_iter(one.degraded.clone());
    told.push(format!("{} objects, {} kB", one.objects, one.bytes / 1000));
    told.push(format!("last event {event}"));
    told.push(format!("lists: {}", relists.join(", ")));
    told.join(" · ")
}
