//! The signals that ask a process to stop.

use std::{future::Future, io};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for the first signal. A second one then ends the process at once: who asks twice does not want to wait.
///
/// # Errors
///
/// When the system refuses the handlers.
pub(crate) fn first() -> io::Result<impl Future<Output = &'static str>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        let first = signals.next().await;
        tokio::spawn(async move {
            let second = signals.next().await;
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
