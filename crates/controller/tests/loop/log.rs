//! Hears everything that is logged on this thread, which under paused time is everything.
//!
//! There is one ear for the whole process, since `tracing` keeps for each place that logs whether
//! anybody listens, and asks only one thread about it.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

thread_local! {
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What is logged on this thread.
pub(crate) struct Log;

impl Log {
    /// Listens from now on, at every level.
    pub(crate) fn listen() -> Log {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Ear).expect("nobody else listens"));
        HEARD.set(Some(String::new()));
        Log
    }

    /// Whether this was logged.
    pub(crate) fn has(&self, text: &str) -> bool {
        HEARD.with_borrow(|heard| heard.as_ref().is_some_and(|heard| heard.contains(text)))
    }

    /// Everything that was.
    pub(crate) fn text(&self) -> String {
        HEARD.with_borrow(|heard| heard.clone().unwrap_or_default())
    }
}

struct Ear;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Ear {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        HEARD.with_borrow_mut(|heard| {
            let Some(heard) = heard else { return };
            let mut line = Line(event.metadata().level().to_string());
            event.record(&mut line);
            heard.push_str(&line.0);
            heard.push('\n');
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
