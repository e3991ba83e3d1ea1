//! Tells a story: what people do, what Sluice answers, and when.
//!
//! ```text
//! Ann has a shop, and wants the world to see it.
//!   $ kubectl expose deployment shop --port=80 --type=LoadBalancer
//!   ✓ 0:12  shop has the address 20.0.0.4
//! ```
//!
//! On a terminal there are colours, and a bar while something is counted; elsewhere plain lines, and of what
//! is counted a line for every quarter. The times are those of the emulated Azure.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sluice_commands::paint::Paint;

use super::pace::{Pace, moment};

/// Columns of a line.
const WIDTH: usize = 92;
/// What stands before the further lines of an answer.
const INDENT: &str = "           ";
/// How often a spinner moves.
const SPIN: Duration = Duration::from_millis(120);

/// Who tells.
pub(super) struct Narrator {
    out: Mutex<Box<dyn Write + Send>>,
    paint: Paint,
    has_bars: bool,
    pace: Pace,
    /// When the story began, in the time of [`Pace`].
    began: Mutex<Duration>,
}

impl Narrator {
    /// To the standard output.
    pub(super) fn aloud(pace: Pace) -> Narrator {
        let has_bars = io::stdout().is_terminal();
        Narrator::new(Box::new(io::stdout()), Paint::for_stdout(), has_bars, pace)
    }

    /// Keeps to itself, for a start line that machines read.
    pub(super) fn silent(pace: Pace) -> Narrator {
        Narrator::new(Box::new(io::sink()), Paint::NONE, false, pace)
    }

    /// To somewhere else.
    pub(super) fn new(out: Box<dyn Write + Send>, paint: Paint, has_bars: bool, pace: Pace) -> Narrator {
        Narrator { out: Mutex::new(out), paint, has_bars, pace, began: Mutex::default() }
    }

    /// The name of a story and what it is about; its time begins.
    pub(super) fn title(&self, name: &str, about: &str) {
        *lock(&self.began) = self.pace.now();
        self.write(&format!("\n{}\n", self.paint.bold(&format!("{name}: {about}"))));
    }

    /// What happens, and why.
    pub(super) fn tell(&self, words: &str) {
        let lines: Vec<String> = folded(words, WIDTH).collect();
        self.write(&format!("\n{}\n", lines.join("\n")));
    }

    /// What somebody types.
    pub(super) fn command(&self, line: &str) {
        self.write(&format!("  {} {}\n", self.paint.faint("$"), self.paint.bold(line)));
    }

    /// What came of it, with the time.
    pub(super) fn answer(&self, words: &str) {
        self.mark(&self.paint.good("✓"), words);
    }

    /// What is in the way, with the time.
    pub(super) fn warn(&self, words: &str) {
        self.mark(&self.paint.busy("!"), words);
    }

    /// What went wrong, with the time.
    pub(super) fn wrong(&self, words: &str) {
        self.mark(&self.paint.bad("✗"), words);
    }

    /// The time since the story began.
    pub(super) fn elapsed(&self) -> Duration {
        self.pace.now().saturating_sub(*lock(&self.began))
    }

    /// Something that is counted, up to so many.
    pub(super) fn bar(&self, what: &str, of: usize) -> Bar<'_> {
        let drawn = self.has_bars.then(|| {
            let bar = ProgressBar::with_draw_target(Some(of as u64), ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("    {bar:30} {pos}/{len} {msg}");
            bar.set_style(style.expect("the template has no field that does not exist"));
            bar.set_message(what.to_owned());
            bar
        });
        Bar { narrator: self, what: what.to_owned(), of, told: 0, drawn }
    }

    /// Shows on a terminal what is waited for, until it is dropped.
    pub(super) fn waiting(&self, what: &str) -> Waiting {
        Waiting(self.has_bars.then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            spinner.set_style(
                ProgressStyle::with_template("    {spinner} {msg}").expect("the template is a simple one"),
            );
            spinner.set_message(format!("until {what}"));
            spinner.enable_steady_tick(SPIN);
            spinner
        }))
    }

    fn mark(&self, mark: &str, words: &str) {
        let at = moment(self.elapsed());
        // Colours have no width, so what is aligned is counted without them.
        let space = " ".repeat(5_usize.saturating_sub(at.len()));
        let at = self.paint.faint(&at);
        let mut lines = folded(words, WIDTH - INDENT.len());
        let mut text = format!("  {mark} {space}{at}  {}\n", lines.next().unwrap_or_default());
        for line in lines {
            text.push_str(&format!("{INDENT}{line}\n"));
        }
        self.write(&text);
    }

    fn write(&self, text: &str) {
        let mut out = lock(&self.out);
        // Whoever has stopped reading misses nothing.
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is counted.
pub(super) struct Bar<'a> {
    narrator: &'a Narrator,
    what: String,
    of: usize,
    /// Quarters that a line was written for.
    told: usize,
    drawn: Option<ProgressBar>,
}

impl Bar<'_> {
    /// So many are there now.
    pub(super) fn at(&mut self, done: usize) {
        if let Some(bar) = &self.drawn {
            bar.set_position(done as u64);
            return;
        }
        let quarter = (done.min(self.of) * 4).checked_div(self.of).unwrap_or_default();
        // The last quarter is the answer, which says it better.
        if quarter > self.told && quarter < 4 {
            self.told = quarter;
            let words = format!("{done} of {} {}", self.of, self.what);
            self.narrator.mark("…", &words);
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if let Some(bar) = self.drawn.take() {
            bar.finish_and_clear();
        }
    }
}

/// What is waited for, shown as long as this lives.
pub(super) struct Waiting(Option<ProgressBar>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(spinner) = self.0.take() {
            spinner.finish_and_clear();
        }
    }
}

/// `1 pod`, `3 pods`.
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Words in lines of so many columns at most, where there is a space to break at.
fn folded(words: &str, width: usize) -> impl Iterator<Item = String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.into_iter()
}

/// Keeps what was told, for tests.
#[cfg(test)]
#[derive(Clone, Default)]
pub(super) struct Notebook(std::sync::Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl Notebook {
    /// A narrator that writes into it, without colours and bars.
    pub(super) fn narrator(&self, pace: Pace) -> Narrator {
        Narrator::new(Box::new(self.clone()), Paint::NONE, false, pace)
    }

    /// All of it.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.0)).into_owned()
    }
}

#[cfg(test)]
impl Write for Notebook {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_told_in_plain_lines_where_nobody_looks() {
        let notebook = Notebook::default();
        let narrator = notebook.narrator(Pace::begin(1.0));
        narrator.title("tour", "from nothing to an address");
        narrator.tell("Ann has a shop.");
        narrator.command("kubectl get svc");
        narrator.answer("shop has an address");
        let mut bar = narrator.bar("services have an address", 8);
        for done in 0..=8 {
            bar.at(done);
        }
        drop(bar);
        narrator.wrong("it is gone");
        expect_test::expect![[r"

            tour: from nothing to an address

            Ann has a shop.
              $ kubectl get svc
              ✓  0:00  shop has an address
              …  0:00  2 of 8 services have an address
              …  0:00  4 of 8 services have an address
              …  0:00  6 of 8 services have an address
              ✗  0:00  it is gone
        "]]
        .assert_eq(&notebook.text());
    }

    #[test]
    fn long_sentences_are_folded_and_nothing_of_them_is_lost() {
        let words = "one two three four five six seven eight nine ten eleven twelve";
        let lines: Vec<String> = folded(words, 20).collect();
        assert!(lines.iter().all(|line| line.len() <= 20), "{lines:?}");
        assert_eq!(lines.join(" "), words);
        assert_eq!(folded("a-word-that-is-longer-than-the-line", 5).count(), 1);
    }

    #[test]
    fn colours_do_not_move_what_is_aligned() {
        let notebook = Notebook::default();
        Narrator::new(Box::new(notebook.clone()), Paint::ALWAYS, false, Pace::begin(1.0)).answer("done");
        let mut plain = String::new();
        let text = notebook.text();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            plain.push_str(before);
            rest = after.split_once('m').map_or("", |it| it.1);
        }
        plain.push_str(rest);
        assert_eq!(plain, "  ✓  0:00  done\n");
    }
}
