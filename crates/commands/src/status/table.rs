//! A table for people: one line for every service and egress.

use sluice_view::moment::span;
use sluice_view::overview::Role;
use sluice_view::{Overview, Progress, State, Status};

use super::Chosen;
use crate::paint::Paint;

/// Characters of a problem in a line that is not wide.
const PROBLEM_MAX: usize = 70;

/// The columns of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Everything, and nothing cut off.
    pub(super) wide: bool,
}

impl Layout {
    fn titles(self) -> Vec<&'static str> {
        let mut titles = vec![
            "NAME",
            "STATE",
            "SINCE",
            "IP",
            "PODS",
            "WANTED",
            "BUFFERED",
            "PROGRAMMED",
            "ATTEMPTS",
            "LAST",
            "NEXT",
        ];
        if self.wide {
            titles.extend(["MAPPED", "REFUSED", "OPERATION", "ID"]);
        }
        titles.push("PROBLEM");
        titles
    }

    fn cells(self, status: &Status) -> Vec<String> {
        let progress = status.progress();
        let addresses = &progress.addresses;
        let dash = || "-".to_owned();
        let pods = match status {
            Status::Egress(egress) => egress.pods.to_string(),
            Status::Service(_) => dash(),
        };
        let mut cells = vec![
            status.title(),
            state_word(progress),
            span(progress.since.age_seconds),
            progress.public_ip.map_or_else(dash, |ip| ip.to_string()),
            pods,
            addresses.wanted.to_string(),
            addresses.buffered.to_string(),
            addresses.programmed.to_string(),
            progress.attempts.to_string(),
            progress.last_attempt.as_ref().map_or_else(dash, |at| format!("{} ago", span(at.age_seconds))),
            progress.next_retry.as_ref().map_or_else(dash, |due| match due.in_seconds {
                0 => "now".to_owned(),
                seconds => format!("in {}", span(seconds)),
            }),
        ];
        if self.wide {
            let id = match status {
                Status::Service(service) => service.uid.clone(),
                Status::Egress(_) => dash(),
            };
            cells.extend([
                addresses.mapped.to_string(),
                addresses.quarantined.to_string(),
                progress.operation.clone().unwrap_or_else(dash),
                id,
            ]);
        }
        let problem = problem(progress);
        cells.push(if self.wide { problem } else { cut(&problem) });
        cells
    }
}

/// What is said about everything, as lines: a head and one line each.
pub(super) fn lines(all: &[Status], layout: Layout, paint: Paint) -> Vec<String> {
    let titles = layout.titles();
    let rows: Vec<Vec<String>> = all.iter().map(|status| layout.cells(status)).collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| {
            let widest = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0).max(titles[at].len())
        })
        .collect();
    let head: Vec<String> = titles.iter().map(ToString::to_string).collect();
    let mut lines = vec![line(&head, &widths, |_, text| paint.bold(text))];
    for (status, row) in all.iter().zip(&rows) {
        let progress = status.progress();
        lines.push(line(row, &widths, |at, text| match titles[at] {
            "STATE" => painted(progress, text, paint),
            "PROBLEM" if progress.trouble => paint.bad(text),
            _ => text.to_owned(),
        }));
    }
    lines
}

/// Padded first and painted afterwards, since colours have no width.
fn line(cells: &[String], widths: &[usize], paint: impl Fn(usize, &str) -> String) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at + 1 == cells.len() {
            text.push_str(&paint(at, cell));
        } else {
            text.push_str(&paint(at, &format!("{cell:<width$}")));
            text.push_str("   ");
        }
    }
    text.trim_end().to_owned()
}

fn state_word(progress: &Progress) -> String {
    match (progress.parked, progress.trouble) {
        (true, _) => format!("{} (parked)", progress.state),
        (false, true) => format!("{} (trouble)", progress.state),
        (false, false) => progress.state.to_string(),
    }
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

fn cut(text: &str) -> String {
    // One line is one line, whatever Azure wrote.
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= PROBLEM_MAX {
        return flat;
    }
    let mut short: String = flat.chars().take(PROBLEM_MAX - 1).collect();
    short.push('…');
    short
}

/// What keeps the replica from knowing all that is in trouble, in sentences; none if it knows. `--check` reads the
/// same.
pub(super) fn doubts(overview: &Overview) -> Vec<String> {
    let mut doubts = Vec::new();
    if overview.role != Role::Leader {
        doubts.push(format!(
            "Only the leader knows what is in trouble, and {} does not lead: `sluice status` without an address \
             finds the leader by its Lease.",
            overview.identity
        ));
    }
    if let Some(why) = &overview.azure_trouble {
        doubts.push(format!("{} ({}): {}.", why.reason, why.code, why.message.trim_end_matches('.')));
    }
    let sync = &overview.initial_sync;
    match &sync.gateway_trouble {
        Some(trouble) if sync.done => doubts.push(format!("The service gateway cannot be used: {trouble}.")),
        _ if has_gaps(overview) => doubts.push(sync_line(overview)),
        _ => {}
    }
    for watch in overview.watches.iter().filter(|watch| watch.trouble.is_some() || !watch.listed) {
        let trouble = watch.trouble.as_deref().unwrap_or("not listed yet");
        doubts.push(format!("The watch of {}: {}.", watch.kind, trouble.trim_end_matches('.')));
    }
    doubts
}

/// Whether a leader has not read everything yet. What it works off afterwards it knows.
fn has_gaps(overview: &Overview) -> bool {
    let sync = &overview.initial_sync;
    let reads = sync.phase != "working-off" || sync.gateway_trouble.is_some();
    overview.role == Role::Leader && !sync.done && reads
}

fn sync_line(overview: &Overview) -> String {
    let sync = &overview.initial_sync;
    let at = match &*sync.phase {
        "reading-kubernetes" => ": reading from Kubernetes".into(),
        "reading-azure" => ": reading from Azure".into(),
        "gateway" => ": waiting for the service gateway".into(),
        "working-off" if sync.left == 1 => ": 1 operation left".into(),
        "working-off" => format!(": {} operations left", sync.left),
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
        _ => format!(", {hidden} of them not shown here (`sluice status --trouble` shows all)"),
    };
    paint.bad(&format!("{at_least}{many} in trouble{not_shown}"))
}

/// A few sentences about the whole, and what to look at next.
pub(super) fn summary(overview: &Overview, chosen: &Chosen, paint: Paint) -> Vec<String> {
    let doubts = doubts(overview);
    let mut lines = vec![format!(
        "{} and {}; {}.",
        counted(overview.services.total, "service"),
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
            lines.push(paint.busy(&format!("Azure asked for a pause of {}: another {left}.", lane.lane)));
        }
    }
    if overview.mass_deletion_held > 0 {
        let held = counted(overview.mass_deletion_held, "service");
        lines.push(paint.bad(&format!("The deletion of {held} is held; to delete them, run `sluice allow-deletion` (`sluice explain SGW0016`).")));
    }
    if !overview.unclaimed.is_empty() {
        lines.push(format!("Not provably ours, and unwanted: {}.", overview.unclaimed.join(", ")));
    }
    if !overview.released.is_empty() {
        let released = overview.released.join(", ");
        lines.push(format!(
            "Public IPs without the cluster tag, kept when their service is deleted: {released}."
        ));
    }
    let others = overview.addresses.kept_for_others;
    if others > 0 {
        lines.push(format!("Kept for services that Sluice does not manage: {}.", counted(others, "address")));
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
        None if *role != Role::Leader => paint.busy(&format!("{line} It does not know who leads.")),
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
                wanted: true,
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
                addresses: Addresses { wanted: 3, programmed: 3, mapped: 3, ..Addresses::default() },
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
                addresses: Addresses { wanted: 2, buffered: 2, ..Addresses::default() },
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

    #[test]
    fn columns_line_up_and_a_problem_is_one_line() {
        let text = lines(&[fine(), parked()], Layout { wide: false }, Paint::NONE).join("\n");
        expect![[r#"
            NAME               STATE                 SINCE       IP         PODS   WANTED   BUFFERED   PROGRAMMED   ATTEMPTS   LAST            NEXT            PROBLEM
            service/shop/web   Created               1 h 1 min   20.1.2.3   -      3        0          3            0          1 h 1 min ago   -               -
            egress/blue        NotStarted (parked)   1 min 5 s   -          2      2        2          0            2          5 s ago         in 9 min 55 s   QuotaExceeded (SGW0008): PublicIPCountLimitReached: Cannot create mor…"#]]
        .assert_eq(&text);
    }

    #[test]
    fn wide_cuts_nothing_off() {
        let text = lines(&[parked(), fine()], Layout { wide: true }, Paint::NONE).join("\n");
        assert!(text.contains("for this subscription in this region."), "{text}");
        assert!(text.contains("5e1f0000-0000-4000-8000-000000000001"), "{text}");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = lines(&[fine(), parked()], Layout { wide: false }, Paint::NONE);
        let painted = lines(&[fine(), parked()], Layout { wide: false }, Paint::ALWAYS);
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

    fn chosen(shown: &[Status]) -> Chosen {
        Chosen { shown: shown.to_vec(), hidden_in_trouble: 0 }
    }

    #[test]
    fn the_summary_names_what_to_look_at_next() {
        let calm = summary(&overview(), &chosen(&[fine()]), Paint::NONE);
        assert_eq!(calm, ["1 service and 1 egress; none in trouble."]);
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
                "1 service and 1 egress; at least 1 in trouble.",
                "AzureUnavailable (SGW0013): Azure's gateway cannot be listed.",
                "Initial sync in progress: waiting for the service gateway: the subnet is missing.",
                "The deletion of 7 services is held; to delete them, run `sluice allow-deletion` (`sluice explain SGW0016`).",
                "Public IPs without the cluster tag, kept when their service is deleted: /subscriptions/s/…/publicIPAddresses/web-pip.",
                "Kept for services that Sluice does not manage: 2 addresses.",
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
        let lines = lines(&all, Layout { wide: true }, Paint::NONE).join("\n");
        assert!(lines.contains("Created (trouble)") && lines.contains(text), "{lines}");
        assert!(summary(&overview(), &chosen(&all), Paint::NONE)[0].ends_with("; 1 in trouble."));
    }

    #[test]
    fn trouble_that_a_filter_hides_is_counted() {
        let first = |shown: &[Status], hidden_in_trouble| {
            let chosen = Chosen { shown: shown.to_vec(), hidden_in_trouble };
            summary(&overview(), &chosen, Paint::ALWAYS).remove(0)
        };
        let more = "not shown here (`sluice status --trouble` shows all)";
        let bad = |words: String| format!("1 service and 1 egress; {}.", Paint::ALWAYS.bad(&words));
        assert_eq!(first(&[fine()], 2), bad(format!("2 in trouble, {more}")));
        assert_eq!(first(&[fine(), parked()], 2), bad(format!("3 in trouble, 2 of them {more}")));
        assert_eq!(first(&[fine(), parked()], 0), bad("1 in trouble".into()));
    }

    #[test]
    fn a_replica_that_cannot_know_does_not_say_that_none_is_in_trouble() {
        type Change = fn(&mut Overview);
        let kinds: [(Change, &str); 8] = [
            (|it| it.role = Role::Standby, "sluice-0 does not lead: `sluice status` without an address"),
            (|it| it.role = Role::Candidate, "Only the leader knows"),
            (|it| it.role = Role::Unknown, "Only the leader knows"),
            (
                |it| it.azure_trouble = Some(Why::new(Reason::AzureUnavailable, "Azure cannot be listed.")),
                "AzureUnavailable (SGW0013): Azure cannot be listed.",
            ),
            (
                |it| it.initial_sync.gateway_trouble = Some("the subnet is missing".into()),
                "The service gateway cannot be used: the subnet is missing.",
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
                "The watch of pods: connection refused.",
            ),
            (
                |it| it.watches = vec![WatchLine { kind: "pods".into(), ..WatchLine::default() }],
                "The watch of pods: not listed yet.",
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
        busy.initial_sync =
            sluice_view::overview::InitialSync { phase: "working-off".into(), left: 3, ..Default::default() };
        assert_eq!(
            summary(&busy, &chosen(&[fine()]), Paint::NONE),
            ["1 service and 1 egress; none in trouble.", "Initial sync in progress: 3 operations left."]
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
        assert!(line.ends_with(" It does not know who leads."), "{line}");
    }
}
