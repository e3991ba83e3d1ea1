//! What the system and its operators tell a process by signals; in the playground, what the process tells
//! its controller.

use tokio::sync::mpsc;

use crate::failure::Failure;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM or Ctrl-C: end in an orderly way; the second time, at once.
    End,
    /// SIGHUP: read the log level from the configuration again.
    Reload,
    /// SIGUSR1: log everything of ours, or what is usual again.
    ToggleDebug,
}

/// Listens from the moment it is made, so that a signal during a long start is not lost.
pub struct Signals(Source);

enum Source {
    /// The system's.
    System(System),
    /// Those of whoever started us within a process of its own.
    Told(mpsc::Receiver<Signal>),
}

impl Signals {
    /// Those that the system sends to this process.
    pub fn listen() -> Result<Signals, Failure> {
        Ok(Signals(Source::System(System::listen()?)))
    }

    /// None but those that come by the sender.
    pub fn told() -> (mpsc::Sender<Signal>, Signals) {
        let (teller, told) = mpsc::channel(2);
        (teller, Signals(Source::Told(told)))
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        match &mut self.0 {
            Source::System(system) => system.next().await,
            Source::Told(told) => match told.recv().await {
                Some(signal) => signal,
                // Nobody is left to ask for anything.
                None => std::future::pending().await,
            },
        }
    }
}

#[cfg(unix)]
struct System {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    user: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl System {
    fn listen() -> Result<System, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(System {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::End,
            _ = self.hang_up.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::ToggleDebug,
        }
    }
}

#[cfg(not(unix))]
struct System;

#[cfg(not(unix))]
impl System {
    fn listen() -> Result<System, Failure> {
        Ok(System)
    }

    async fn next(&mut self) -> Signal {
        // Without a handler nobody could ever stop us, so an error counts as a signal.
        let _ = tokio::signal::ctrl_c().await;
        Signal::End
    }
}
