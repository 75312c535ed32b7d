//! The loop of `top`.

use std::{net::SocketAddr, time::Duration};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::{
    client::{Client, ClientError},
    draw::{Screen, draw},
};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows health, controllers and tree of the manager whose dashboard is at `address`, once a second, until `q`, Escape or Ctrl-C.
///
/// # Errors
///
/// When the dashboard does not answer at first, or the terminal cannot be used. A connection that is lost later is shown, and tried again.
pub fn top(address: SocketAddr) -> Result<(), ClientError> {
    let client = Client::new(address);
    client.block_on(async {
        let mut screen = Screen::new(client.get("overview").await?);
        let mut terminal = ratatui::try_init()?;
        let ended = async {
            loop {
                terminal.draw(|frame| draw(frame, &mut screen))?;
                // nothing else runs on this thread
                if event::poll(PERIOD)? {
                    match event::read()? {
                        Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                                return Ok(());
                            }
                            KeyCode::Down | KeyCode::Char('j') => screen.scroll(1),
                            KeyCode::Up | KeyCode::Char('k') => screen.scroll(-1),
                            KeyCode::PageDown => screen.scroll(20),
                            KeyCode::PageUp => screen.scroll(-20),
                            _ => {}
                        },
                        _ => {}
                    }
                    continue;
                }
                match client.get("overview").await {
                    Ok(overview) => screen.show(overview),
                    Err(error) => screen.lost(error.to_string()),
                }
            }
        }
        .await;
        ratatui::restore();
        ended
    })
}
