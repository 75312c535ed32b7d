//! The loop of `top`: a thread asks the dashboard, this one draws and listens to keys, so that a dashboard that does not answer holds up neither.

use std::{
    io::{self, IsTerminal as _},
    net::SocketAddr,
    sync::mpsc,
    time::Duration,
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::{
    client::{Client, ClientError},
    draw::draw,
    panel::{Panel, Shown},
    screen::Screen,
};
use crate::view::Overview;

/// Time between two looks at the dashboard.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between two looks at what the asking thread has to tell.
const GLANCE: Duration = Duration::from_millis(100);

/// Shows health, controllers and tree, keys, parked keys or informers of the manager whose dashboard is at `address`, once a second, until `q`, Escape or
/// Ctrl-C, or a signal asks it to end.
///
/// # Errors
///
/// When the dashboard does not answer at first, or the terminal cannot be used. A connection that is lost later is shown, and tried again.
pub fn top(address: SocketAddr) -> Result<(), ClientError> {
    if !io::stdout().is_terminal() {
        let why = "the output is none; `curl` reads the same from the dashboard's API";
        return Err(io::Error::other(why).into());
    }
    let client = Client::new(address);
    let first = client.block_on(client.get("overview"))?;
    let (told, news) = mpsc::channel();
    let (wish, wishes) = watch::channel(Panel::default());
    // it ends with the process, at the latest when nobody listens any more
    std::thread::spawn(move || {
        let asked = client.block_on(ask(&client, wishes, &told));
        if let Err(error) = asked {
            let _ = told.send(News::Lost(error));
        }
    });
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, Screen::new(first), &news, &wish);
    ratatui::restore();
    Ok(ended?)
}

/// What the asking thread tells.
enum News {
    Seen(Box<Overview>, Shown),
    Lost(ClientError),
    /// A signal asks for it.
    End,
}

/// The signals that ask a program in a terminal to end; Ctrl-C is a key there. A terminal that hangs up ends it at once: reading from what is gone may last
/// for ever.
struct Ends {
    #[cfg(unix)]
    signals: [Signal; 2],
}

impl Ends {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        Ok(Self {
            signals: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            ],
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        let [term, interrupt] = &mut self.signals;
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Asks once a second, and at once for what is newly wished to be shown, until nobody listens or a signal comes.
async fn ask(
    client: &Client,
    mut wishes: watch::Receiver<Panel>,
    told: &mpsc::Sender<News>,
) -> Result<(), ClientError> {
    let mut ends = Ends::new()?;
    loop {
        let panel = *wishes.borrow_and_update();
        let looked = async {
            let overview = client.get("overview").await?;
            Ok((overview, panel.ask(client).await?))
        };
        let news = tokio::select! {
            looked = looked => match looked {
                Ok((overview, shown)) => News::Seen(overview, shown),
                Err(error) => News::Lost(error),
            },
            () = ends.next() => News::End,
        };
        let is_end = matches!(news, News::End);
        if told.send(news).is_err() || is_end {
            return Ok(());
        }
        tokio::select! {
            () = client.clock().sleep(PERIOD) => {}
            changed = wishes.changed() => if changed.is_err() {
                return Ok(());
            },
            () = ends.next() => {
                let _ = told.send(News::End);
                return Ok(());
            }
        }
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
    news: &mpsc::Receiver<News>,
    wish: &watch::Sender<Panel>,
) -> io::Result<()> {
    let mut is_old = true;
    loop {
        if is_old {
            terminal.draw(|frame| draw(frame, &mut screen))?;
        }
        is_old = event::poll(GLANCE)?;
        if is_old
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            if ends(key) {
                return Ok(());
            }
            press(&mut screen, key.code);
            wish.send_if_modified(|panel| {
                let before = std::mem::replace(panel, screen.panel);
                before != *panel
            });
        }
        while let Ok(news) = news.try_recv() {
            is_old = true;
            match news {
                News::Seen(overview, shown) => screen.show(*overview, shown),
                News::Lost(error) => screen.lost(error.to_string()),
                News::End => return Ok(()),
            }
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

fn press(screen: &mut Screen, key: KeyCode) {
    match key {
        KeyCode::Down | KeyCode::Char('j') => screen.scroll(1),
        KeyCode::Up | KeyCode::Char('k') => screen.scroll(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => screen.scroll(20),
        KeyCode::PageUp => screen.scroll(-20),
        KeyCode::Home => screen.scroll(i16::MIN),
        KeyCode::End => screen.scroll(i16::MAX),
        KeyCode::Tab | KeyCode::Right => screen.turn(screen.panel.next()),
        KeyCode::BackTab | KeyCode::Left => screen.turn(screen.panel.before()),
        KeyCode::Char(digit) => {
            let number = digit.to_digit(10).and_then(|n| n.checked_sub(1));
            if let Some(panel) = number.and_then(|n| Panel::ALL.get(n as usize)) {
                screen.turn(*panel);
            }
        }
        _ => {}
    }
}
