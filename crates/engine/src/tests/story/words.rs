//! The words of a story: from effects to lines, and from endings to outcomes.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use sluice_model::azure::{AddressUpdate, LocationUpdate};
use sluice_model::call::{Answer, ArmError, Payload, Reply};
use sluice_model::effect::{About, KubeOutcome, Notice};
use sluice_model::plan::Subject;
use sluice_model::{Action, EffectId, Failure, FailureClass, ServiceKey};

use super::Story;
use crate::explain::WaitsFor;

/// How an effect failed, if it did.
pub(super) fn failure(ending: &[&str]) -> Option<Failure> {
    match ending {
        ["done"] => None,
        ["lost", ..] => Some(Failure::of(FailureClass::Unknown, "NoAnswer", "no answer")),
        ["refused", ..] => Some(super::failure(FailureClass::Rejected, "InvalidRequest", 400)),
        ["failed", code, status, rest @ ..] => {
            let text =
                rest.iter().find_map(|word| word.strip_prefix("says=")).map(|text| text.replace('_', " "));
            let message = text.unwrap_or_else(|| "as the story says.".into()).into();
            let error = ArmError { code: (*code).into(), message };
            let mut answer = Answer::new(status.parse().expect("a status"), Payload::Error(error));
            let seconds = rest.iter().find_map(|word| word.strip_prefix("after="));
            answer.retry_after =
                seconds.map(|seconds| Duration::from_secs(seconds.parse().expect("seconds")));
            Failure::in_reply(&Reply::Answered(answer))
        }
        other => panic!("an effect cannot end like this: {other:?}"),
    }
}

/// How a write to Kubernetes ended.
pub(super) fn kube(ending: &[&str], version: u64) -> KubeOutcome {
    match ending {
        ["done"] => KubeOutcome::Done { version },
        ["gone"] => KubeOutcome::Gone,
        ["conflict"] => KubeOutcome::Conflict,
        ["refused"] => KubeOutcome::Refused("a webhook said no.".into()),
        ["unavailable"] => KubeOutcome::Unavailable,
        other => panic!("a write to Kubernetes cannot end like this: {other:?}"),
    }
}

impl Story {
    pub(super) fn words(&self, action: &Action) -> String {
        match action {
            Action::RunPlan(plan) => {
                let text = plan.to_string();
                match &plan.subject {
                    Subject::Service(key) => text.replacen(&key.to_string(), &self.name_of(key), 1),
                    Subject::Foundation => text,
                }
            }
            Action::ResumePlan(id) => format!("resume {}", self.number_of(*id)),
            Action::SyncLocations(batch) => self.batch_words(batch),
            Action::List(kind) => format!("list {}", kind.word()),
            Action::AddFinalizer(object) => format!("add finalizer to {}", object.name.name),
            Action::RemoveFinalizer(object) => format!("remove finalizer from {}", object.name.name),
            Action::WriteStatus { object, ingress, retract, conditions } => {
                let mut parts = Vec::new();
                parts.extend(ingress.map(|ip| format!("{ip}")));
                parts.extend(retract.map(|ip| format!("not {ip}")));
                parts.extend(conditions.iter().map(|it| {
                    let concern = it.concern.sentence().map(|_| format!(" of {:?}", it.concern));
                    let not = if it.holds { "" } else { "not " };
                    format!("{not}{:?} {}{}", it.kind, it.reason, concern.unwrap_or_default())
                }));
                if self.shows.messages {
                    let messages = conditions.iter().map(|it| &*it.message).filter(|text| !text.is_empty());
                    parts.extend(messages.map(ToString::to_string));
                }
                if parts.is_empty() {
                    parts.push("nothing".into());
                }
                format!("write status of {}: {}", object.name.name, parts.join(", "))
            }
            Action::ConfirmGone(object) => format!("ask whether {} is gone", object.name.name),
            Action::Relist(kind) => format!("list {kind:?}s of Kubernetes again"),
            Action::Notify(notice) => self.notice_words(notice),
        }
    }

    pub(super) fn notice_words(&self, notice: &Notice) -> String {
        let about = match &notice.about {
            About::Service(object) => object.name.name.to_string(),
            About::Pod(object) => format!("pod {}", object.name.name),
            About::Key(key) => self.name_of(key),
            About::Cluster => "cluster".into(),
        };
        let verb = if notice.warning { "warn" } else { "tell" };
        format!("{verb} {about}: {}: {}", notice.reason, self.with_names(&notice.text))
    }

    /// Identities in a text become the names that the story uses.
    fn with_names(&self, text: &str) -> String {
        self.names.iter().fold(text.to_string(), |text, (identity, name)| text.replace(identity, name))
    }

    fn number_of(&self, id: EffectId) -> String {
        let number = self.numbers.iter().find(|(_, known)| **known == id).map(|(number, _)| *number);
        number.map_or("an effect that was not shown".into(), |number| format!("#{number}"))
    }

    pub(crate) fn name_of(&self, key: &ServiceKey) -> String {
        self.name_of_identity(&key.identity())
    }

    fn name_of_identity(&self, identity: &str) -> String {
        self.names.get(identity).cloned().unwrap_or_else(|| identity.to_string())
    }

    fn batch_words(&self, batch: &[LocationUpdate]) -> String {
        let mut parts = Vec::new();
        for update in batch {
            let node = self.name_of_identity(&update.location.to_string());
            let mut bound: BTreeMap<Vec<Arc<str>>, Vec<String>> = BTreeMap::new();
            for AddressUpdate { address, services } in &update.addresses {
                bound.entry(services.clone()).or_default().push(address.to_string());
            }
            let whole = if update.full { "all of " } else { "" };
            for (services, addresses) in &bound {
                let addresses = addresses.join(" ");
                let names: Vec<String> = services.iter().map(|it| self.name_of_identity(it)).collect();
                match names.is_empty() {
                    true => parts.push(format!("remove {addresses} from {node}")),
                    false => parts.push(format!("push {addresses} to {whole}{node} for {}", names.join("+"))),
                }
            }
            if update.addresses.is_empty() {
                parts.push(format!("remove {node}"));
            }
        }
        parts.join(", ")
    }

    pub(super) fn say_explanation(&mut self, name: &str) {
        let Some(explained) = self.engine.explain(&self.key(name)) else {
            return self.say(format!("{name} is forgotten"));
        };
        let view = &explained.view;
        let mut parts = Vec::new();
        parts.push(format!("{name} is {}", view.state));
        parts.push(if view.wanted { "wanted".into() } else { "not wanted".into() });
        if view.live {
            parts.push("live".into());
        }
        parts.extend(view.public_ip.map(|ip| ip.to_string()));
        if let Some(hold) = &view.hold {
            let word = if hold.parked { "parked" } else { "waits" };
            parts.push(format!("{word}: {}", hold.reason));
        }
        if view.attempts > 0 {
            parts.push(format!("{} failures", view.attempts));
        }
        if view.pods > 0 {
            parts.push(format!("{} pods", view.pods));
        }
        let addresses = (view.addresses_wanted, view.addresses_programmed, view.addresses_mapped);
        if addresses != (0, 0, 0) {
            let (wanted, programmed, mapped) = addresses;
            parts.push(format!("addresses: {wanted} wanted, {programmed} programmed, {mapped} mapped"));
        }
        let mut lines = std::vec![parts.join(", ")];
        for wait in &explained.waits_for {
            lines.push(format!("  waits for {}", self.wait_words(wait)));
        }
        for line in lines {
            self.say(line);
        }
    }

    fn wait_words(&self, wait: &WaitsFor) -> String {
        match wait {
            WaitsFor::KubernetesLists(kinds) => format!("lists of {kinds:?} from Kubernetes"),
            WaitsFor::AzureListing => "the first listing of Azure".into(),
            WaitsFor::Gateway => "the gateway".into(),
            WaitsFor::Finalizer => "our finalizer".into(),
            WaitsFor::SpecChange(text) => format!("a change: {}", self.with_names(text)),
            WaitsFor::Operation(id) => format!("operation {}", self.number_of(*id)),
            WaitsFor::Slot => "a slot".into(),
            WaitsFor::Retry { at, reason } => format!("its next attempt at t={at}: {reason}"),
            WaitsFor::Addresses(count) => format!("{count} addresses"),
            WaitsFor::ConfirmedAbsence => "the word that its object is gone".into(),
            WaitsFor::MassDeletionConsent => "consent to a mass deletion".into(),
            WaitsFor::Linger { until } => format!("the end of its linger time at t={until}"),
            WaitsFor::KubernetesWrite => "a write to Kubernetes".into(),
        }
    }

    pub(super) fn say_timeline(&mut self, name: &str) {
        let timeline = self.engine.explain(&self.key(name)).map(|it| it.timeline).unwrap_or_default();
        for (at, moment) in timeline {
            self.lines.push(format!("t={at} {moment}"));
        }
    }
}
