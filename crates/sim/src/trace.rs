//! The readable trace of one run: one line per fact, its consequences beside it.
//!
//! ```text
//! t=0.0    A service shop/web applied            → #1 provision shop/web: public-ip, load-balancer, register   because service applied
//! t=6.2    A #1 done                             → #2 push 1 address to 1 location                             because service became ready
//! ```
//!
//! Lines that begin with `·` are the world's: users, faults, requests on the wire. Nothing is
//! formatted while the trace is off, so that two thousand seeds do not pay for words that nobody reads.
//! Everything in a line follows from the seed, so the same seed gives the same bytes.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use sluice_model::call::{Body, Method, Payload, Reply, Request};
use sluice_model::effect::{About, Existence, KubeOutcome, Listing};
use sluice_model::event::{Relist, Wait};
use sluice_model::failure::Failure;
use sluice_model::kube::{ObjectRef, PodObject, ServiceObject, Slice};
use sluice_model::plan::{Intent, Subject};
use sluice_model::{Action, Effect, Event, Outcome, Plan, ServiceKey, Time, Uid};

const LEFT_WIDTH: usize = 44;
const RIGHT_WIDTH: usize = 64;

/// The lines of one run, if anybody wants them.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    on: bool,
    text: String,
    names: BTreeMap<Uid, String>,
}

impl Trace {
    /// A trace that is written, or one that is not.
    pub fn new(on: bool) -> Trace {
        Trace { on, ..Trace::default() }
    }

    /// Whether anybody wants lines.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Everything so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds the lines of another run under a title.
    pub(crate) fn append(&mut self, title: &str, other: &Trace) {
        if self.on {
            let _ = writeln!(self.text, "\n{title}:\n{}", other.text);
        }
    }

    /// A fact reached a process, and this is what its engine asked for.
    pub fn fact(&mut self, now: Time, process: &str, event: &Event, effects: &[Effect]) {
        if !self.on {
            return;
        }
        self.learn(event);
        if matches!(event, Event::Tick) && effects.is_empty() {
            return;
        }
        let left = self.event(event);
        let mut head = format!("{:<9}{process} {left}", format!("t={now}"));
        if effects.is_empty() {
            let _ = writeln!(self.text, "{head}");
            return;
        }
        for effect in effects {
            let right = self.effect(effect);
            let width = LEFT_WIDTH + 11;
            let line = format!("{head:<width$} → {right:<RIGHT_WIDTH$} because {}", effect.cause.words());
            let _ = writeln!(self.text, "{}", line.trim_end());
            head.clear();
        }
    }

    /// Something happened in the world.
    pub fn world(&mut self, now: Time, line: impl FnOnce() -> String) {
        if self.on {
            let _ = writeln!(self.text, "{:<9}· {}", format!("t={now}"), line());
        }
    }

    /// A request is begun.
    pub fn sent(&mut self, now: Time, process: &str, call: &str, request: &Request) {
        if self.on {
            let text = self.request(request);
            let _ = writeln!(self.text, "{:<9}{process}   {call} {text}", format!("t={now}"));
        }
    }

    /// An answer arrives.
    pub fn replied(&mut self, now: Time, process: &str, call: &str, reply: &Reply) {
        if self.on {
            let _ = writeln!(self.text, "{:<9}{process}   {call} ← {}", format!("t={now}"), answer(reply));
        }
    }

    fn learn(&mut self, event: &Event) {
        let mut name = |service: &ServiceObject| {
            self.names.insert(service.uid, service.name.to_string());
        };
        match event {
            Event::ServiceApplied(service) => name(service),
            Event::Relisted { objects: Relist::Services(services), .. } => services.iter().for_each(name),
            _ => {}
        }
    }

    fn key(&self, key: &ServiceKey) -> String {
        match key {
            ServiceKey::Inbound(uid) => self.uid(*uid),
            ServiceKey::Outbound(egress) => format!("egress {egress}"),
        }
    }

    fn uid(&self, uid: Uid) -> String {
        let short = short_uid(&uid.to_string());
        match self.names.get(&uid) {
            Some(name) => format!("{name}~{short}"),
            None => format!("~{short}"),
        }
    }

    fn object(&self, object: &ObjectRef) -> String {
        format!("{}~{}", object.name, short_uid(&object.uid.to_string()))
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::ServiceApplied(service) => format!("service {}", service_words(service)),
            Event::ServiceDeleted { uid, .. } => format!("service {} deleted", self.uid(*uid)),
            Event::SliceApplied(slice) => format!("endpoints {}", slice_words(slice)),
            Event::SliceDeleted(name) => format!("endpoints {name} deleted"),
            Event::NodeApplied(node) => format!("node {} {:?}", node.name, node.internal_ips),
            Event::NodeDeleted(name) => format!("node {name} deleted"),
            Event::PodApplied(pod) => format!("pod {}", pod_words(pod)),
            Event::PodDeleted { uid } => format!("pod ~{} deleted", short_uid(&uid.to_string())),
            Event::Relisted { version, objects } => match objects {
                Relist::Services(all) => format!("{} services listed at v{version}", all.len()),
                Relist::Slices(all) => format!("{} slices listed at v{version}", all.len()),
                Relist::Nodes(all) => format!("{} nodes listed at v{version}", all.len()),
                Relist::Pods(all) => format!("{} pods listed at v{version}", all.len()),
            },
            Event::EgressAdded(name) => format!("egress {name} asked for"),
            Event::EgressReleased(name) => format!("egress {name} released"),
            Event::LeadershipGained => "leadership gained".into(),
            Event::LeadershipLost => "leadership lost".into(),
            Event::DeletionAllowed(allowed) => format!("deletion allowed: {}", allowed.annotation()),
            Event::EffectFinished { id, outcome } => format!("{id} {}", outcome_words(outcome)),
            Event::SlotReleased { id, wait } | Event::Held { id, wait } => {
                let why = match wait {
                    Wait::SharedCommit => "the shared commit".to_owned(),
                    Wait::Throttled { until } => format!("the end of a pause at {until}"),
                    Wait::Budget { until } => format!("budget at {until}"),
                    Wait::SlowOperation => "a slow operation".to_owned(),
                };
                format!("{id} waits for {why}")
            }
            Event::SlotWanted(id) => format!("{id} could go on"),
            Event::RegistrationsRead { all, .. } => format!("{} registrations read", all.len()),
            Event::Throttled { calls, wait } => format!("{} paused for {} s", calls.words(), wait.as_secs()),
            Event::Tick => "tick".into(),
        }
    }

    fn effect(&self, effect: &Effect) -> String {
        let id = effect.id;
        match &effect.action {
            Action::RunPlan(plan) => format!("{id} {}", self.plan(plan)),
            Action::ResumePlan(plan) => format!("{id} go on with {plan}"),
            Action::SyncLocations(updates) => {
                let bound: usize = updates
                    .iter()
                    .map(|update| update.addresses.iter().filter(|entry| !entry.services.is_empty()).count())
                    .sum();
                let all: usize = updates.iter().map(|update| update.addresses.len()).sum();
                let emptied = updates.iter().filter(|update| update.addresses.is_empty()).count();
                let (unbound, places) = (all - bound, updates.len());
                format!("{id} push {bound}, remove {unbound}, empty {emptied} of {places} locations")
            }
            Action::List(what) => format!("{id} list {}", what.word()),
            Action::AddFinalizer(object) => format!("{id} put finalizer on {}", self.object(object)),
            Action::RemoveFinalizer(object) => format!("{id} take finalizer off {}", self.object(object)),
            Action::WriteStatus { object, ingress, retract, conditions } => {
                let ip = ingress.map_or_else(|| "no IP".to_owned(), |ip| ip.to_string());
                let mut text = format!("{id} set status {} {ip}", self.object(object));
                if let Some(old) = retract {
                    let _ = write!(text, " retract {old}");
                }
                for condition in conditions {
                    let sign = if condition.holds { '+' } else { '-' };
                    let _ = write!(text, " {sign}{:?}:{}", condition.kind, condition.reason);
                }
                text
            }
            Action::ConfirmGone(object) => format!("{id} ask whether {} exists", self.object(object)),
            Action::Relist(kind) => format!("{id} list {kind:?} again"),
            Action::Notify(notice) => {
                let about = match &notice.about {
                    About::Service(object) | About::Pod(object) => self.object(object),
                    About::Key(key) => self.key(key),
                    About::Cluster => "the cluster".into(),
                };
                format!("{id} tell {about}: {} {}", notice.reason, notice.text)
            }
        }
    }

    fn plan(&self, plan: &Plan) -> String {
        let verb = match plan.intent {
            Intent::Provision => "provision",
            Intent::Update => "update",
            Intent::Deprovision => "deprovision",
            Intent::Inspect => "inspect",
            Intent::Adopt => "adopt",
        };
        let whom = match &plan.subject {
            Subject::Service(key) => self.key(key),
            Subject::Foundation => "gateway".into(),
        };
        let steps: Vec<&str> = plan.steps.iter().map(sluice_model::Step::word).collect();
        format!("{verb} {whom}: {}", steps.join(", "))
    }

    fn request(&self, request: &Request) -> String {
        let verb = match request.method {
            Method::Get => "GET",
            Method::List => "LIST",
            Method::Put => "PUT",
            Method::PatchTags => "PATCH",
            Method::Delete => "DELETE",
            Method::UpdateServices => "POST updateServices",
            Method::UpdateLocations => "POST updateAddressLocations",
            Method::Poll => "POLL",
        };
        let mut text = format!("{verb} {}", tail(request.target.as_str()));
        match &request.body {
            Body::Services(entries) => {
                for entry in entries {
                    let cleared = entry.service.pools.is_empty() && entry.service.nat_gateway.is_none();
                    let word = match (entry.is_delete, cleared) {
                        (true, _) => "unregister",
                        (false, true) => "clear",
                        (false, false) => "register",
                    };
                    let whom = ServiceKey::from_identity(&entry.service.name)
                        .map_or_else(|| entry.service.name.to_string(), |key| self.key(&key));
                    let _ = write!(text, " {word} {whom};");
                }
            }
            Body::Locations(updates) => {
                for update in updates {
                    let sign = if update.full { "=" } else { "" };
                    let _ = write!(text, " {}{sign}[", update.location);
                    for (at, entry) in update.addresses.iter().enumerate() {
                        let comma = if at == 0 { "" } else { " " };
                        let _ = write!(text, "{comma}{}:", entry.address);
                        for name in &entry.services {
                            let whom = ServiceKey::from_identity(name)
                                .map_or_else(|| name.to_string(), |key| self.key(&key));
                            let _ = write!(text, "{whom},");
                        }
                    }
                    text.push(']');
                }
            }
            Body::LoadBalancer(body) => {
                let rules: Vec<String> = body
                    .rules
                    .iter()
                    .map(|rule| {
                        format!("{}{}→{}", rule.protocol.word(), rule.frontend_port, rule.backend_port)
                    })
                    .collect();
                let _ = write!(text, " {}", rules.join(" "));
            }
            _ => {}
        }
        if let Some(page) = &request.page {
            let _ = write!(text, " page {}", page.0);
        }
        text
    }
}

fn service_words(service: &ServiceObject) -> String {
    let mut text = format!("{} applied v{}", service.name, service.version);
    for (word, on) in [
        ("not ours", !service.selected),
        ("deleting", service.deleting),
        ("finalizer", service.finalizer),
        ("inherited finalizer", service.inherited),
    ] {
        if on {
            let _ = write!(text, ", {word}");
        }
    }
    for ip in &service.ingress {
        let _ = write!(text, " {ip}");
    }
    text
}

fn slice_words(slice: &Slice) -> String {
    let mut text = slice.name.to_string();
    for endpoint in &slice.endpoints {
        let _ = write!(text, " {}@{}", endpoint.address, endpoint.node.as_deref().unwrap_or("?"));
        if !endpoint.ready {
            text.push_str(if endpoint.serving { "(draining)" } else { "(not ready)" });
        }
    }
    text
}

fn pod_words(pod: &PodObject) -> String {
    let mut text = format!("{}~{}", pod.name, short_uid(&pod.uid.to_string()));
    let _ = write!(
        text,
        " egress {} on {}",
        pod.egress.as_deref().unwrap_or("none"),
        pod.node.as_deref().unwrap_or("?")
    );
    for ip in &pod.ips {
        let _ = write!(text, " {ip}");
    }
    let _ = write!(text, " {:?}", pod.phase);
    if pod.terminating {
        text.push_str(" terminating");
    }
    text
}

fn outcome_words(outcome: &Outcome) -> String {
    let failed = |failure: &Failure| format!("failed: {failure}");
    match outcome {
        Outcome::Plan(report) => match &report.failure {
            None => "done".into(),
            Some(failure) => format!("failed after {} steps: {failure}", report.done.len()),
        },
        Outcome::Locations { failure, .. } => failure.as_ref().map_or_else(|| "done".into(), failed),
        Outcome::Listed { result, .. } => match result {
            Ok(listing) => format!("listed {}", listing_words(listing)),
            Err(failure) => failed(failure),
        },
        Outcome::Kube(KubeOutcome::Done { .. }) => "written".into(),
        Outcome::Kube(KubeOutcome::Conflict) => "conflict".into(),
        Outcome::Kube(KubeOutcome::Gone) => "no such object".into(),
        Outcome::Kube(KubeOutcome::Refused(why)) => format!("refused: {why}"),
        Outcome::Kube(KubeOutcome::Unavailable) => "API server unavailable".into(),
        Outcome::Existence(Existence::Exists) => "it exists".into(),
        Outcome::Existence(Existence::Gone) => "it is gone".into(),
        Outcome::Existence(Existence::Unclear) => "the API server does not say".into(),
    }
}

fn listing_words(listing: &Listing) -> String {
    match listing {
        Listing::Foundation { gateway, subnet } => {
            format!("gateway: {}, subnet: {}", gateway.is_some(), subnet.is_some())
        }
        Listing::Registrations(all) => format!("{} registrations", all.len()),
        Listing::Locations(all) => format!("{} locations", all.len()),
        Listing::LoadBalancers(all) => format!("{} load balancers", all.len()),
        Listing::NatGateways(all) => format!("{} NAT gateways", all.len()),
        Listing::PublicIps(all) => format!("{} public IPs", all.len()),
    }
}

fn answer(reply: &Reply) -> String {
    match reply {
        Reply::NotSent(_) => "not sent".into(),
        Reply::Lost(_) => "no answer".into(),
        Reply::Answered(answer) => {
            let mut text = answer.status.to_string();
            match &answer.payload {
                Payload::Error(error) => {
                    let _ = write!(text, " {}", error.code);
                }
                Payload::Operation(state) => {
                    let _ = write!(text, " {state:?}");
                }
                _ => {}
            }
            if let Some(operation) = &answer.operation {
                let _ = write!(text, " operation {}", operation.name());
            }
            if let Some(wait) = answer.retry_after {
                let _ = write!(text, " Retry-After {}", wait.as_secs());
            }
            text
        }
    }
}

/// The end of a UID, which is what differs.
fn short_uid(uid: &str) -> String {
    uid.chars().skip(24).collect::<String>().trim_start_matches('0').to_owned()
}

/// An id without the parts that are always the same.
fn tail(id: &str) -> String {
    let tail = id.rsplit("Microsoft.Network/").next().unwrap_or(id);
    let mut text = String::new();
    for (at, part) in tail.split('/').enumerate() {
        if at > 0 {
            text.push('/');
        }
        // A UID inside an id is shortened like everywhere else.
        if part.len() >= 36 && Uid::parse(&part[..36]).is_ok() {
            text.push('~');
            text.push_str(&short_uid(&part[..36]));
            text.push_str(&part[36..]);
        } else {
            text.push_str(part);
        }
    }
    text
}
