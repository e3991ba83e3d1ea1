//! The log: to the standard error, as text or as JSON, at a level that can be changed while we run; that of
//! the playground into a file, since a story is told at the terminal.
//!
//! What is logged is decided by a filter. It comes from `--log`, or else from the configuration, and
//! a signal can change it: the configuration is read again, or everything of ours is shown until the
//! next such signal. The admin server only reads, so it cannot.
//!
//! Missing on purpose: files and rotation. Whoever runs us collects what we write.

use std::fs::File;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use crate::failure::Failure;

/// Everything of ours, and what others warn of.
const DEBUG: &str = "warn,sluice=debug";

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// The log of this process.
pub struct Logs {
    door: reload::Handle<EnvFilter, Registry>,
    now: Mutex<Now>,
}

struct Now {
    usual: String,
    is_debugging: bool,
}

/// Starts a log in a file, without colours; once per process.
pub fn start_in_file(filter: &str, file: File) -> Result<Logs, Failure> {
    let (door_layer, door) = reload::Layer::new(parsed(filter)?);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Mutex::new(file));
    tracing_subscriber::registry().with(door_layer).with(lines).init();
    Ok(Logs { door, now: Mutex::new(Now { usual: filter.to_owned(), is_debugging: false }) })
}

/// Starts the log; once per process.
pub fn start(filter: &str, format: Format) -> Result<Logs, Failure> {
    let (door_layer, door) = reload::Layer::new(parsed(filter)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = match format {
        Format::Text => lines.with_ansi(is_terminal).boxed(),
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    };
    tracing_subscriber::registry().with(door_layer).with(lines).init();
    Ok(Logs { door, now: Mutex::new(Now { usual: filter.to_owned(), is_debugging: false }) })
}

impl Logs {
    /// From now on this is logged. Ends a debugging that a signal began.
    pub fn set(&self, filter: &str) -> Result<(), Failure> {
        let parsed = parsed(filter)?;
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = Now { usual: filter.to_owned(), is_debugging: false };
        self.door.reload(parsed)?;
        Ok(())
    }

    /// Shows everything of ours, or what is usual again; gives the filter that holds now.
    pub fn toggle_debug(&self) -> Result<String, Failure> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if now.is_debugging { now.usual.clone() } else { DEBUG.to_owned() };
        self.door.reload(parsed(&next)?)?;
        now.is_debugging = !now.is_debugging;
        Ok(next)
    }
}

fn parsed(filter: &str) -> Result<EnvFilter, Failure> {
    // The Kubernetes client cries over every request that fails; whoever sent it says it better. What else it
    // warns of (a CA that cannot be read again, a cluster's address that is overridden) is shown.
    let quiet = if filter.contains("kube_client") { "" } else { ",kube_client::client::builder=off" };
    EnvFilter::try_new(format!("{filter}{quiet}")).map_err(|error| Failure {
        code: 2,
        error: anyhow::Error::new(error).context(format!("invalid log filter {filter:?}")),
        hint: Some("use error, warn, info, debug or trace, or MODULE=LEVEL pairs separated by commas".into()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::layer::Context;

    use super::*;

    /// Keeps the targets of what comes through.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Seen {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(event.metadata().target().to_owned());
        }
    }

    fn seen_with(filter: &str) -> Vec<String> {
        let seen = Seen::default();
        let parsed = parsed(filter).map_err(|failure| failure.error).unwrap();
        let subscriber = tracing_subscriber::registry().with(parsed).with(seen.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "kube_client::client::tls", "a CA that cannot be read again");
            tracing::error!(target: "kube_client::client::builder", "a request that failed");
            tracing::info!(target: "kube_client::client", "nothing special");
            tracing::info!(target: "sluice_k8s::watch", "listed");
        });
        let seen = seen.0.lock().unwrap();
        seen.clone()
    }

    #[test]
    fn what_the_kubernetes_client_warns_of_is_shown_but_for_requests_that_we_tell_of_ourselves() {
        for filter in ["warn,sluice=info", DEBUG, "info"] {
            let seen = seen_with(filter);
            assert!(seen.iter().any(|it| it == "kube_client::client::tls"), "{filter}: {seen:?}");
            assert!(!seen.iter().any(|it| it == "kube_client::client::builder"), "{filter}: {seen:?}");
            assert!(seen.iter().any(|it| it == "sluice_k8s::watch"), "{filter}: {seen:?}");
        }
        // Whoever names it gets all of it.
        assert_eq!(seen_with("error,kube_client=error"), ["kube_client::client::builder"]);
    }
}
