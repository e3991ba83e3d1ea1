//! What is printed: progress, tables, JSON.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use sluice_sim::bugs::Catch;
use sluice_sim::calls::{Figures, Target, budget, decimal, polls};
use sluice_sim::coverage::Coverage;
use sluice_sim::crash_points::Enumeration;
use sluice_sim::names::{FaultKind, Invariant};
use sluice_sim::run::Report;

/// Everything that many runs came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) seeds: u64,
    pub(crate) failures: Vec<(u64, String)>,
    steps: u64,
    compared: u64,
    reordered: u64,
    virtual_ms: u64,
    crash_points: u64,
    crash_stories: usize,
    crash_failed: bool,
    /// The seeds that it began with.
    starts: Vec<u64>,
    /// Every story and storm, unless a seed has failed before.
    told: Option<Told>,
    coverage: Coverage,
}

/// What all named stories and storms came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) all: usize,
    pub(crate) failed: usize,
    pub(crate) coverage: Coverage,
}

impl Summary {
    pub(crate) fn new(starts: &[u64]) -> Summary {
        Summary { starts: starts.to_vec(), ..Summary::default() }
    }

    pub(crate) fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.steps += report.steps;
        self.compared += u64::from(report.compared);
        self.reordered += u64::from(report.reordered);
        self.virtual_ms += report.ended.as_millis();
        self.coverage.add(&report.coverage);
    }

    /// Which seeds are run, so that another run can try the same ones.
    pub(crate) fn ranges(&self, count: u64) -> String {
        let starts: Vec<String> = self.starts.iter().map(|start| format!("--start {start}")).collect();
        format!("running --seeds {count} {}", starts.join(" "))
    }

    pub(crate) fn crash_points(&mut self, points: &Enumeration) {
        self.crash_points = points.points;
        self.crash_stories = points.stories;
        self.crash_failed = points.failed.is_some();
        self.steps += points.steps;
        self.coverage.add(&points.coverage);
    }

    /// Stories and storms have been told, with what they have tried.
    pub(crate) fn stories(&mut self, told: Told) {
        self.coverage.add(&told.coverage);
        self.told = Some(told);
    }

    /// What the stories and storms have not tried. Seeds do not count: what only they try depends on luck.
    fn gaps(&self) -> Vec<String> {
        self.told.as_ref().map_or_else(Vec::new, |told| told.coverage.gaps())
    }

    /// Whether something did not hold, or was not tried.
    pub(crate) fn has_failed(&self) -> bool {
        let stories_failed = self.told.as_ref().is_some_and(|told| told.failed > 0);
        !self.failures.is_empty() || self.crash_failed || stories_failed || !self.gaps().is_empty()
    }

    pub(crate) fn print(&self, json: bool) {
        if json {
            say!("{}", self.as_json());
            return;
        }
        let coverage = &self.coverage;
        say!("seeds                   {}", self.seeds);
        say!("steps                   {}", self.steps);
        say!("virtual time            {} h", self.virtual_ms / 3_600_000);
        say!("invariants checked      {}", coverage.judged_total());
        say!("crash points enumerated {} in {} stories", self.crash_points, self.crash_stories);
        say!("compared with a run without faults {}", self.compared);
        say!("compared with the same edits in another order {}", self.reordered);
        say!("\nfaults injected");
        for fault in FaultKind::ALL {
            say!("  {:<4} {:>8}  {}", fault.code(), coverage.injected[fault.index()], fault.words());
        }
        say!("\n{}", coverage.cells_table());
        say!("fault × invariant, how often the invariant was judged while the fault was fresh");
        say!("{}", coverage.pairs_table());
        for reason in coverage.reasons() {
            say!("not expected: {reason}");
        }
        let gaps = self.gaps();
        for gap in &gaps {
            say!("gap: {gap}");
        }
        if let Some(told) = &self.told {
            say!("{} of {} stories and storms passed", told.all - told.failed, told.all);
        }
        if self.failures.is_empty() && !self.crash_failed {
            say!("{} seeds passed", self.seeds);
        } else {
            say!("{} of {} seeds failed", self.failures.len(), self.seeds);
        }
        if !gaps.is_empty() {
            say!("{} gaps in what the stories try, without a written reason", gaps.len());
        }
    }

    fn as_json(&self) -> String {
        let coverage = &self.coverage;
        let counts = |names: Vec<&str>, counts: &[u64]| {
            let pairs: Vec<String> =
                names.iter().zip(counts).map(|(name, count)| format!("{}:{count}", quoted(name))).collect();
            format!("{{{}}}", pairs.join(","))
        };
        let injected = counts(FaultKind::ALL.iter().map(|it| it.code()).collect(), &coverage.injected);
        let judged = counts(Invariant::ALL.iter().map(|it| it.code()).collect(), &coverage.judged);
        let failures: Vec<String> = self
            .failures
            .iter()
            .map(|(seed, what)| format!("{{\"seed\":{seed},\"what\":{}}}", quoted(what)))
            .collect();
        let gaps: Vec<String> = self.gaps().iter().map(|gap| quoted(gap)).collect();
        format!(
            "{{\"starts\":{:?},\"seeds\":{},\"steps\":{},\"invariants_checked\":{},\"crash_points\":{},\"compared\":{},\
             \"reordered\":{},\"injected\":{injected},\"judged\":{judged},\"failures\":[{}],\"gaps\":[{}],\"passed\":{}}}",
            self.starts,
            self.seeds,
            self.steps,
            coverage.judged_total(),
            self.crash_points,
            self.compared,
            self.reordered,
            failures.join(","),
            gaps.join(","),
            !self.has_failed()
        )
    }
}

/// One run for machines, its trace as lines.
pub(crate) fn one_as_json(report: &Report) -> String {
    let failure = match &report.failure {
        Some((at, violation)) => {
            format!("{{\"at_ms\":{},\"what\":{}}}", at.as_millis(), quoted(&violation.to_string()))
        }
        None => "null".into(),
    };
    let lines: Vec<String> = report.trace.lines().map(quoted).collect();
    format!(
        "{{\"seed\":{},\"steps\":{},\"ended_ms\":{},\"failure\":{failure},\"trace\":[{}]}}",
        report.seed,
        report.steps,
        report.ended.as_millis(),
        lines.join(",")
    )
}

/// One line of the table of bugs.
pub(crate) fn bug_row(row: &Catch) -> String {
    let bug = format!("{:?}", row.bug);
    match &row.by {
        Some((by, what)) => {
            let what: String = what.chars().take(90).collect();
            let expected = sluice_sim::bugs::expected(row.bug).join(" ");
            format!("{bug:<24} | {by:<5} of {expected:<12} | {:<12} | {what}", row.at)
        }
        None => format!("{bug:<24} | NOT CAUGHT"),
    }
}

/// The table of bugs for machines.
pub(crate) fn bugs_as_json(rows: &[Catch]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let by = row.by.as_ref().map_or_else(|| "null".into(), |(by, _)| quoted(by));
            format!(
                "{{\"bug\":{},\"caught_by\":{by},\"at\":{}}}",
                quoted(&format!("{:?}", row.bug)),
                quoted(&row.at)
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

/// The table of calls.
pub(crate) fn calls(rows: &[(Target, (Figures, Figures))]) {
    say!(
        "{:<28} {:<6} | {:>7} {:>4} {:>7} {:>7} {:>9} | {:>7} {:>5} {:>5} {:>5} | {:>4} | {:>8} {:>7} {:>5}",
        "500 services",
        "",
        "writes",
        "puts",
        "deletes",
        "commits",
        "locations",
        "reads",
        "polls",
        "gets",
        "pages",
        "429s",
        "makespan",
        "bound",
        "over"
    );
    for (target, (create, delete)) in rows {
        for (half, it) in [("create", create), ("delete", delete)] {
            say!(
                "{:<28} {half:<6} | {:>7} {:>4} {:>7} {:>7} {:>9} | {:>7} {:>5} {:>5} {:>5} | {:>4} | {:>6} s {:>5} s {:>5}",
                target.name,
                decimal(it.writes_permille()),
                it.puts,
                it.deletes,
                it.commits,
                it.location_writes,
                decimal(it.reads_permille()),
                it.polls,
                it.gets,
                it.pages,
                it.throttled,
                it.makespan.as_secs(),
                it.bound.as_secs(),
                decimal(it.over_bound_permille())
            );
        }
    }
    for miss in rows.iter().flat_map(|(target, measured)| target.misses(measured)) {
        say!("missed: {miss}");
    }
}

/// The table of calls for machines.
pub(crate) fn calls_as_json(rows: &[(Target, (Figures, Figures))]) -> String {
    let mut out = Vec::new();
    for (target, (create, delete)) in rows {
        for (half, it) in [("create", create), ("delete", delete)] {
            out.push(format!(
                "{{\"load\":{},\"half\":{},\"services\":{},\"puts\":{},\"deletes\":{},\"commits\":{},\
                 \"location_writes\":{},\"polls\":{},\"gets\":{},\"pages\":{},\"throttled\":{},\
                 \"makespan_ms\":{},\"bound_ms\":{}}}",
                quoted(target.name),
                quoted(half),
                it.services,
                it.puts,
                it.deletes,
                it.commits,
                it.location_writes,
                it.polls,
                it.gets,
                it.pages,
                it.throttled,
                it.makespan.as_millis(),
                it.bound.as_millis()
            ));
        }
    }
    format!("[{}]", out.join(","))
}

/// The table of the shipped budget.
pub(crate) fn budget(rows: &[(budget::Target, budget::Figures)]) {
    say!(
        "{:<32} | {:>10} | {:>8} {:>8} | {:>9} {:>6}",
        "50 Services with 100 pods, then",
        "first sync",
        "wait p50",
        "p99",
        "locations",
        "writes"
    );
    for (target, it) in rows {
        say!(
            "{:<32} | {:>7} ms | {:>5} ms {:>5} ms | {:>9} {:>6}",
            target.name,
            it.first_sync.as_millis(),
            it.wait_p50.as_millis(),
            it.wait_p99.as_millis(),
            it.locations,
            it.writes
        );
    }
    for miss in rows.iter().flat_map(|(target, figures)| target.misses(figures)) {
        say!("missed: {miss}");
    }
}

/// The same for machines.
pub(crate) fn budget_as_json(rows: &[(budget::Target, budget::Figures)]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(target, it)| {
            format!(
                "{{\"story\":{},\"first_sync_ms\":{},\"wait_p50_ms\":{},\"wait_p99_ms\":{},\
                 \"locations_in_5_min\":{},\"writes_in_5_min\":{}}}",
                quoted(target.name),
                it.first_sync.as_millis(),
                it.wait_p50.as_millis(),
                it.wait_p99.as_millis(),
                it.locations,
                it.writes
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

/// The table of polls.
pub(crate) fn polls(rows: &[(polls::Target, polls::Figures)]) {
    say!(
        "{:<40} | {:>9} {:>9} {:>6} {:>9} | {:>6}",
        "one Service at a time",
        "to its IP",
        "best",
        "ratio",
        "limit",
        "reads"
    );
    for (target, it) in rows {
        say!(
            "{:<40} | {:>6} ms {:>6} ms {:>6} {:>6} ms | {:>6}",
            target.to_string(),
            it.to_ip.as_millis(),
            it.best.as_millis(),
            decimal(it.ratio_permille()),
            target.to_ip_max(it).as_millis(),
            decimal(it.reads_permille)
        );
    }
    let misses: Vec<String> = rows.iter().flat_map(|(target, figures)| target.misses(figures)).collect();
    for miss in &misses {
        say!("missed: {miss}");
    }
    if misses.is_empty() {
        say!("all {} rows are within their limits", rows.len());
    }
}

/// The same for machines.
pub(crate) fn polls_as_json(rows: &[(polls::Target, polls::Figures)]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(target, it)| {
            format!(
                "{{\"operation_ms\":{},\"retry_after_ms\":{},\"warm\":{},\"to_ip_ms\":{},\"best_ms\":{},\
                 \"to_ip_max_ms\":{},\"reads_permille\":{},\"within_limits\":{}}}",
                target.operation.as_millis(),
                target.retry_after.unwrap_or_default().as_millis(),
                target.warm,
                it.to_ip.as_millis(),
                it.best.as_millis(),
                target.to_ip_max(it).as_millis(),
                it.reads_permille,
                target.misses(it).is_empty()
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A line that says how far it is, on a terminal only.
pub(crate) struct Progress {
    what: &'static str,
    all: u64,
    shown: bool,
    began: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, all: u64) -> Progress {
        let shown = std::io::stderr().is_terminal();
        Progress { what, all, shown, began: Instant::now(), drawn: None }
    }

    pub(crate) fn step(&mut self, done: u64) {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed().as_millis() >= 100);
        if self.shown && due {
            let seconds = self.began.elapsed().as_secs();
            eprint!("\r{done}/{} {}, {seconds} s ", self.all, self.what);
            let _ = std::io::stderr().flush();
            self.drawn = Some(Instant::now());
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
