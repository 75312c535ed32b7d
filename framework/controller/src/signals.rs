//! The signals that ask a process to stop.

use std::{future::Future, io, time::Duration};

use boatswain_supervision::Clock;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Some senders, such as timeout(1), signal a process and its group: the same wish, heard twice.
const ECHO: Duration = Duration::from_millis(500);

/// Waits for the first signal. A second one then ends the process at once: who asks twice does not want to wait.
///
/// # Errors
///
/// When the system refuses the handlers.
pub(crate) fn first() -> io::Result<impl Future<Output = &'static str>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        let first = signals.next().await;
        let clock = Clock::system();
        let again = clock.now() + ECHO;
        tokio::spawn(async move {
            let second = loop {
                let signal = signals.next().await;
                if clock.now() >= again {
                    break signal;
                }
            };
            crate::logging::complain(&format_args!(
                "ended at once by a second signal ({second}); reconciles may have been cut off"
            ));
            std::process::exit(130);
        });
        first
    })
}

/// SIGTERM and SIGINT; Ctrl-C elsewhere.
struct Signals {
    #[cfg(unix)]
    term: Signal,
    #[cfg(unix)]
    int: Signal,
}

impl Signals {
    /// # Errors
    ///
    /// When the system refuses the handlers.
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// The next signal's name.
    #[cfg(unix)]
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
