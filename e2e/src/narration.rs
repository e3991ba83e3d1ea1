//! What happens in a story, line by line, with the time since it began.

use std::sync::Mutex;
use std::time::Instant;

/// The lines so far; shown at once when somebody watches, else only when the story fails.
#[derive(Debug)]
pub(crate) struct Narration {
    began: Instant,
    shown: bool,
    lines: Mutex<Vec<String>>,
}

impl Narration {
    /// Begins now.
    pub(crate) fn new(shown: bool) -> Narration {
        Narration { began: Instant::now(), shown, lines: Mutex::default() }
    }

    /// Tells one thing.
    pub(crate) fn tell(&self, what: impl Into<String>) {
        let line = format!("{:>7.2} s  {}", self.began.elapsed().as_secs_f64(), what.into());
        if self.shown {
            println!("{line}");
        }
        self.lines.lock().expect("nobody panics with the lines in hand").push(line);
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.lines.lock().expect("nobody panics with the lines in hand").join("\n")
    }

    /// Whether it was shown as it happened.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }
}
