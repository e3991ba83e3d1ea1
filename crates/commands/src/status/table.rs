//! A table for people: one line for every service and egress.

use sluice_view::moment::span;
use sluice_view::overview::Role;
use sluice_view::{Overview, Progress, State, Status};

use super::Chosen;
use crate::paint::Paint;

/// The width of a table that does not go to a terminal.
const COLUMNS: usize = 100;

/// NAME and PROBLEM get at least this many characters; other columns are left out for it.
const NAME_MIN: usize = 24;
const PROBLEM_MIN: usize = 16;

/// The columns that a narrow terminal leaves out, the least important first.
const OPTIONAL: [&str; 3] = ["AGE", "PODS", "IP"];

const GAP: &str = "  ";

/// How a table is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// All columns, and nothing is cut off.
    pub(super) wide: bool,
    /// How many characters a row has at most, unless it is wide.
    pub(super) columns: usize,
    /// Whether the terminal shows characters other than ASCII.
    pub(super) utf8: bool,
}

impl Layout {
    /// For the terminal that the standard output goes to, or for a file.
    pub(super) fn for_stdout(wide: bool) -> Layout {
        let columns = terminal_size::terminal_size_of(std::io::stdout());
        let columns = columns.map_or(COLUMNS, |(width, _)| usize::from(width.0));
        Layout { wide, columns, utf8: is_utf8(|name| std::env::var(name).ok()) }
    }

    fn titles(self) -> Vec<&'static str> {
        let mut titles = vec!["NAME", "STATE", "IP", "PODS", "AGE"];
        if self.wide {
            titles.extend([
                "DESIRED",
                "BUFFERED",
                "PROGRAMMED",
                "MAPPED",
                "QUARANTINED",
                "ATTEMPTS",
                "LAST",
                "NEXT",
                "OPERATION",
                "ID",
            ]);
        }
        titles.push("PROBLEM");
        titles
    }

    fn cells(self, status: &Status) -> Vec<String> {
        let progress = status.progress();
        let addresses = &progress.addresses;
        let dash = || "-".to_owned();
        let mut cells = vec![
            status.title(),
            progress.state.to_string(),
            progress.public_ip.map_or_else(dash, |ip| ip.to_string()),
            format!("{}/{}", addresses.programmed, addresses.desired),
            age(progress.since.age_seconds),
        ];
        if self.wide {
            let id = match status {
                Status::Service(service) => service.uid.clone(),
                Status::Egress(_) => dash(),
            };
            cells.extend([
                addresses.desired.to_string(),
                addresses.buffered.to_string(),
                addresses.programmed.to_string(),
                addresses.mapped.to_string(),
                addresses.quarantined.to_string(),
                progress.attempts.to_string(),
                progress
                    .last_attempt
                    .as_ref()
                    .map_or_else(dash, |at| format!("{} ago", span(at.age_seconds))),
                progress.next_retry.as_ref().map_or_else(dash, |due| match due.in_seconds {
                    0 => "now".to_owned(),
                    seconds => format!("in {}", span(seconds)),
                }),
                progress.operation.clone().unwrap_or_else(dash),
                id,
            ]);
        }
        // A row is one line, whatever Azure wrote.
        cells.push(problem(progress).split_whitespace().collect::<Vec<_>>().join(" "));
        if !self.utf8 {
            for cell in &mut cells {
                *cell = cell.chars().map(|it| if it.is_ascii() { it } else { '?' }).collect();
            }
        }
        cells
    }

    /// Leaves out and narrows columns until a row fits.
    fn fit(self, table: &mut Table) {
        if self.wide {
            return;
        }
        let mut widths = table.widths();
        for title in OPTIONAL {
            let others: usize = widths[1..widths.len() - 1].iter().sum();
            if others + GAP.len() * (widths.len() - 1) + NAME_MIN + PROBLEM_MIN <= self.columns {
                break;
            }
            if let Some(at) = table.titles.iter().position(|it| *it == title) {
                table.leave_out(at);
                widths = table.widths();
            }
        }
        let last = widths.len() - 1;
        let others: usize = widths[1..last].iter().sum();
        let room = self.columns.saturating_sub(others + GAP.len() * last);
        let problem = widths[last].min(room.saturating_sub(widths[0]).max(PROBLEM_MIN));
        let name = widths[0].min(room.saturating_sub(problem));
        for row in &mut table.rows {
            row[0] = self.cut_middle(&row[0], name);
            row[last] = self.cut(&row[last], problem);
        }
    }

    fn mark(self) -> &'static str {
        if self.utf8 { "…" } else { "..." }
    }

    /// The beginning of a text that is too long.
    fn cut(self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        let kept = width.saturating_sub(self.mark().chars().count());
        text.chars().take(kept).chain(self.mark().chars()).take(width).collect()
    }

    /// The beginning and the end of a name that is too long: names differ in their ends.
    fn cut_middle(self, name: &str, width: usize) -> String {
        let long = name.chars().count();
        if long <= width {
            return name.to_owned();
        }
        let kept = width.saturating_sub(self.mark().chars().count());
        let (front, back) = (kept / 2, kept - kept / 2);
        let end = name.chars().skip(long - back);
        name.chars().take(front).chain(self.mark().chars()).chain(end).take(width).collect()
    }
}

/// Whether the locale uses UTF-8, by the first of the variables that is set.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|it| !it.is_empty());
    locale.is_some_and(|it| {
        let it = it.to_ascii_lowercase();
        it.contains("utf-8") || it.contains("utf8")
    })
}

/// The largest unit of a span: `3 h` for 3 h 20 min.
fn age(seconds: u64) -> String {
    span(seconds).split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// The rows without padding.
struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        self.titles.iter().enumerate().map(|(at, title)| widest(at).max(title.len())).collect()
    }

    fn leave_out(&mut self, column: usize) {
        self.titles.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }
}

/// A header and a row for each service and egress.
pub(super) fn lines(all: &[Status], layout: Layout, paint: Paint) -> Vec<String> {
    let rows = all.iter().map(|status| layout.cells(status)).collect();
    let mut table = Table { titles: layout.titles(), rows };
    layout.fit(&mut table);
    let widths = table.widths();
    let header: Vec<String> = table.titles.iter().map(ToString::to_string).collect();
    let mut lines = vec![line(&header, &widths, |_, text| paint.bold(text))];
    for (status, row) in all.iter().zip(&table.rows) {
        let progress = status.progress();
        lines.push(line(row, &widths, |at, text| match table.titles[at] {
            "STATE" => painted(progress, text, paint),
            "PROBLEM" if progress.trouble => paint.bad(text),
            _ => text.to_owned(),
        }));
    }
    lines
}

/// Cells are padded before they are painted, since colors have no width.
fn line(cells: &[String], widths: &[usize], paint: impl Fn(usize, &str) -> String) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at + 1 == cells.len() {
            text.push_str(&paint(at, cell));
        } else {
            text.push_str(&paint(at, &format!("{cell:<width$}")));
            text.push_str(GAP);
        }
    }
    text.trim_end().to_owned()
}

/// Sorts those in trouble first, then Services before egresses, and numbers in names by their value.
pub(super) fn sort(all: &mut [Status]) {
    all.sort_by_cached_key(|status| {
        let is_egress = matches!(status, Status::Egress(_));
        (!status.progress().trouble, is_egress, natural(&status.title()))
    });
}

/// A key that sorts `web-2` before `web-10`: digits compare by their number, everything else by its bytes.
fn natural(name: &str) -> Vec<(bool, usize, Vec<u8>)> {
    let parts = name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    parts
        .map(|part| match part[0].is_ascii_digit() {
            true => {
                let zeros = part.iter().take_while(|byte| **byte == b'0').count();
                (false, part.len() - zeros, part[zeros..].to_vec())
            }
            false => (true, 0, part.to_vec()),
        })
        .collect()
}

fn painted(progress: &Progress, text: &str, paint: Paint) -> String {
    if progress.trouble {
        return paint.bad(text);
    }
    match progress.state {
        State::Created => paint.good(text),
        _ => paint.busy(text),
    }
}

fn problem(progress: &Progress) -> String {
    if let Some(why) = &progress.why {
        return format!("{} ({}): {}", why.reason, why.code, why.message);
    }
    if let Some(failure) = &progress.last_failure {
        return format!("{} failed: {}", failure.step, failure.message);
    }
    "-".into()
}

/// What keeps the replica from knowing all that is in trouble, in sentences; none if it knows. `--check` reads the
/// same.
pub(super) fn doubts(overview: &Overview) -> Vec<String> {
    let mut doubts = Vec::new();
    if overview.role != Role::Leader {
        doubts.push(format!(
            "{} is not the leader, so trouble is unknown: run `sluice status` without --address to query the leader.",
            overview.identity
        ));
    }
    if let Some(why) = &overview.azure_trouble {
        doubts.push(format!("{} ({}): {}.", why.reason, why.code, why.message.trim_end_matches('.')));
    }
    let sync = &overview.initial_sync;
    match &sync.gateway_trouble {
        Some(trouble) if sync.done => doubts.push(format!("Service gateway unusable: {trouble}.")),
        _ if has_gaps(overview) => doubts.push(sync_line(overview)),
        _ => {}
    }
    for watch in overview.watches.iter().filter(|watch| watch.trouble.is_some() || !watch.listed) {
        let trouble = watch.trouble.as_deref().unwrap_or("not listed yet");
        doubts.push(format!("Watch of {}: {}.", watch.kind, trouble.trim_end_matches('.')));
    }
    doubts
}

/// Whether a leader has not read everything yet. What it works off afterwards it knows.
fn has_gaps(overview: &Overview) -> bool {
    let sync = &overview.initial_sync;
    let reads = sync.phase != "initial-sync" || sync.gateway_trouble.is_some();
    overview.role == Role::Leader && !sync.done && reads
}

fn sync_line(overview: &Overview) -> String {
    let sync = &overview.initial_sync;
    let at = match &*sync.phase {
        "reading-kubernetes" => ": reading from Kubernetes".into(),
        "reading-azure" => ": reading from Azure".into(),
        "gateway" => ": waiting for the service gateway".into(),
        "initial-sync" if sync.left == 1 => ": 1 operation left".into(),
        "initial-sync" => format!(": {} operations left", sync.left),
        _ => String::new(),
    };
    let trouble = sync.gateway_trouble.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("Initial sync in progress{at}{trouble}.")
}

/// How many are in trouble, as far as that is known.
fn verdict(chosen: &Chosen, is_known: bool, paint: Paint) -> String {
    let shown = chosen.shown.iter().filter(|status| status.progress().trouble).count();
    let hidden = chosen.hidden_in_trouble;
    let many = shown + hidden;
    match (many, is_known) {
        (0, true) => return paint.good("none in trouble"),
        (0, false) => return paint.busy("trouble: unknown"),
        _ => {}
    }
    let at_least = if is_known { "" } else { "at least " };
    let not_shown = match (shown, hidden) {
        (_, 0) => String::new(),
        (0, _) => ", not shown here (`sluice status --trouble` shows all)".into(),
        _ => format!(", {hidden} not shown here (`sluice status --trouble` shows all)"),
    };
    paint.bad(&format!("{at_least}{many} in trouble{not_shown}"))
}

/// A few sentences about the whole, and what to look at next.
pub(super) fn summary(overview: &Overview, chosen: &Chosen, paint: Paint) -> Vec<String> {
    let doubts = doubts(overview);
    let mut lines = vec![format!(
        "{} and {}; {}.",
        counted(overview.services.total, "Service"),
        counted(overview.egresses.total, "egress"),
        verdict(chosen, doubts.is_empty(), paint)
    )];
    lines.extend(doubts.iter().map(|doubt| paint.bad(doubt)));
    if overview.role == Role::Leader && !overview.initial_sync.done && !has_gaps(overview) {
        lines.push(sync_line(overview));
    }
    for lane in &overview.budget {
        if let Some(until) = &lane.paused_until {
            let left = span(until.in_seconds);
            lines
                .push(paint.busy(&format!("Throttled by Azure ({}): paused for another {left}.", lane.lane)));
        }
    }
    if overview.mass_deletion_held > 0 {
        let held = counted(overview.mass_deletion_held, "gateway service");
        lines.push(paint.bad(&format!(
            "Deletion of {held} is held; to allow it, run `sluice allow-deletion` (`sluice explain SGW0016`)."
        )));
    }
    if !overview.unclaimed.is_empty() {
        lines.push(format!(
            "Registrations that are not desired and not managed by this cluster, left unchanged: {}.",
            overview.unclaimed.join(", ")
        ));
    }
    if !overview.released.is_empty() {
        let released = overview.released.join(", ");
        lines.push(format!(
            "Public IPs without the cluster tag, kept when their Service is deleted: {released}."
        ));
    }
    let others = overview.addresses.kept_for_others;
    if others > 0 {
        lines.push(format!("Addresses kept for unmanaged gateway services: {others}."));
    }
    if let Some(first) = chosen.shown.iter().find(|status| status.progress().trouble) {
        lines.push(paint.faint(&format!("Why: sluice explain {}", first.title())));
    }
    lines
}

/// Who answers, in a line.
pub(super) fn who(overview: &Overview, paint: Paint) -> String {
    let Overview { identity, version, role, .. } = overview;
    let up = span(overview.started.age_seconds);
    let line = format!("{identity} ({version}) is {}, up for {up}.", role.word());
    match &overview.leader {
        Some(leader) if leader != identity => paint.busy(&format!("{line} The leader is {leader}.")),
        None if *role != Role::Leader => paint.busy(&format!("{line} The leader is unknown.")),
        _ => paint.faint(&line),
    }
}

fn counted(many: u64, noun: &str) -> String {
    match (many, noun) {
        (1, noun) => format!("1 {noun}"),
        (many, "egress" | "address") => format!("{many} {noun}es"),
        (many, noun) => format!("{many} {noun}s"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;
    use sluice_model::reason::Reason;
    use sluice_view::overview::{Counts, WatchLine};
    use sluice_view::{Addresses, Due, EgressStatus, ServiceStatus, Since, Why};

    use super::*;

    fn since(age_seconds: u64) -> Since {
        Since { at: "2026-11-16T12:00:00Z".into(), age_seconds }
    }

    pub(crate) fn fine() -> Status {
        Status::Service(ServiceStatus {
            namespace: Some("shop".into()),
            name: Some("web".into()),
            uid: "5e1f0000-0000-4000-8000-000000000001".into(),
            progress: Progress {
                state: State::Created,
                since: since(3_700),
                desired: true,
                live: true,
                operation: None,
                attempts: 0,
                last_attempt: Some(since(3_705)),
                next_retry: None,
                parked: false,
                trouble: false,
                why: None,
                last_failure: None,
                public_ip: Some("20.1.2.3".parse().unwrap()),
                addresses: Addresses { desired: 3, programmed: 3, mapped: 3, ..Addresses::default() },
                held: None,
            },
        })
    }

    pub(crate) fn parked() -> Status {
        let Status::Service(ServiceStatus { progress, .. }) = fine() else { unreachable!() };
        let text = "PublicIPCountLimitReached: Cannot create more than 10 public IP addresses\nfor this subscription in this region.";
        Status::Egress(EgressStatus {
            name: "blue".into(),
            is_default: false,
            pods: 2,
            progress: Progress {
                state: State::NotStarted,
                since: since(65),
                live: false,
                attempts: 2,
                last_attempt: Some(since(5)),
                next_retry: Some(Due { at: "2026-11-16T12:10:00Z".into(), in_seconds: 595 }),
                parked: true,
                trouble: true,
                why: Some(Why::new(Reason::QuotaExceeded, text)),
                public_ip: None,
                addresses: Addresses { desired: 2, buffered: 2, ..Addresses::default() },
                held: None,
                ..progress
            },
        })
    }

    pub(crate) fn overview() -> Overview {
        Overview {
            version: "0.1.0".into(),
            identity: "sluice-0".into(),
            cluster_id: "c".into(),
            role: Role::Leader,
            leader: Some("sluice-0".into()),
            started: since(90_000),
            initial_sync: sluice_view::overview::InitialSync { done: true, ..Default::default() },
            watches: Vec::new(),
            services: Counts { total: 1, ..Counts::default() },
            egresses: Counts { total: 1, ..Counts::default() },
            parked: Default::default(),
            trouble: Default::default(),
            azure_trouble: None,
            addresses: Default::default(),
            budget: Vec::new(),
            operations_active: 0,
            mass_deletion_held: 0,
            unclaimed: Vec::new(),
            released: Vec::new(),
            drift: Default::default(),
            orphans: Default::default(),
        }
    }

    const NARROW: Layout = Layout { wide: false, columns: 100, utf8: true };
    const WIDE: Layout = Layout { wide: true, ..NARROW };

    #[test]
    fn columns_line_up_and_a_problem_is_one_line() {
        let text = lines(&[fine(), parked()], NARROW, Paint::NONE).join("\n");
        expect![[r#"
            NAME              STATE       IP        PODS  AGE    PROBLEM
            service/shop/web  Created     20.1.2.3  3/3   1 h    -
            egress/blue       NotStarted  -         0/2   1 min  QuotaExceeded (SGW0008): PublicIPCountLimitRea…"#]]
        .assert_eq(&text);
    }

    #[test]
    fn wide_cuts_nothing_off() {
        let text = lines(&[parked(), fine()], WIDE, Paint::NONE).join("\n");
        assert!(text.contains("for this subscription in this region."), "{text}");
        assert!(text.contains("5e1f0000-0000-4000-8000-000000000001"), "{text}");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = lines(&[fine(), parked()], NARROW, Paint::NONE);
        let painted = lines(&[fine(), parked()], NARROW, Paint::ALWAYS);
        let bare = |line: &String| {
            let mut text = line.clone();
            for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
                text = text.replace(code, "");
            }
            text
        };
        assert_ne!(plain, painted);
        assert_eq!(plain, painted.iter().map(bare).collect::<Vec<_>>());
    }

    /// Many services with names and IPs of all lengths, and one in ten in trouble.
    fn many() -> Vec<Status> {
        let long = "a-namespace-with-a-name-of-sixty-three-characters-as-long-as-it-may";
        (0..800)
            .map(|at| {
                let Status::Service(mut service) = fine() else { unreachable!() };
                let Status::Egress(egress) = parked() else { unreachable!() };
                if at % 10 == 0 {
                    service.progress = egress.progress;
                }
                if at % 7 == 0 {
                    service.namespace = Some(long.into());
                    service.progress.public_ip = Some("2603:1030:20e:3:8000:ffff:1234:5678".parse().unwrap());
                }
                service.name = Some(format!("web-{at}"));
                service.progress.addresses.desired = at * 100;
                Status::Service(service)
            })
            .collect()
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        let all = many();
        for columns in [60, 80, 100, 200] {
            for utf8 in [true, false] {
                let layout = Layout { wide: false, columns, utf8 };
                for line in lines(&all, layout, Paint::NONE) {
                    assert!(line.chars().count() <= columns, "{columns}: {line}");
                    assert!(utf8 || line.is_ascii(), "{line}");
                }
            }
        }
        let text = lines(&all, NARROW, Paint::NONE).join("\n");
        assert!(text.contains("/web-799") && text.contains("QuotaExceeded"), "{text}");
    }

    #[test]
    fn the_locale_says_whether_other_characters_than_ascii_are_shown() {
        let of = |set: &[(&str, &str)]| {
            is_utf8(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(of(&[("LANG", "de_DE.UTF-8")]) && of(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]));
        assert!(!of(&[]) && !of(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]));
    }

    #[test]
    fn trouble_comes_first_and_numbers_are_sorted_by_value() {
        let mut all = many();
        sort(&mut all);
        let titles: Vec<String> = all.iter().map(Status::title).filter(|it| it.contains("shop")).collect();
        assert_eq!(titles[..3], ["service/shop/web-10", "service/shop/web-20", "service/shop/web-30"]);
        assert_eq!(titles.last().map(|it| &**it), Some("service/shop/web-799"));
        let mut names = ["web-10", "web-2", "web-02", "web", "api-1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["api-1", "web", "web-2", "web-02", "web-10"]);
    }

    fn chosen(shown: &[Status]) -> Chosen {
        Chosen { shown: shown.to_vec(), hidden_in_trouble: 0 }
    }

    #[test]
    fn the_summary_names_what_to_look_at_next() {
        let calm = summary(&overview(), &chosen(&[fine()]), Paint::NONE);
        assert_eq!(calm, ["1 Service and 1 egress; none in trouble."]);
        let mut troubled = overview();
        troubled.mass_deletion_held = 7;
        troubled.addresses.kept_for_others = 2;
        troubled.released = vec!["/subscriptions/s/…/publicIPAddresses/web-pip".into()];
        troubled.azure_trouble = Some(Why::new(Reason::AzureUnavailable, "Azure's gateway cannot be listed"));
        troubled.initial_sync.done = false;
        troubled.initial_sync.phase = "gateway".into();
        troubled.initial_sync.gateway_trouble = Some("the subnet is missing".into());
        let lines = summary(&troubled, &chosen(&[fine(), parked()]), Paint::NONE);
        expect![[r#"
            [
                "1 Service and 1 egress; at least 1 in trouble.",
                "AzureUnavailable (SGW0013): Azure's gateway cannot be listed.",
                "Initial sync in progress: waiting for the service gateway: the subnet is missing.",
                "Deletion of 7 gateway services is held; to allow it, run `sluice allow-deletion` (`sluice explain SGW0016`).",
                "Public IPs without the cluster tag, kept when their Service is deleted: /subscriptions/s/…/publicIPAddresses/web-pip.",
                "Addresses kept for unmanaged gateway services: 2.",
                "Why: sluice explain egress/blue",
            ]
        "#]]
        .assert_debug_eq(&lines);
    }

    #[test]
    fn a_live_service_whose_addresses_are_not_programmed_is_in_trouble() {
        let Status::Service(mut service) = fine() else { unreachable!() };
        let text = "1 of 3 addresses are not programmed in Azure";
        service.progress.trouble = true;
        service.progress.why = Some(Why::new(Reason::AzureUnavailable, text));
        let all = [Status::Service(service)];
        let lines = lines(&all, WIDE, Paint::NONE).join("\n");
        assert!(lines.contains("AzureUnavailable (SGW0013): ") && lines.contains(text), "{lines}");
        assert!(summary(&overview(), &chosen(&all), Paint::NONE)[0].ends_with("; 1 in trouble."));
    }

    #[test]
    fn trouble_that_a_filter_hides_is_counted() {
        let first = |shown: &[Status], hidden_in_trouble| {
            let chosen = Chosen { shown: shown.to_vec(), hidden_in_trouble };
            summary(&overview(), &chosen, Paint::ALWAYS).remove(0)
        };
        let more = "not shown here (`sluice status --trouble` shows all)";
        let bad = |words: String| format!("1 Service and 1 egress; {}.", Paint::ALWAYS.bad(&words));
        assert_eq!(first(&[fine()], 2), bad(format!("2 in trouble, {more}")));
        assert_eq!(first(&[fine(), parked()], 2), bad(format!("3 in trouble, 2 {more}")));
        assert_eq!(first(&[fine(), parked()], 0), bad("1 in trouble".into()));
    }

    #[test]
    fn a_replica_that_cannot_know_does_not_say_that_none_is_in_trouble() {
        type Change = fn(&mut Overview);
        let kinds: [(Change, &str); 8] = [
            (
                |it| it.role = Role::Standby,
                "sluice-0 is not the leader, so trouble is unknown: run `sluice status` without --address",
            ),
            (|it| it.role = Role::Candidate, "sluice-0 is not the leader"),
            (|it| it.role = Role::Unknown, "sluice-0 is not the leader"),
            (
                |it| it.azure_trouble = Some(Why::new(Reason::AzureUnavailable, "Azure cannot be listed.")),
                "AzureUnavailable (SGW0013): Azure cannot be listed.",
            ),
            (
                |it| it.initial_sync.gateway_trouble = Some("the subnet is missing".into()),
                "Service gateway unusable: the subnet is missing.",
            ),
            (
                |it| (it.initial_sync.done, it.initial_sync.phase) = (false, "reading-azure".into()),
                "Initial sync in progress: reading from Azure.",
            ),
            (
                |it| {
                    let trouble = Some("connection refused".into());
                    it.watches = vec![WatchLine {
                        kind: "pods".into(),
                        listed: true,
                        trouble,
                        ..WatchLine::default()
                    }];
                },
                "Watch of pods: connection refused.",
            ),
            (
                |it| it.watches = vec![WatchLine { kind: "pods".into(), ..WatchLine::default() }],
                "Watch of pods: not listed yet.",
            ),
        ];
        for (change, why) in kinds {
            let mut blind = overview();
            change(&mut blind);
            let text = summary(&blind, &chosen(&[fine()]), Paint::ALWAYS).join("\n");
            assert!(text.contains("trouble: unknown") && text.contains(why), "{text}");
            assert!(!text.contains("none in trouble") && !text.contains("\x1b[32m"), "{text}");
            let text = summary(&blind, &chosen(&[parked()]), Paint::NONE).join("\n");
            assert!(text.contains("; at least 1 in trouble."), "{text}");
        }
    }

    #[test]
    fn a_leader_that_works_off_the_first_difference_knows_what_is_in_trouble() {
        let mut busy = overview();
        busy.initial_sync = sluice_view::overview::InitialSync {
            phase: "initial-sync".into(),
            left: 3,
            ..Default::default()
        };
        assert_eq!(
            summary(&busy, &chosen(&[fine()]), Paint::NONE),
            ["1 Service and 1 egress; none in trouble.", "Initial sync in progress: 3 operations left."]
        );
    }

    #[test]
    fn a_standby_says_who_leads() {
        let mut standby = overview();
        assert!(!who(&standby, Paint::NONE).contains("leader is"));
        standby.identity = "sluice-1".into();
        standby.role = Role::Standby;
        let line = who(&standby, Paint::NONE);
        assert!(
            line.starts_with("sluice-1 (0.1.0) is standby, up for 1 d 1 h.")
                && line.contains("leader is sluice-0"),
            "{line}"
        );
        standby.leader = None;
        let line = who(&standby, Paint::NONE);
        assert!(line.ends_with(" The leader is unknown."), "{line}");
    }
}
