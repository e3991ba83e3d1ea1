//! Listens to everything that is logged, and knows every secret of these tests.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, Once, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What every secret of these tests has inside. Signed assertions are added when they are seen.
pub(crate) const MARK: &str = "s3cr3t";

#[derive(Default)]
struct Heard {
    text: String,
    secrets: Vec<String>,
}

fn heard() -> MutexGuard<'static, Heard> {
    static HEARD: OnceLock<Mutex<Heard>> = OnceLock::new();
    HEARD.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// From now on everything is heard: `tracing` and `log`, every level, every crate.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Ear).expect("nobody else listens");
        log::set_logger(&Ear).expect("nobody else listens");
        log::set_max_level(log::LevelFilter::Trace);
    });
}

/// One secret more to look for.
pub(crate) fn also(secret: &str) {
    let mut heard = heard();
    if !heard.secrets.iter().any(|known| known == secret) {
        heard.secrets.push(secret.to_owned());
    }
}

/// Fails if a secret was heard, and shows where.
pub(crate) fn check() {
    let heard = heard();
    if let Some(line) = leak_in(&heard.text, &heard.secrets) {
        panic!("a secret was logged: {line}");
    }
}

/// The line of the text that has a secret in it.
pub(crate) fn leak_in<'a>(text: &'a str, secrets: &[String]) -> Option<&'a str> {
    let at = secrets.iter().map(String::as_str).chain([MARK]).find_map(|secret| text.find(secret))?;
    let start = text[..at].rfind('\n').map_or(0, |start| start + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    Some(&text[start..end])
}

/// Whether this was heard; for the proof that anything is.
pub(crate) fn was_heard(text: &str) -> bool {
    heard().text.contains(text)
}

struct Ear;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

fn hear(line: &str) {
    let mut heard = heard();
    heard.text.push_str(line);
    heard.text.push('\n');
}

impl Subscriber for Ear {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {}", span.metadata().name()));
        span.record(&mut line);
        hear(&line.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line("record".to_owned());
        values.record(&mut line);
        hear(&line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        hear(&line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl log::Log for Ear {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        hear(&format!("{} {} {}", record.level(), record.target(), record.args()));
    }

    fn flush(&self) {}
}
