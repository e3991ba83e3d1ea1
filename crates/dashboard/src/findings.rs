//! What is worth knowing, in plain sentences: the worst first, each with the next step and where to look.
//!
//! A finding says one thing about many: a reason is told once, with the first few names and a link
//! to all of them. Whether a service is in trouble is the controller's rule alone. Sentences have no ages in
//! them beyond fixed marks ("over 5 minutes"), so that one that is read aloud when it changes is not read aloud every second.

use std::collections::BTreeMap;

use sluice_view::overview::Role;
use sluice_view::{EgressStatus, Overview, ServiceStatus, State};

use crate::advice;
use crate::rows::{Filter, Kind, Row};
use crate::words::{both, count, ended, grouped, phase};

/// Names that a finding has before it says how many more there are.
const NAMES_MAX: usize = 3;

/// How bad it is, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Something does not work, and a person has to act.
    Trouble,
    /// Something is slow or fails, and may mend by itself.
    Warning,
    /// Worth knowing.
    Note,
    /// As it should be.
    Fine,
}

impl Severity {
    /// The fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Trouble => "trouble",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Fine => "fine",
        }
    }
}

/// A name with its page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// What it is called.
    pub text: String,
    /// Where it leads.
    pub href: String,
}

/// One thing worth knowing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A sentence without its end: names or a full stop follow.
    pub sentence: String,
    /// The first of those whom it concerns.
    pub names: Vec<Link>,
    /// How many more there are.
    pub more: u64,
    /// What one can do.
    pub next_step: Option<String>,
    /// Where all of them are.
    pub all: Option<Link>,
}

impl Finding {
    fn new(severity: Severity, sentence: impl Into<String>) -> Finding {
        Finding {
            severity,
            sentence: sentence.into(),
            names: Vec::new(),
            more: 0,
            next_step: None,
            all: None,
        }
    }

    fn then(mut self, next_step: impl Into<String>) -> Finding {
        self.next_step = Some(next_step.into());
        self
    }

    /// Names the first of them, and leads to where all are: only these, or a table with these in it.
    fn naming(mut self, rows: &[&Row<'_>], of: &[Row<'_>], filter: &Filter) -> Finding {
        let first = rows.iter().take(NAMES_MAX);
        self.names = first.map(|row| Link { text: row.title.clone(), href: row.href.clone() }).collect();
        self.more = rows.len().saturating_sub(NAMES_MAX) as u64;
        if rows.len() > 1 {
            let lets_through = filter.sieve();
            let is_exact = of.iter().filter(|row| lets_through(row)).count() == rows.len();
            let text = if is_exact {
                format!("Show all {}", grouped(rows.len() as u64))
            } else {
                "Show the table".to_owned()
            };
            self.all = Some(Link { text, href: format!("{}#table", filter.href()) });
        }
        self
    }

    /// The whole as one text.
    pub fn text(&self) -> String {
        let mut text = self.sentence.clone();
        if !self.names.is_empty() {
            let names: Vec<&str> = self.names.iter().map(|link| link.text.as_str()).collect();
            text = format!("{text}: {}", names.join(", "));
        }
        if self.more > 0 {
            text = format!("{text} and {} more", grouped(self.more));
        }
        let text = ended(&text);
        match &self.next_step {
            Some(step) => format!("{text} {step}"),
            None => text,
        }
    }
}

/// Everything worth knowing, the worst first.
pub fn findings(overview: &Overview, services: &[ServiceStatus], egresses: &[EgressStatus]) -> Vec<Finding> {
    let mut rows: Vec<Row<'_>> =
        services.iter().map(Row::service).chain(egresses.iter().map(Row::egress)).collect();
    rows.sort_by(|a, b| a.title.cmp(&b.title));
    let mut all = Vec::new();
    about_the_controller(overview, &mut all);
    held_back(&rows, &mut all);
    addresses(&rows, &mut all);
    // Those of one severity stay in the order in which they were found.
    all.sort_by_key(|finding| finding.severity);
    let mut last = served(overview, &rows);
    let is_trouble = all.first().is_some_and(|worst| worst.severity < Severity::Note);
    if last.severity == Severity::Fine && (is_trouble || overview.role != Role::Leader) {
        // Nothing is shown as fine beside trouble, or by a replica that does not act.
        last.severity = Severity::Note;
    }
    all.push(last);
    all
}

fn about_the_controller(overview: &Overview, all: &mut Vec<Finding>) {
    if let Some(why) = &overview.initial_sync.gateway_trouble {
        let sentence = format!("The gateway is unavailable: {}", why.trim_end_matches('.'));
        all.push(
            Finding::new(Severity::Trouble, sentence).then("Run `sluice doctor` to see what is missing."),
        );
    }
    if let Some(why) = &overview.azure_trouble {
        let step = "Data from Azure may be stale. Check the Azure status page, and run `sluice doctor` to check network, credential and permissions.";
        all.push(Finding::new(Severity::Trouble, why.message.trim_end_matches('.')).then(step));
    }
    for watch in &overview.watches {
        if let Some(trouble) = &watch.trouble {
            let kind = &watch.kind;
            let sentence = format!("The watch on {kind} is failing: {}", trouble.trim_end_matches('.'));
            let step = format!(
                "Changes to {kind} are not processed until the watch recovers. Run `sluice doctor` to check the API server and the permissions."
            );
            all.push(Finding::new(Severity::Trouble, sentence).then(step));
        }
        if watch.skipped > 0 {
            let objects = count(watch.skipped, "object", "objects");
            let sentence = format!("The watch on {} skipped {objects} with invalid content", watch.kind);
            all.push(Finding::new(Severity::Warning, sentence).then("See the controller log for the names."));
        }
    }
    if overview.mass_deletion_held > 0 {
        let deletions = count(overview.mass_deletion_held, "deletion", "deletions");
        let sentence = format!("The mass-deletion guard holds {deletions}: too many at once");
        let mut finding = Finding::new(Severity::Trouble, sentence)
            .then("Review `sluice plan`. If the deletions are intended, run `sluice allow-deletion`.");
        let filter = Filter { state: Some(State::DeletionPending), ..Filter::default() };
        finding.all =
            Some(Link { text: "Show pending deletions".into(), href: format!("{}#table", filter.href()) });
        all.push(finding);
    }
    for lane in &overview.budget {
        if lane.paused_until.as_ref().is_some_and(|due| due.in_seconds > 0) {
            let waiting = match lane.queued {
                0 => String::new(),
                queued => format!("; {}", count(queued, "call is waiting", "calls are waiting")),
            };
            let sentence = format!("Azure throttles {}{waiting}", lane.lane.replace('-', " "));
            all.push(Finding::new(Severity::Warning, sentence));
        }
    }
    if !overview.unclaimed.is_empty() {
        let many = overview.unclaimed.len() as u64;
        let names: Vec<&str> = overview.unclaimed.iter().take(NAMES_MAX).map(String::as_str).collect();
        let registrations = count(many, "unmanaged registration", "unmanaged registrations");
        let sentence = format!("{registrations} in the gateway: {}", names.join(", "));
        let mut finding = Finding::new(Severity::Warning, sentence)
            .then("Sluice does not change unmanaged registrations. No Service or egress needs these; delete them if they are unused.");
        finding.more = many.saturating_sub(NAMES_MAX as u64);
        all.push(finding);
    }
    match overview.role {
        Role::Standby => {
            let leader = overview.leader.as_deref().unwrap_or("another replica");
            let sentence = format!("This replica is on standby; the leader is {leader}");
            all.push(
                Finding::new(Severity::Note, sentence)
                    .then("For the current state, open the dashboard of the leader."),
            );
        }
        Role::Candidate => {
            all.push(Finding::new(Severity::Note, "This replica does not know the leader yet"));
        }
        Role::Leader if !overview.initial_sync.done => {
            let left = match overview.initial_sync.left {
                0 => String::new(),
                left => format!(", {} left", count(left, "gateway service", "gateway services")),
            };
            let phase = phase(&overview.initial_sync.phase);
            all.push(Finding::new(Severity::Note, format!("Initial sync in progress: {phase}{left}")));
        }
        Role::Leader | Role::Unknown => {}
    }
    let drift = overview.drift.found.saturating_sub(overview.drift.repaired);
    if drift > 0 {
        let sentence = format!("Repairing drift: {} made outside Sluice", count(drift, "change", "changes"));
        all.push(Finding::new(Severity::Note, sentence));
    }
}

/// What waits for a reason, one finding for each.
fn held_back(rows: &[Row<'_>], all: &mut Vec<Finding>) {
    let mut by_reason: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        let reason = row.progress.why.as_ref().map(|why| why.reason.as_str());
        // The mass-deletion guard is told once for all, and addresses are told as such.
        let is_told = |reason: &str| {
            reason == "MassDeletionHeld"
                || reason == "Rejected" && row.progress.addresses.quarantined > 0
                || waits_for_nodes(row)
        };
        if let Some(reason) = reason.filter(|reason| !is_told(reason)) {
            by_reason.entry(reason).or_default().push(row);
        }
    }
    for (reason, held) in by_reason {
        let telling = advice::telling(reason);
        let verb = if held.len() == 1 { telling.one } else { telling.many };
        let filter = Filter { text: reason.into(), ..Filter::default() };
        let finding = Finding::new(telling.severity, format!("{} {verb}", subjects(&held)));
        all.push(finding.then(telling.next_step).naming(&held, rows, &filter));
    }
    let failing: Vec<&Row<'_>> =
        rows.iter().filter(|row| row.progress.attempts > 0 && row.progress.why.is_none()).collect();
    if !failing.is_empty() {
        let finding = Finding::new(
            Severity::Warning,
            format!("Sluice retries {} after a failed attempt", subjects(&failing)),
        );
        let step = "Open an entry to see the answer from Azure and the time of the next attempt.";
        all.push(finding.then(step).naming(
            &failing,
            rows,
            &Filter { order: crate::rows::Order::Attempts, ..Filter::default() },
        ));
    }
}

fn addresses(rows: &[Row<'_>], all: &mut Vec<Finding>) {
    let by_addresses = Filter { order: crate::rows::Order::Attention, ..Filter::default() };
    let refused: Vec<&Row<'_>> = rows.iter().filter(|row| row.progress.addresses.quarantined > 0).collect();
    if !refused.is_empty() {
        let total = refused.iter().map(|row| row.progress.addresses.quarantined).sum();
        let sentence =
            format!("Azure rejects {} of {}", count(total, "address", "addresses"), subjects(&refused));
        let step = "Rejected addresses are quarantined and retried; other addresses are not affected. See the controller log for the answer from Azure.";
        all.push(Finding::new(Severity::Trouble, sentence).then(step).naming(&refused, rows, &by_addresses));
    }
    let homeless: Vec<&Row<'_>> = rows.iter().filter(|row| waits_for_nodes(row)).collect();
    if !homeless.is_empty() {
        let total = homeless.iter().map(|row| row.progress.addresses.unplaceable).sum();
        let are = if total == 1 { "is" } else { "are" };
        let sentence = format!(
            "{} of {} {are} not programmed because their node has no usable IP",
            count(total, "address", "addresses"),
            subjects(&homeless)
        );
        let step = "Check that the nodes have an InternalIP of the same family: `kubectl get nodes -o wide`.";
        all.push(Finding::new(Severity::Warning, sentence).then(step).naming(&homeless, rows, &by_addresses));
    }
}

/// Whether it is in trouble because of the nodes of its addresses, and not because of its spec, which parks it.
fn waits_for_nodes(row: &Row<'_>) -> bool {
    let progress = row.progress;
    let is_so = progress.why.as_ref().is_some_and(|why| why.reason == "InvalidSpec");
    progress.trouble && is_so && !progress.parked && progress.addresses.unplaceable > 0
}

/// The last line: how much of what is wanted is served.
fn served(overview: &Overview, rows: &[Row<'_>]) -> Finding {
    let wanted: Vec<&Row<'_>> = rows.iter().filter(|row| row.progress.desired).collect();
    let live = wanted.iter().filter(|row| row.progress.live && !row.progress.trouble).count();
    if wanted.is_empty() {
        let sentence = match rows.is_empty() {
            true => "No Services or egresses yet",
            false => "No Services or egresses are desired; the remaining Azure resources are being deleted",
        };
        let finding = Finding::new(Severity::Note, sentence);
        return match rows.is_empty() && overview.initial_sync.done {
            true => finding.then("Create a Service of type LoadBalancer, or add an egress label to a pod."),
            false => finding,
        };
    }
    if live == wanted.len() {
        let are = if wanted.len() == 1 { "is" } else { "are" };
        let all = if wanted.len() == 1 { "" } else { "All " };
        return Finding::new(Severity::Fine, format!("{all}{} {are} served", subjects(&wanted)));
    }
    let services = wanted.iter().filter(|row| row.kind == Kind::Service).count();
    let nouns = match services {
        0 => "egresses",
        all if all == wanted.len() => "Services",
        _ => "Services and egresses",
    };
    let sentence =
        format!("{} of {} {nouns} are served as desired", grouped(live as u64), grouped(wanted.len() as u64));
    Finding::new(Severity::Note, sentence)
}

fn subjects(rows: &[&Row<'_>]) -> String {
    let services = rows.iter().filter(|row| row.kind == Kind::Service).count() as u64;
    both(services, rows.len() as u64 - services)
}

#[cfg(test)]
pub(crate) mod tests {
    use sluice_model::reason::Reason;
    use sluice_view::overview::{AddressTotals, Counts, InitialSync, Lane, WatchLine};
    use sluice_view::{Due, Since, Why};

    use super::*;
    use crate::rows::tests::{egress, parked, service};

    pub(crate) fn overview() -> Overview {
        Overview {
            version: "0.1.0".into(),
            identity: "sluice-0".into(),
            cluster_id: "prod-westeurope".into(),
            role: Role::Leader,
            leader: Some("sluice-0".into()),
            started: Since { at: "2026-11-16T02:00:00Z".into(), age_seconds: 2_400 },
            initial_sync: InitialSync { phase: "done".into(), done: true, ..InitialSync::default() },
            watches: Vec::new(),
            services: Counts::default(),
            egresses: Counts::default(),
            parked: BTreeMap::new(),
            trouble: BTreeMap::new(),
            azure_trouble: None,
            addresses: AddressTotals::default(),
            budget: Vec::new(),
            operations_active: 0,
            mass_deletion_held: 0,
            unclaimed: Vec::new(),
            released: Vec::new(),
            drift: Default::default(),
            orphans: Default::default(),
        }
    }

    fn texts(overview: &Overview, services: &[ServiceStatus], egresses: &[EgressStatus]) -> Vec<String> {
        findings(overview, services, egresses).iter().map(Finding::text).collect()
    }

    #[test]
    fn when_all_is_well_one_sentence_says_so() {
        let services: Vec<_> =
            (0..214).map(|n| service("shop", &format!("web-{n}"), State::Created)).collect();
        assert_eq!(texts(&overview(), &services, &[]), ["All 214 Services are served."]);
        let egresses = [egress("blue", State::Created)];
        assert_eq!(texts(&overview(), &services, &egresses), ["All 214 Services and 1 egress are served."]);
        assert_eq!(texts(&overview(), &[], &egresses), ["1 egress is served."]);
        assert!(texts(&overview(), &[], &[])[0].starts_with("No Services or egresses yet. Create a Service"));
    }

    #[test]
    fn what_waits_for_one_reason_is_told_once_with_its_next_step_and_a_link_to_all() {
        let services: Vec<_> = ["api", "web", "cart", "pay", "mail"]
            .map(|name| parked(service("shop", name, State::NotStarted), Reason::QuotaExceeded))
            .to_vec();
        let found = findings(&overview(), &services, &[]);
        assert!(
            found[0].text().starts_with(
                "5 Services waiting for Azure quota: shop/api, shop/cart, shop/mail and 2 more. Request a higher limit"
            ),
            "{}",
            found[0].text()
        );
        assert_eq!(found[0].severity, Severity::Trouble);
        assert_eq!(found[0].names[0].href, "/services/shop/api");
        assert_eq!(found[0].all.as_ref().unwrap().href, "/?q=QuotaExceeded#table");
        assert_eq!(found[1].text(), "0 of 5 Services are served as desired.");

        let one = &services[..1];
        assert!(texts(&overview(), one, &[])[0].starts_with("1 Service waiting for Azure quota: shop/api."));
        assert_eq!(findings(&overview(), one, &[])[0].all, None);
    }

    #[test]
    fn a_link_says_how_many_it_shows_only_if_it_shows_these_and_no_others() {
        let refused = |name: &str, reason| parked(service("shop", name, State::NotStarted), reason);
        let links = |services: &[ServiceStatus]| -> Vec<String> {
            let all = findings(&overview(), services, &[]);
            all.into_iter().filter_map(|finding| finding.all).map(|link| link.text).collect()
        };
        let mut services = vec![refused("a", Reason::Rejected), refused("b", Reason::Rejected)];
        assert_eq!(links(&services), ["Show all 2"]);
        // A search for the one word finds the other too.
        services.push(refused("c", Reason::KubernetesRejected));
        assert_eq!(links(&services), ["Show the table"]);
        let mut aside = ["d", "e"].map(|name| service("shop", name, State::Created)).to_vec();
        for service in &mut aside {
            service.progress.addresses.quarantined = 1;
        }
        assert_eq!(links(&aside), ["Show all 2"], "there are no others");
        aside.push(service("shop", "f", State::Created));
        assert_eq!(links(&aside), ["Show the table"]);
    }

    #[test]
    fn the_worst_comes_first_and_how_much_is_served_last() {
        let mut overview = overview();
        overview.mass_deletion_held = 40;
        overview.watches = vec![WatchLine {
            kind: "pods".into(),
            trouble: Some("the API server refuses it: pods is forbidden.".into()),
            ..WatchLine::default()
        }];
        overview.budget = vec![Lane {
            lane: "service-writes".into(),
            queued: 12,
            paused_until: Some(Due { at: "2026-11-16T02:41:00Z".into(), in_seconds: 17 }),
            ..Lane::default()
        }];
        overview.unclaimed = ["a", "b", "c", "d"].map(String::from).to_vec();
        let late = in_trouble(service("shop", "old", State::DeletionInProgress), Reason::Deleting);
        let mut fresh = service("shop", "new", State::DeletionPending);
        fresh.progress.since.age_seconds = 86_400;
        let mut refused = service("shop", "odd", State::Created);
        refused.progress.addresses.quarantined = 2;
        let told = findings(&overview, &[late, fresh, refused], &[]);
        let begins = [
            "The watch on pods is failing: the API server refuses it: pods is forbidden. Changes to pods are not",
            "The mass-deletion guard holds 40 deletions: too many at once. Review",
            "Azure rejects 2 addresses of 1 Service: shop/odd. Rejected addresses are quarantined",
            "Azure throttles service writes; 12 calls are waiting.",
            "4 unmanaged registrations in the gateway: a, b, c and 1 more. Sluice does not change",
            "1 Service in deletion for over 5 min: shop/old. Open one",
            "1 Service is served.",
        ];
        assert_eq!(told.len(), begins.len(), "{told:#?}");
        for (finding, begin) in told.iter().zip(begins) {
            assert!(finding.text().starts_with(begin), "{}", finding.text());
        }
        assert!(told.is_sorted_by_key(|finding| finding.severity));
    }

    fn in_trouble(mut service: ServiceStatus, reason: Reason) -> ServiceStatus {
        service.progress.trouble = true;
        service.progress.why = Some(Why::new(reason, "as the rule says"));
        service
    }

    #[test]
    fn what_takes_long_is_told_by_the_rule_of_the_controller_and_by_no_age() {
        let old = |state| {
            let mut service = service("shop", "web", state);
            service.progress.since.age_seconds = 86_400;
            service
        };
        for (state, reason, begin) in [
            (State::CreationInProgress, Reason::Provisioning, "1 Service in creation for over 5 min"),
            (
                State::UpdateInProgress,
                Reason::Updating,
                "1 Service different from the desired state for over 5 min",
            ),
            (State::DeletionInProgress, Reason::Deleting, "1 Service in deletion for over 5 min"),
        ] {
            let told = texts(&overview(), &[in_trouble(old(state), reason)], &[]);
            assert!(told[0].starts_with(begin), "{told:?}");
            assert_eq!(texts(&overview(), &[old(state)], &[]).len(), 1);
        }
    }

    #[test]
    fn addresses_that_wait_for_a_node_are_told_when_the_rule_says_so() {
        let mut waits = service("shop", "web", State::Created);
        waits.progress.addresses.unplaceable = 2;
        assert_eq!(texts(&overview(), &[waits.clone()], &[]), ["1 Service is served."]);
        let told = texts(&overview(), &[in_trouble(waits.clone(), Reason::InvalidSpec)], &[]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with(
                "2 addresses of 1 Service are not programmed because their node has no usable IP"
            ),
            "{told:?}"
        );
        assert_eq!(told[1], "0 of 1 Services are served as desired.");
        // A spec that is rejected is another matter.
        let told = texts(&overview(), &[parked(waits, Reason::InvalidSpec)], &[]);
        assert!(told[0].starts_with("1 Service with an unsupported spec"), "{told:?}");
    }

    #[test]
    fn nothing_is_fine_while_a_live_service_is_in_trouble_or_azure_cannot_be_listed() {
        let mut stuck = service("shop", "web", State::Created);
        stuck.progress.trouble = true;
        stuck.progress.why = Some(Why::new(Reason::AzureUnavailable, "4 of 6 addresses are not programmed"));
        let told = findings(&overview(), &[stuck, service("shop", "api", State::Created)], &[]);
        assert!(
            told[0].text().starts_with("1 Service waiting because Azure does not complete a request"),
            "{}",
            told[0].text()
        );
        assert_eq!(told[1].text(), "1 of 2 Services are served as desired.");
        assert!(told.iter().all(|finding| finding.severity != Severity::Fine));

        let mut overview = overview();
        overview.azure_trouble = Some(Why::new(Reason::AzureUnavailable, "Azure's gateway cannot be listed"));
        let told = findings(&overview, &[service("shop", "api", State::Created)], &[]);
        assert!(
            told[0].text().starts_with("Azure's gateway cannot be listed. Data from Azure may be stale.")
        );
        assert!(told.iter().all(|finding| finding.severity != Severity::Fine));

        overview.azure_trouble = None;
        overview.role = Role::Standby;
        let told = findings(&overview, &[service("shop", "api", State::Created)], &[]);
        assert!(told.iter().all(|finding| finding.severity != Severity::Fine));
    }

    #[test]
    fn refused_addresses_are_told_once() {
        let mut odd = service("shop", "odd", State::Created);
        odd.progress.trouble = true;
        odd.progress.addresses.quarantined = 1;
        odd.progress.why = Some(Why::new(Reason::Rejected, "Azure refuses 1 of them"));
        let told = texts(&overview(), &[odd], &[]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("Azure rejects 1 address of 1 Service: shop/odd."), "{told:?}");
    }

    #[test]
    fn a_replica_that_does_not_lead_says_who_does() {
        let mut overview = overview();
        overview.role = Role::Standby;
        overview.leader = Some("sluice-1".into());
        assert!(
            texts(&overview, &[], &[])[0].starts_with("This replica is on standby; the leader is sluice-1.")
        );
        overview.role = Role::Leader;
        overview.initial_sync =
            InitialSync { phase: "initial-sync".into(), left: 7, ..InitialSync::default() };
        assert_eq!(
            texts(&overview, &[], &[])[0],
            "Initial sync in progress: applying changes, 7 gateway services left."
        );
    }
}
