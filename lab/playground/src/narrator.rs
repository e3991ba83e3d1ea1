//! Prints a story: its steps, the commands of each step, and the results with their time.
//!
//! ```text
//! 2. Expose Deployment shop. Its pods exist before the load balancer, so Sluice buffers their addresses.
//!   $ kubectl expose deployment shop --port=80 --type=LoadBalancer
//!   ✓ 0:12  Service shop: public IP 20.0.0.4 after 8 s
//! ```
//!
//! A terminal gets colors, and a bar while something is counted. Other outputs get plain lines, and one line for
//! each quarter of what is counted. Times are emulated.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sluice_commands::paint::Paint;

use super::pace::{Pace, moment};

/// Columns of a line.
const WIDTH: usize = 92;
/// Indentation of the further lines of a result.
const INDENT: &str = "           ";
/// Indentation of the further lines of a step, and of a command's output.
const STEP_INDENT: &str = "   ";
/// Interval between two frames of a spinner.
const SPIN: Duration = Duration::from_millis(120);

/// Prints a story.
pub(super) struct Narrator {
    out: Mutex<Box<dyn Write + Send>>,
    paint: Paint,
    has_bars: bool,
    pace: Pace,
    progress: Mutex<Progress>,
}

/// How far the story is.
#[derive(Default)]
struct Progress {
    /// When it began, in the time of [`Pace`].
    began: Duration,
    /// The number of the current step.
    step: u32,
}

impl Narrator {
    /// Prints to the standard output.
    pub(super) fn aloud(pace: Pace) -> Narrator {
        let has_bars = io::stdout().is_terminal();
        Narrator::new(Box::new(io::stdout()), Paint::for_stdout(), has_bars, pace)
    }

    /// Prints nothing, for JSON output.
    pub(super) fn silent(pace: Pace) -> Narrator {
        Narrator::new(Box::new(io::sink()), Paint::NONE, false, pace)
    }

    /// Prints to any writer.
    pub(super) fn new(out: Box<dyn Write + Send>, paint: Paint, has_bars: bool, pace: Pace) -> Narrator {
        Narrator { out: Mutex::new(out), paint, has_bars, pace, progress: Mutex::default() }
    }

    /// The name and title of a story, and how to read its times; its time begins.
    pub(super) fn title(&self, name: &str, about: &str) {
        *lock(&self.progress) = Progress { began: self.pace.now(), step: 0 };
        let title = self.paint.bold(&format!("{name}: {about}"));
        self.write(&format!("\n{title}\n{}\n", self.pace.label()));
    }

    /// The next step: the action, and why it matters.
    pub(super) fn step(&self, words: &str) {
        let number = {
            let mut progress = lock(&self.progress);
            progress.step += 1;
            progress.step
        };
        let lines: Vec<String> = folded(&format!("{number}. {words}"), WIDTH - STEP_INDENT.len()).collect();
        self.write(&format!("\n{}\n", lines.join(&format!("\n{STEP_INDENT}"))));
    }

    /// A command that the reader can type in the playground.
    pub(super) fn command(&self, line: &str) {
        self.write(&format!("  {} {}\n", self.paint.faint("$"), self.paint.bold(line)));
    }

    /// A part of the output of the last command. Each item is a paragraph.
    pub(super) fn output(&self, paragraphs: &[String]) {
        for paragraph in paragraphs {
            for line in folded(paragraph, WIDTH - STEP_INDENT.len() - 1) {
                self.write(&format!("{STEP_INDENT} {line}\n"));
            }
        }
    }

    /// A result, with the time.
    pub(super) fn answer(&self, words: &str) {
        self.mark(&self.paint.good("✓"), words);
    }

    /// A result to watch out for, with the time.
    pub(super) fn warn(&self, words: &str) {
        self.mark(&self.paint.busy("!"), words);
    }

    /// A simulated fault, with the time. It is not a command of the reader.
    pub(super) fn injected(&self, words: &str) {
        self.warn(&format!("(injected) {words}"));
    }

    /// The verdict on a story that ended well, and what to do next.
    pub(super) fn passed(&self, words: &str, next: &str) {
        self.write(&format!("\n{} {words}\nNext: {next}\n", self.paint.good("PASS:")));
    }

    /// The verdict on a story that ended badly. The first line is the reason, the others are details.
    pub(super) fn failed(&self, words: &str) {
        self.write(&format!("\n{} {words}\n", self.paint.bad("FAIL:")));
    }

    /// The time since the story began.
    pub(super) fn elapsed(&self) -> Duration {
        self.pace.now().saturating_sub(lock(&self.progress).began)
    }

    /// Progress of something that is counted, up to `of`.
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

    /// Shows on a terminal what the story waits for, until it is dropped.
    pub(super) fn waiting(&self, what: &str) -> Waiting {
        Waiting(self.has_bars.then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            spinner.set_style(
                ProgressStyle::with_template("    {spinner} {msg}").expect("the template is a simple one"),
            );
            spinner.set_message(format!("waiting until {what}"));
            spinner.enable_steady_tick(SPIN);
            spinner
        }))
    }

    fn mark(&self, mark: &str, words: &str) {
        let at = moment(self.elapsed());
        // Colors have no width, so the alignment is computed without them.
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
        // A closed output must not end the story.
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Progress of something that is counted.
pub(super) struct Bar<'a> {
    narrator: &'a Narrator,
    what: String,
    of: usize,
    /// The number of quarters that have their line.
    told: usize,
    drawn: Option<ProgressBar>,
}

impl Bar<'_> {
    /// Sets the current count.
    pub(super) fn at(&mut self, done: usize) {
        if let Some(bar) = &self.drawn {
            bar.set_position(done as u64);
            return;
        }
        let quarter = (done.min(self.of) * 4).checked_div(self.of).unwrap_or_default();
        // The result of the step follows the last quarter.
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

/// A spinner, shown until this is dropped.
pub(super) struct Waiting(Option<ProgressBar>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(spinner) = self.0.take() {
            spinner.finish_and_clear();
        }
    }
}

/// `1 pod`, `3 pods`, `2 addresses`.
pub(super) fn count(number: u64, what: &str) -> String {
    let plural = match number {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {what}{plural}", grouped(number))
}

/// `1,646`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|it| std::str::from_utf8(it).ok()).collect();
    groups.join(",")
}

/// A space at which no line is broken, printed as a plain one.
pub(super) const NO_BREAK: char = '\u{a0}';

/// Breaks a text at spaces into lines of at most `width` columns.
fn folded(words: &str, width: usize) -> impl Iterator<Item = String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ').filter(|word| !word.is_empty()) {
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
    lines.into_iter().map(|line| line.replace(NO_BREAK, " "))
}

/// Keeps the output, for tests.
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
    fn a_story_has_numbered_steps_and_plain_lines_without_a_terminal() {
        let notebook = Notebook::default();
        let narrator = notebook.narrator(Pace::begin(10.0));
        narrator.title("tour", "create a Service");
        narrator.step("Create Deployment shop. Its pods serve the Service.");
        narrator.command("kubectl get svc");
        narrator.output(&["NAME   TYPE".to_owned()]);
        narrator.answer("Service shop: public IP 20.0.0.4");
        narrator.step("Break Azure.");
        narrator.injected("every call is answered with 503");
        let mut bar = narrator.bar("Services have a public IP", 8);
        for done in 0..=8 {
            bar.at(done);
        }
        drop(bar);
        narrator.passed("Kubernetes and Azure match", "run `sluice playground`");
        narrator.failed("1 difference\n  load balancer shop is missing");
        expect_test::expect![[r"

            tour: create a Service
            Times are emulated; 10 s = 1 s real.

            1. Create Deployment shop. Its pods serve the Service.
              $ kubectl get svc
                NAME TYPE
              ✓  0:00  Service shop: public IP 20.0.0.4

            2. Break Azure.
              !  0:00  (injected) every call is answered with 503
              …  0:00  2 of 8 Services have a public IP
              …  0:00  4 of 8 Services have a public IP
              …  0:00  6 of 8 Services have a public IP

            PASS: Kubernetes and Azure match
            Next: run `sluice playground`

            FAIL: 1 difference
              load balancer shop is missing
        "]]
        .assert_eq(&notebook.text());
    }

    #[test]
    fn counts_agree_in_number() {
        assert_eq!(count(1, "address"), "1 address");
        assert_eq!(count(0, "address"), "0 addresses");
        assert_eq!(count(2, "public IP"), "2 public IPs");
        assert_eq!(count(1_234_567, "call"), "1,234,567 calls");
    }

    #[test]
    fn a_long_step_is_folded_under_its_text() {
        let notebook = Notebook::default();
        notebook.narrator(Pace::begin(1.0)).step(&"word ".repeat(30));
        let text = notebook.text();
        let lines: Vec<&str> = text.trim().lines().collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("1. word") && lines[1].starts_with("   word"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
    }

    #[test]
    fn long_sentences_are_folded_and_nothing_of_them_is_lost() {
        let words = "one two three four five six seven eight nine ten eleven twelve";
        let lines: Vec<String> = folded(words, 20).collect();
        assert!(lines.iter().all(|line| line.len() <= 20), "{lines:?}");
        assert_eq!(lines.join(" "), words);
        assert_eq!(folded("a-word-that-is-longer-than-the-line", 5).count(), 1);
        let lines: Vec<String> = folded("after 1\u{a0}min 10\u{a0}s", 8).collect();
        assert_eq!(lines, ["after", "1 min", "10 s"]);
    }

    #[test]
    fn colors_do_not_move_what_is_aligned() {
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
