//! Runs jobs side by side, each as a process with a log of its own.
//!
//! A job says how much of the machine it needs: see [`Load`]. It starts when the jobs that it builds on have
//! passed and there is room for it. One line is printed when it ends, and its whole log if it failed. A job
//! that exceeds its time limit is ended together with its children.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::guard;

/// How many jobs that use one core run at once.
const SINGLE_MAX: usize = 2;

/// How many waiting jobs run at once.
const WAITING_MAX: usize = 3;

/// The exit code of a job that could not install its part.
pub(crate) const MISSING: u8 = 3;

/// How often the jobs that still run are named.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How much of the machine a job needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    /// Compiles or computes on all cores, at low priority. One at a time.
    Busy,
    /// Computes on one core, at the lowest priority. A few at a time, also beside a busy job.
    Single,
    /// Downloads or builds in the background, at the lowest priority, beside everything else.
    Background,
    /// Mostly waits for processes, browsers and timers. Several at a time, also beside a busy job.
    Waits,
    /// Measures. Nothing else runs meanwhile.
    Alone,
}

/// What is to be run.
pub(crate) struct Job {
    /// Unique.
    pub(crate) name: String,
    pub(crate) command: Command,
    pub(crate) load: Load,
    /// The time limit.
    pub(crate) limit: Duration,
    /// Names of jobs that must have passed. A job that builds on one that did not is not run.
    pub(crate) after: Vec<String>,
    /// It installs a part: it is not counted, and its line is printed only if it fails or takes longer than 2 s.
    pub(crate) prepares: bool,
    /// The result of the jobs that depend on this one if it fails; of itself too, if it ends with [`MISSING`].
    pub(crate) without: End,
}

/// How a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Passed,
    Failed,
    /// A part that it needs is missing.
    Skipped,
}

impl End {
    const fn label(self) -> &'static str {
        match self {
            End::Passed => "passed",
            End::Failed => "FAILED",
            End::Skipped => "SKIPPED",
        }
    }
}

/// The result of one job.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) end: End,
    pub(crate) took: Duration,
    /// The CPU time, if the job has written it.
    cpu: Option<Duration>,
    counts: bool,
}

enum State {
    Pending,
    Running { started: Instant, mark: String, is_over_limit: bool, _input: Option<std::process::ChildStdin> },
    Done(End),
}

/// Runs all jobs and prints what becomes of them. Logs go to `folder`.
pub(crate) fn run_all(jobs: Vec<Job>, folder: &Path, out: &mut dyn Write) -> io::Result<Vec<Ended>> {
    fs::create_dir_all(folder)?;
    let mut runner = Runner {
        states: jobs.iter().map(|_| State::Pending).collect(),
        jobs,
        folder: folder.to_path_buf(),
        began: Instant::now(),
        ended: Vec::new(),
        out,
    };
    runner.run()?;
    Ok(runner.ended)
}

struct Runner<'a> {
    jobs: Vec<Job>,
    states: Vec<State>,
    folder: PathBuf,
    began: Instant,
    ended: Vec<Ended>,
    out: &'a mut dyn Write,
}

impl Runner<'_> {
    fn run(&mut self) -> io::Result<()> {
        let (sender, events) = mpsc::channel();
        let mut heartbeat = Instant::now() + HEARTBEAT;
        loop {
            while let Some(at) = self.next() {
                self.start(at, &sender)?;
            }
            if !self.states.iter().any(|state| matches!(state, State::Running { .. })) {
                return self.fail_pending();
            }
            let wake = self.next_limit().map_or(heartbeat, |limit| limit.min(heartbeat));
            match events.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok((at, code)) => self.finish(at, code)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.end_those_over_limit();
                    if Instant::now() >= heartbeat {
                        heartbeat = Instant::now() + HEARTBEAT;
                        self.name_running()?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Nothing runs and nothing can start: what is left waits for a job that does not exist, or for itself.
    fn fail_pending(&mut self) -> io::Result<()> {
        for at in 0..self.jobs.len() {
            if matches!(self.states[at], State::Pending) {
                writeln!(
                    self.out,
                    "{} cannot start: it waits for {:?}",
                    self.jobs[at].name, self.jobs[at].after
                )?;
                self.settle(at, End::Failed, Duration::ZERO, None);
            }
        }
        Ok(())
    }

    /// The next job to start; also ends the jobs whose dependency has failed.
    fn next(&mut self) -> Option<usize> {
        for at in 0..self.jobs.len() {
            if matches!(self.states[at], State::Pending)
                && let Some((name, end)) = self.missing_basis(at)
            {
                let _ = writeln!(self.out, "{} needs {name:?}, which has not passed", self.jobs[at].name);
                self.settle(at, end, Duration::ZERO, None);
            }
        }
        let is_ready = |at: &usize| {
            matches!(self.states[*at], State::Pending)
                && self.jobs[*at].after.iter().all(|name| self.end_of(name) == Some(End::Passed))
        };
        let ready: Vec<usize> = (0..self.jobs.len()).filter(is_ready).collect();
        ready.into_iter().find(|at| self.has_room(self.jobs[*at].load))
    }

    /// A job that this one builds on and that has not passed, and what becomes of this one.
    fn missing_basis(&self, at: usize) -> Option<(String, End)> {
        self.jobs[at].after.iter().find_map(|name| {
            let basis = self.jobs.iter().position(|job| job.name == *name)?;
            match self.states[basis] {
                State::Done(End::Failed | End::Skipped) => Some((name.clone(), self.jobs[basis].without)),
                _ => None,
            }
        })
    }

    fn end_of(&self, name: &str) -> Option<End> {
        let at = self.jobs.iter().position(|job| job.name == name)?;
        match self.states[at] {
            State::Done(end) => Some(end),
            _ => None,
        }
    }

    fn has_room(&self, load: Load) -> bool {
        let running = |wanted: Load| {
            let states = self.states.iter().zip(&self.jobs);
            states.filter(|(state, job)| matches!(state, State::Running { .. }) && job.load == wanted).count()
        };
        let all: usize =
            [Load::Busy, Load::Single, Load::Background, Load::Waits, Load::Alone].map(running).iter().sum();
        let others_pending = || {
            let mut states = self.states.iter().zip(&self.jobs);
            states.any(|(state, job)| matches!(state, State::Pending) && job.load != Load::Alone)
        };
        running(Load::Alone) == 0
            && match load {
                Load::Busy => running(load) == 0,
                Load::Single => running(load) < SINGLE_MAX,
                Load::Background => true,
                Load::Waits => running(Load::Waits) < WAITING_MAX,
                Load::Alone => all == 0 && !others_pending(),
            }
    }

    fn start(&mut self, at: usize, sender: &mpsc::Sender<(usize, Option<i32>)>) -> io::Result<()> {
        let mark = format!("{}-{at}-{}", std::process::id(), self.began.elapsed().as_nanos());
        let log = File::create(self.log_of(at))?;
        let job = &mut self.jobs[at];
        job.command
            .env(guard::MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        // Ctrl-C must reach only the runner; a stage ends when its standard input closes.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut job.command, 0);
        match job.command.spawn() {
            Ok(mut child) => {
                let input = child.stdin.take();
                let started = Instant::now();
                self.states[at] = State::Running { started, mark, is_over_limit: false, _input: input };
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let code = child.wait().ok().and_then(|status| status.code());
                    // The runner may have given up already.
                    let _ = sender.send((at, code));
                });
                Ok(())
            }
            Err(error) => {
                writeln!(&log, "cannot start: {error}")?;
                self.states[at] =
                    State::Running { started: Instant::now(), mark, is_over_limit: false, _input: None };
                self.finish(at, None)
            }
        }
    }

    /// Records how a job ended and prints its line.
    fn finish(&mut self, at: usize, code: Option<i32>) -> io::Result<()> {
        let State::Running { started, mark, is_over_limit, .. } = &self.states[at] else { return Ok(()) };
        let (took, is_over_limit) = (started.elapsed(), *is_over_limit);
        // Processes that it left running would disturb other jobs.
        guard::end_all(mark, std::process::id());
        let end = match &self.jobs[at] {
            _ if code == Some(0) && !is_over_limit => End::Passed,
            job if job.prepares && code == Some(i32::from(MISSING)) => job.without,
            _ => End::Failed,
        };
        let log = self.log_of(at);
        let text = fs::read(&log).unwrap_or_default();
        if end != End::Passed {
            writeln!(self.out, "\n---- log of {:?}", self.jobs[at].name)?;
            self.out.write_all(&text)?;
            if is_over_limit {
                let limit = self.jobs[at].limit.as_secs();
                writeln!(self.out, "\nended because it exceeded its time limit of {limit} s")?;
            }
            writeln!(self.out, "---- end of the log of {:?} ({})\n", self.jobs[at].name, log.display())?;
        }
        self.settle(at, end, took, read_cpu_time(&text));
        Ok(())
    }

    fn settle(&mut self, at: usize, end: End, took: Duration, cpu: Option<Duration>) {
        let job = &self.jobs[at];
        self.states[at] = State::Done(end);
        let is_news = !job.prepares || end != End::Passed || took > Duration::from_secs(2);
        if is_news {
            let line = line(end, took, cpu, &job.name);
            let _ = writeln!(self.out, "{:>7} {line}", clock(self.began.elapsed()));
        }
        self.ended.push(Ended { name: job.name.clone(), end, took, cpu, counts: !job.prepares });
    }

    fn next_limit(&self) -> Option<Instant> {
        let running = self.states.iter().zip(&self.jobs).filter_map(|(state, job)| match state {
            State::Running { started, is_over_limit: false, .. } => Some(*started + job.limit),
            _ => None,
        });
        running.min()
    }

    fn end_those_over_limit(&mut self) {
        for (state, job) in self.states.iter_mut().zip(&self.jobs) {
            if let State::Running { started, mark, is_over_limit, .. } = state
                && !*is_over_limit
                && started.elapsed() >= job.limit
            {
                *is_over_limit = true;
                guard::end_all(mark, std::process::id());
            }
        }
    }

    fn name_running(&mut self) -> io::Result<()> {
        let running: Vec<String> = self
            .states
            .iter()
            .zip(&self.jobs)
            .filter_map(|(state, job)| match state {
                State::Running { started, .. } => {
                    Some(format!("{} ({} s)", job.name, started.elapsed().as_secs()))
                }
                _ => None,
            })
            .collect();
        writeln!(self.out, "{:>7} running: {}", clock(self.began.elapsed()), running.join(", "))
    }

    fn log_of(&self, at: usize) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = self.jobs[at].name.chars().map(plain).collect();
        self.folder.join(format!("{name}.log"))
    }
}

fn line(end: End, took: Duration, cpu: Option<Duration>, name: &str) -> String {
    let cpu = cpu.map_or_else(String::new, |cpu| format!("{:.1} s", cpu.as_secs_f64()));
    format!("{:<8}{:>8.1} s{cpu:>10}  {name}", end.label(), took.as_secs_f64())
}

/// What the last line of a job's log begins with.
const CPU_TIME: &str = "seconds of CPU time: ";

/// Writes the CPU time of this process and its descendants as the last line of its log.
pub(crate) fn write_cpu_time() {
    if let Some(time) = guard::cpu_time() {
        println!("{CPU_TIME}{:.2}", time.as_secs_f64());
    }
}

fn read_cpu_time(log: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(log);
    let seconds = text.lines().next_back()?.strip_prefix(CPU_TIME)?;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

/// The summary: the longest first, then what was skipped, then the line that counts.
pub(crate) fn summary(ended: &[Ended], out: &mut dyn Write) -> io::Result<bool> {
    writeln!(out, "\nsummary: result, wall time, CPU time, stage")?;
    let mut rows: Vec<&Ended> = ended.iter().filter(|it| it.counts || it.end != End::Passed).collect();
    rows.sort_by_key(|it| std::cmp::Reverse(it.took));
    for it in &rows {
        writeln!(out, "{}", line(it.end, it.took, it.cpu, &it.name))?;
    }
    let cpu: Duration = ended.iter().filter_map(|it| it.cpu).sum();
    writeln!(out, "{:.1} minutes of CPU time", cpu.as_secs_f64() / 60.0)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for it in ended.iter().filter(|it| it.counts || it.end == End::Failed) {
        *counts.entry(it.end.label()).or_default() += 1;
    }
    let number = |end: End| counts.get(end.label()).copied().unwrap_or(0);
    let skipped = match number(End::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    writeln!(out, "{} passed, {} failed{skipped}", number(End::Passed), number(End::Failed))?;
    Ok(number(End::Failed) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_string(),
            command,
            load: Load::Waits,
            limit: Duration::from_secs(60),
            after: Vec::new(),
            prepares: false,
            without: End::Failed,
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("xtask-runner-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn file(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn run(jobs: Vec<Job>, folder: &Folder) -> (Vec<Ended>, String) {
        let mut out = Vec::new();
        let ended = run_all(jobs, &folder.0.join("logs"), &mut out).unwrap();
        (ended, String::from_utf8(out).unwrap())
    }

    fn end_of(ended: &[Ended], name: &str) -> End {
        ended.iter().find(|it| it.name == name).unwrap().end
    }

    /// Whether a process is gone, or only waits for its parent to take note of its end.
    fn has_ended(id: &str) -> bool {
        let state = Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output().unwrap().stdout;
        matches!(state.first(), None | Some(b'Z'))
    }

    #[test]
    fn two_waiting_jobs_run_at_once() {
        let folder = Folder::new("two");
        let (one, two) = (folder.file("one"), folder.file("two"));
        // Each opens a pipe that only the other one opens from its other end, so neither can end alone.
        let made = Command::new("mkfifo").args([&one, &two]).status().unwrap();
        assert!(made.success());
        let jobs = vec![
            job("first", &format!("echo hello > {one}; cat {two}")),
            job("second", &format!("cat {one}; echo hello > {two}")),
        ];
        let (ended, printed) = run(jobs, &folder);
        assert_eq!((end_of(&ended, "first"), end_of(&ended, "second")), (End::Passed, End::Passed));
        assert!(!printed.contains("hello"), "the log of a job that passed is not printed:\n{printed}");
    }

    #[test]
    fn two_busy_jobs_never_run_at_once() {
        let folder = Folder::new("busy");
        // A folder can be made only once, so it is a lock.
        let lock = folder.file("lock");
        let script = format!("mkdir {lock} && sleep 0.2 && rmdir {lock}");
        let jobs = ["a", "b", "c"].map(|name| Job { load: Load::Busy, ..job(name, &script) });
        let (ended, printed) = run(jobs.into(), &folder);
        assert!(ended.iter().all(|it| it.end == End::Passed), "{printed}");
    }

    #[test]
    fn a_measurement_runs_when_nothing_else_does() {
        let folder = Folder::new("alone");
        let file = folder.file("order");
        let jobs = vec![
            Job { load: Load::Alone, ..job("measure", &format!("echo measured >> {file}")) },
            job("other", &format!("sleep 0.2; echo other >> {file}")),
        ];
        run(jobs, &folder);
        assert_eq!(fs::read_to_string(&file).unwrap(), "other\nmeasured\n");
    }

    #[test]
    fn a_failed_job_shows_its_whole_log_and_does_not_hide_the_others() {
        let folder = Folder::new("failed");
        let jobs = vec![job("bad", "echo first; echo last >&2; exit 3"), job("good", "true")];
        let (ended, printed) = run(jobs, &folder);
        assert_eq!((end_of(&ended, "bad"), end_of(&ended, "good")), (End::Failed, End::Passed));
        assert!(printed.contains("first\nlast\n"), "{printed}");
        let mut out = Vec::new();
        assert!(!summary(&ended, &mut out).unwrap());
        assert!(String::from_utf8(out).unwrap().ends_with("1 passed, 1 failed\n"));
    }

    #[test]
    fn the_cpu_time_that_a_job_writes_last_is_in_its_line() {
        let folder = Folder::new("cpu");
        let (_, printed) = run(vec![job("computes", &format!("echo work; echo '{CPU_TIME}12.34'"))], &folder);
        assert!(printed.contains(" 12.3 s  computes"), "{printed}");
    }

    #[test]
    fn a_job_over_its_limit_is_ended_with_its_children() {
        let folder = Folder::new("limit");
        let file = folder.file("child");
        // The shell that is killed does not wait for the child.
        let script = format!("echo begun; sh -c 'echo $$ > {file}; exec sleep 1000' & wait");
        let jobs = vec![Job { limit: Duration::from_millis(500), ..job("hangs", &script) }];
        let (ended, printed) = run(jobs, &folder);
        assert_eq!(end_of(&ended, "hangs"), End::Failed);
        assert!(printed.contains("begun") && printed.contains("exceeded its time limit"), "{printed}");
        let child = fs::read_to_string(&file).unwrap();
        assert!(has_ended(&child), "the child {child} still runs");
    }

    #[test]
    fn a_process_that_is_to_end_is_asked_once_and_may_clear_up() {
        let folder = Folder::new("asked");
        let file = folder.file("asked");
        // It goes on for eight more looks after it was asked.
        let script = format!(
            "trap 'echo asked >> {file}' TERM; n=0; while test $n -lt 8; do sleep 0.1; test -s {file} && n=$((n + 1)); done"
        );
        let jobs = vec![Job { limit: Duration::from_millis(500), ..job("clears up", &script) }];
        run(jobs, &folder);
        assert_eq!(fs::read_to_string(&file).unwrap(), "asked\n");
    }

    #[test]
    fn a_child_that_a_job_leaves_behind_is_ended() {
        let folder = Folder::new("left");
        let file = folder.file("child");
        let script = format!(
            "sh -c 'echo $$ > {file}; exec sleep 1000' > /dev/null 2>&1 & while ! test -s {file}; do :; done"
        );
        run(vec![job("leaves", &script)], &folder);
        let child = fs::read_to_string(&file).unwrap();
        assert!(has_ended(&child), "the child {child} still runs");
    }

    #[test]
    fn a_job_waits_for_the_one_it_builds_on() {
        let folder = Folder::new("after");
        let file = folder.file("made");
        let jobs = vec![
            Job { after: vec!["make".to_string()], ..job("use", &format!("cat {file}")) },
            job("make", &format!("sleep 0.2; echo made > {file}")),
        ];
        let (ended, printed) = run(jobs, &folder);
        assert_eq!(end_of(&ended, "use"), End::Passed, "{printed}");
    }

    #[test]
    fn a_part_that_may_be_missing_is_named_and_what_needs_it_is_counted_as_skipped() {
        let folder = Folder::new("part");
        let jobs = vec![
            Job {
                prepares: true,
                without: End::Skipped,
                ..job("browser", "echo install it by hand; exit 3")
            },
            Job { after: vec!["browser".to_string()], ..job("pages", "true") },
            job("other", "true"),
        ];
        let (ended, printed) = run(jobs, &folder);
        assert!(printed.contains("install it by hand"), "{printed}");
        let mut out = Vec::new();
        assert!(summary(&ended, &mut out).unwrap());
        assert!(String::from_utf8(out).unwrap().ends_with("1 passed, 0 failed, 1 skipped\n"));
    }

    #[test]
    fn a_part_that_is_broken_is_a_failure_even_where_it_may_be_missing() {
        let folder = Folder::new("broken");
        let jobs = vec![
            Job { prepares: true, without: End::Skipped, ..job("browser", "exit 1") },
            Job { after: vec!["browser".to_string()], ..job("pages", "true") },
        ];
        let (ended, _) = run(jobs, &folder);
        assert_eq!((end_of(&ended, "browser"), end_of(&ended, "pages")), (End::Failed, End::Skipped));
    }

    #[test]
    fn a_job_that_can_never_start_fails() {
        let folder = Folder::new("never");
        let jobs = vec![Job { after: vec!["misspelt".to_string()], ..job("waits", "true") }];
        let (ended, printed) = run(jobs, &folder);
        assert_eq!(end_of(&ended, "waits"), End::Failed, "{printed}");
    }

    #[test]
    fn what_builds_on_a_failed_job_fails_or_is_skipped() {
        let folder = Folder::new("missing");
        for (without, line) in
            [(End::Failed, "0 passed, 2 failed\n"), (End::Skipped, "0 passed, 1 failed, 1 skipped\n")]
        {
            let jobs = vec![
                Job { without, ..job("make", "exit 1") },
                Job { after: vec!["make".to_string()], ..job("use", "true") },
            ];
            let (ended, printed) = run(jobs, &folder);
            assert_eq!(end_of(&ended, "use"), without);
            assert!(printed.contains("use needs \"make\""), "{printed}");
            let mut out = Vec::new();
            summary(&ended, &mut out).unwrap();
            assert!(String::from_utf8(out).unwrap().ends_with(line));
        }
    }
}
