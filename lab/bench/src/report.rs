//! What `sluice bench calls` prints.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use sluice_commands::output::Output;

use super::figures::{Figures, Limit};
use super::usage::Usage;

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// How many Services.
    pub services: u32,
    /// How many emulated seconds passed in a real one.
    pub time_factor: f64,
    /// One per concurrency.
    pub runs: Vec<Run>,
}

/// One emulator process, one controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// How many plans might work at once.
    pub concurrency: usize,
    /// How many emulated seconds passed in a real one.
    pub time_factor: f64,
    /// Whether Azure counted calls.
    pub throttled: bool,
    /// What creating took.
    pub created: Phase,
    /// What deleting took.
    pub deleted: Phase,
    /// What it cost.
    pub usage: Usage,
}

/// Creating or deleting.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// What the emulator's log says.
    pub figures: Figures,
    /// Calls that came before a `Retry-After` was over, as the emulator judges.
    pub early: u64,
    /// Answers that asked for a wait; where there is none, nobody can come too early.
    pub waits: u64,
    /// Calls that came too early, but may have been on their way when the answer left.
    pub excused: u64,
}

impl Run {
    /// Whether calls took so long that the makespan says more of the machine than of anything else.
    pub fn is_too_slow(&self) -> bool {
        self.usage.per_call().mul_f64(self.time_factor) > ROUND_TRIP_MAX
    }
}

impl Report {
    /// How many limits are missed.
    pub fn missed(&self) -> usize {
        self.runs.iter().flat_map(Run::limits).flatten().filter(|limit| limit.holds() == Some(false)).count()
    }

    /// How many limits nobody can judge.
    pub fn not_judged(&self) -> usize {
        self.runs.iter().flat_map(Run::limits).flatten().filter(|limit| !limit.is_judged).count()
    }
}

/// Prints a report.
pub fn print(report: &Report, output: Output) -> std::io::Result<()> {
    let text = match output {
        Output::Text => text(report),
        Output::Json => format!("{:#}\n", json(report)),
    };
    std::io::stdout().write_all(text.as_bytes())
}

/// A way to Azure and back that is longer than this, in emulated time, shows in the makespan.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(150);

/// Columns of the table: how wide the first is, and the others.
const FIRST: usize = 34;
const OTHER: usize = 17;

/// For people.
pub fn text(report: &Report) -> String {
    let mut text = format!(
        "{} Services with a pod or two each, created and deleted through engine, both updaters and\n\
         HTTPS against an emulator process with its default latencies. Counted by the emulator.\n\n",
        report.services
    );
    let phases: Vec<(&Phase, Vec<Limit>)> = report
        .runs
        .iter()
        .flat_map(|run| {
            let [created, deleted] = run.limits();
            [(&run.created, created), (&run.deleted, deleted)]
        })
        .collect();
    let heads = report.runs.iter().flat_map(|run| {
        let how = if run.throttled { "shipped budget" } else { "lifted budget" };
        [format!("{} at once,", run.concurrency), how.to_owned()]
    });
    row(&mut text, "", heads);
    row(&mut text, "", report.runs.iter().flat_map(|_| ["create".to_owned(), "delete".to_owned()]));
    let mut line = |what: &str, of: &dyn Fn(&Phase) -> String| {
        let cells = phases.iter().map(|(phase, limits)| {
            let limit = limits.iter().find(|limit| limit.what == what);
            let judged = limit.map(|limit| match limit.holds() {
                Some(true) => format!(" ≤ {} ✓", limit.max),
                Some(false) => format!(" ≤ {} ✗", limit.max),
                None => " not judged".to_owned(),
            });
            format!("{}{}", of(phase), judged.unwrap_or_default())
        });
        row(&mut text, what, cells);
    };
    let per_service = |phase: &Phase, calls: fn(&Figures) -> u64| {
        format!("{:.2}", phase.figures.per_service(calls(&phase.figures)))
    };
    let seconds = |span: Duration| format!("{:.0} s", span.as_secs_f64());
    line("writes per service", &|it| per_service(it, |it| it.service_writes));
    line("  location lane", &|it| per_service(it, |it| it.location_writes));
    line("  both lanes", &|it| per_service(it, |it| it.service_writes + it.location_writes));
    line("reads per service", &|it| per_service(it, |it| it.reads));
    line("answers 429", &|it| it.figures.throttled.to_string());
    line("answers with a Retry-After", &|it| it.waits.to_string());
    line("calls before a Retry-After", &|it| it.early.to_string());
    line("  on their way by then", &|it| it.excused.to_string());
    line("makespan", &|it| seconds(it.figures.makespan));
    line("  bound (1)", &|it| seconds(it.figures.bound));
    line("makespan over the bound", &|it| format!("{:.2}", it.figures.over_bound()));
    line("  over bound (2)", &|it| format!("{:.2}", it.figures.over_bound_without_commits()));
    let kinds: BTreeSet<&String> =
        phases.iter().flat_map(|(phase, _)| phase.figures.by_kind.keys()).collect();
    text.push_str("calls by kind\n");
    for kind in kinds {
        let cells = phases.iter().map(|(phase, _)| phase.figures.by_kind.get(kind).copied().unwrap_or(0));
        row(&mut text, &format!("  {kind}"), cells.map(|count| count.to_string()));
    }
    text.push_str(
        "\n(1) Latency and concurrency alone: every service's own operations one after the other, as long as\n\
         \u{20}   the emulator says they took, and so many workers without a gap between two of them.\n\
         (2) The same, with the worker free while its service waits for a shared updateServices call.\n\
         \u{20}   Azure's limit of 1,000 writes in 5 minutes alone makes deletions longer than that.\n",
    );
    for run in &report.runs {
        let Usage { real, own, emulator, .. } = run.usage;
        let cpu = |time: Option<Duration>| {
            time.map_or_else(|| "unknown".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()))
        };
        let per_call = run.usage.per_call();
        let _ = writeln!(
            text,
            "{} at once: {:.0} s of real time at factor {}; CPU {} here and {} in the emulator; a call took \
             {:.1} ms,\n  which is {:.0} ms of emulated time.",
            run.concurrency,
            real.as_secs_f64(),
            report.time_factor,
            cpu(own),
            cpu(emulator),
            per_call.as_secs_f64() * 1_000.0,
            per_call.as_secs_f64() * 1_000.0 * report.time_factor,
        );
    }
    if report.runs.iter().any(Run::is_too_slow) {
        let _ = writeln!(
            text,
            "The machine is too slow or too busy for this factor: calls take longer than they would to a real\n\
             Azure, so the makespan is not judged. Try --time-factor {:.0}.",
            (report.time_factor / 2.0).max(1.0)
        );
    }
    match report.missed() {
        0 if report.not_judged() > 0 => {
            let _ = writeln!(text, "All limits that can be judged are kept; {} cannot.", report.not_judged());
        }
        0 => text.push_str("All limits are kept.\n"),
        missed => {
            let are = if missed == 1 { "limit is" } else { "limits are" };
            let _ = writeln!(text, "{missed} {are} missed (✗).");
        }
    }
    text
}

fn row(text: &mut String, first: &str, others: impl Iterator<Item = impl AsRef<str>>) {
    let mut line = format!("{first:FIRST$}");
    for cell in others {
        let cell = cell.as_ref();
        let padding = OTHER.saturating_sub(cell.chars().count());
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', padding));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// For scripts.
pub fn json(report: &Report) -> Value {
    let phase = |Phase { figures, early, waits, excused }: &Phase, limits: &[Limit]| {
        json!({
            "services": figures.services,
            "writesPerService": figures.per_service(figures.service_writes),
            "locationWritesPerService": figures.per_service(figures.location_writes),
            "readsPerService": figures.per_service(figures.reads),
            "callsByKind": figures.by_kind,
            "throttled": figures.throttled,
            "answersWithRetryAfter": waits,
            "callsBeforeRetryAfter": early,
            "callsOnTheirWay": excused,
            "makespanSeconds": figures.makespan.as_secs_f64(),
            "boundSeconds": figures.bound.as_secs_f64(),
            "makespanOverBound": figures.over_bound(),
            "boundWithoutCommitsSeconds": figures.bound_without_commits.as_secs_f64(),
            "limits": limits.iter().map(Limit::json).collect::<Vec<_>>(),
        })
    };
    let runs: Vec<Value> = report
        .runs
        .iter()
        .map(|run| {
            let [created, deleted] = run.limits();
            json!({
                "concurrency": run.concurrency,
                "throttling": run.throttled,
                "create": phase(&run.created, &created),
                "delete": phase(&run.deleted, &deleted),
                "realSeconds": run.usage.real.as_secs_f64(),
                "ownCpuSeconds": run.usage.own.map(|it| it.as_secs_f64()),
                "emulatorCpuSeconds": run.usage.emulator.map(|it| it.as_secs_f64()),
                "realSecondsPerCall": run.usage.per_call().as_secs_f64(),
            })
        })
        .collect();
    json!({
        "services": report.services,
        "timeFactor": report.time_factor,
        "limitsMissed": report.missed(),
        "limitsNotJudged": report.not_judged(),
        "runs": runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with a makespan far over its bound, whose calls took so long in real time.
    fn late(per_call: Duration) -> Report {
        let figures = Figures {
            makespan: Duration::from_secs(100),
            bound: Duration::from_secs(10),
            ..Figures::count(&[], 1, 10)
        };
        let phase = Phase { figures, early: 0, waits: 0, excused: 0 };
        let usage = Usage { real: per_call, own: None, emulator: None, calls: 1, in_calls: per_call };
        let (created, deleted) = (phase.clone(), phase);
        let run = Run { concurrency: 10, time_factor: 20.0, throttled: true, created, deleted, usage };
        Report { services: 1, time_factor: 20.0, runs: vec![run] }
    }

    #[test]
    fn a_makespan_over_its_limit_is_missed() {
        let report = late(Duration::from_millis(2));
        assert_eq!((report.missed(), report.not_judged()), (2, 0));
        assert!(text(&report).contains("2 limits are missed"), "{}", text(&report));
    }

    #[test]
    fn a_makespan_on_a_slow_machine_is_not_judged() {
        let report = late(Duration::from_millis(20));
        assert_eq!((report.missed(), report.not_judged()), (0, 2));
        assert!(text(&report).contains("10.00 not judged"), "{}", text(&report));
        assert!(json(&report).pointer("/runs/0/create/limits/4/holds").is_some_and(Value::is_null));
    }

    #[test]
    fn more_excuses_than_calls_at_once_are_none() {
        let mut report = late(Duration::from_millis(20));
        let created = &mut report.runs[0].created;
        (created.waits, created.excused) = (1, 10);
        assert_eq!(report.missed(), 0);
        report.runs[0].created.excused = 11;
        assert_eq!(report.missed(), 1);
    }
}
