//! What the system and its operators tell a process by signals.

use crate::Failure;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// SIGTERM or Ctrl-C: end in an orderly way; the second time, at once.
    End,
    /// SIGHUP: read the log level from the configuration again.
    Reload,
    /// SIGUSR1: log everything of ours, or what is usual again.
    ToggleDebug,
}

/// Listens from the moment it is made, so that a signal during a long start is not lost.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
    #[cfg(unix)]
    user: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn listen() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::End,
            _ = self.hang_up.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::ToggleDebug,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        // Without a handler nobody could ever stop us, so an error counts as a signal.
        let _ = tokio::signal::ctrl_c().await;
        Signal::End
    }
}
