//! One service's record: what is wanted of it, what is known of it, and where it is.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::event::Wait;
use sluice_model::kube::{Condition, ServiceObject, TargetPort};
use sluice_model::names::Scope;
use sluice_model::plan::Intent;
use sluice_model::reason::Reason;
use sluice_model::{EffectId, Family, Plan, ServiceKey, Time};

use crate::addresses::ServiceIndex;
use crate::adoption::Adoption;
use crate::changes::Glance;
use crate::explain::{LastFailure, Timeline};
use crate::hold::{Attempts, Hold};
use crate::plan::Target;
use crate::resources::{Actual, Knowledge};
use crate::state::State;

/// The record.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) key: ServiceKey,
    pub(crate) index: ServiceIndex,
    pub(crate) state: State,
    pub(crate) since: Time,
    pub(crate) wanted_since: Time,
    pub(crate) unwanted_since: Option<Time>,

    /// The Service behind an inbound one, as last seen.
    pub(crate) object: Option<Box<ServiceObject>>,
    /// The newest version of it that Kubernetes has shown; `object` can be newer, by our own write.
    pub(crate) seen_version: u64,
    /// Whether anybody wanted it when it was last looked at; `None` before the first look.
    pub(crate) was_wanted: Option<bool>,
    /// An outbound one is wanted for its own sake.
    pub(crate) requested: bool,
    /// An outbound one had pods when it was last looked at.
    pub(crate) had_pods: bool,
    /// An outbound one without pods is kept until then.
    pub(crate) linger_until: Option<Time>,

    pub(crate) actual: Actual,
    /// The result of comparing wanted and known; `None` when either has changed since.
    pub(crate) compared: Option<Compared>,
    pub(crate) operation: Option<Operation>,
    pub(crate) hold: Option<Hold>,
    pub(crate) attempts: Attempts,
    pub(crate) adoption: Adoption,
    /// The clear step has been handed out.
    pub(crate) teardown_begun: bool,
    /// As it was found, its teardown had begun; that has not been read again yet.
    pub(crate) found_begun: bool,
    /// It has been live with a spec that was accepted, or was found live.
    pub(crate) served: bool,
    /// There is evidence that its deletion is meant: its object asks for it, or this replica watched the object or
    /// the last pod go, as a standby too.
    pub(crate) evident: bool,
    /// It was found unwanted by comparison, without evidence, so the brake applies.
    pub(crate) discovered: bool,
    /// Its object has vanished, and the API server has not confirmed it yet.
    pub(crate) vanished: Option<Vanished>,
    pub(crate) kube: KubeSide,
    /// Since when addresses of it wait for it to be ready.
    pub(crate) buffered_since: Option<Time>,
    /// The last thing that people were told about it.
    pub(crate) told: Option<(Reason, String)>,
    pub(crate) reported_at: Option<Time>,
    pub(crate) timeline: Timeline,
    pub(crate) wake: Option<Time>,
    /// When its last operation began.
    pub(crate) last_attempt: Option<Time>,
    /// How its last operation failed, until one succeeds.
    pub(crate) last_failure: Option<LastFailure>,
    /// Its plan waits for the end of a pause that Azure asked for, or for the call budget: since when, and which.
    pub(crate) wait: Option<(Time, Wait)>,
    /// The trouble with operations that a leader before this one has written, until one succeeds or none is needed.
    pub(crate) said_before: Option<Condition>,
    /// Its load balancer keeps a port that the endpoints do not agree on: what is wrong.
    pub(crate) unresolved: Option<String>,
    /// Since when a named port has been unresolved, whether the load balancer keeps one or not.
    pub(crate) unresolved_since: Option<Time>,
    /// People have been told so.
    pub(crate) unresolved_told: bool,
    /// The annotations without effect that people have been told of.
    pub(crate) idle_told: Vec<Arc<str>>,
    /// People have been told that its second IP family is not served.
    pub(crate) second_family_told: bool,
    /// Since when it is other than wanted.
    pub(crate) different_since: Option<Time>,
    /// When an operation that changes it last succeeded.
    pub(crate) succeeded_at: Time,
    /// Differences found by sweeps that have not been repaired yet.
    pub(crate) drifted: u64,
    /// It was found in Azure, wanted by nobody.
    pub(crate) orphan: bool,
    /// The number of its last change that people can see, and how it looked then.
    pub(crate) change: u64,
    pub(crate) glance: Option<Glance>,
}

/// A plan in flight.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: EffectId,
    pub(crate) plan: Plan,
    /// When it was handed out: its reads speak of no earlier moment.
    pub(crate) started: Time,
    /// Since when, or from when on, it does not wait on our side or because Azure asked for it.
    pub(crate) resumed: Time,
    /// When the last pause that Azure asked for ends, or ended.
    pub(crate) paused_until: Option<Time>,
}

impl Operation {
    pub(crate) fn intent(&self) -> Intent {
        self.plan.intent
    }
}

/// What a comparison said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Compared {
    /// Something must be looked at first.
    Unclear,
    /// There is nothing to write.
    InSync,
    /// There is something to write.
    Different,
    /// What is asked for cannot be.
    Invalid(Reason, String),
}

impl Compared {
    /// Our own validation speaks against it, so what is there stays as it is; not so somebody else's resource
    /// that stands in the way, which may go.
    pub(crate) fn is_rejection(&self) -> bool {
        matches!(self, Compared::Invalid(reason, _) if *reason != Reason::Conflict)
    }
}

/// The search for an object that is not in the lists any more.
#[derive(Debug, Default)]
pub(crate) struct Vanished {
    pub(crate) asking: Option<EffectId>,
    pub(crate) ask_at: Time,
    pub(crate) failures: u32,
}

/// Our writes to the Service object.
#[derive(Debug, Default)]
pub(crate) struct KubeSide {
    pub(crate) in_flight: Option<EffectId>,
    pub(crate) retry_at: Option<Time>,
    pub(crate) failures: u32,
    /// People know that Kubernetes refuses our writes.
    pub(crate) refusal_told: bool,
    pub(crate) given_up_status: bool,
    /// A status was sent by this process.
    pub(crate) has_sent_status: bool,
}

impl Service {
    pub(crate) fn new(key: ServiceKey, index: ServiceIndex, now: Time) -> Service {
        let mut actual = Actual::default();
        if key.is_inbound() {
            // A Service has one public IP, so there is nothing to look for in the second place.
            actual.public_ips[1].knowledge = Knowledge::Absent;
        }
        Service {
            key,
            index,
            state: State::NotStarted,
            since: now,
            wanted_since: now,
            unwanted_since: None,
            object: None,
            seen_version: 0,
            was_wanted: None,
            requested: false,
            had_pods: false,
            linger_until: None,
            actual,
            compared: None,
            operation: None,
            hold: None,
            attempts: Attempts::default(),
            adoption: Adoption::default(),
            teardown_begun: false,
            found_begun: false,
            served: false,
            evident: false,
            discovered: false,
            vanished: None,
            kube: KubeSide::default(),
            buffered_since: None,
            told: None,
            reported_at: None,
            timeline: Timeline::default(),
            wake: None,
            last_attempt: None,
            last_failure: None,
            wait: None,
            said_before: None,
            unresolved: None,
            unresolved_since: None,
            unresolved_told: false,
            idle_told: Vec::new(),
            second_family_told: false,
            different_since: None,
            succeeded_at: Time::ZERO,
            drifted: 0,
            orphan: false,
            change: 0,
            glance: None,
        }
    }

    /// Whose turn it is in the queue: its namespace, or the egress itself.
    pub(crate) fn namespace(&self) -> Arc<str> {
        match (&self.key, &self.object) {
            (ServiceKey::Inbound(_), Some(object)) => Arc::clone(&object.name.namespace),
            _ => self.key.identity(),
        }
    }

    /// Its plan waits on our side or because Azure asked for it: since when, and for what. A plan that sleeps waits until
    /// it says otherwise, any other until the time is over.
    pub(crate) fn waits(&self, now: Time) -> Option<(Time, Wait)> {
        self.wait.filter(|_| self.operation.as_ref().is_some_and(|operation| operation.resumed > now))
    }

    /// Azure asked its plan for a pause: since when, and until when.
    pub(crate) fn throttled(&self, now: Time) -> Option<(Time, Time)> {
        match self.waits(now) {
            Some((since, Wait::Throttled { until })) => Some((since, until)),
            _ => None,
        }
    }

    /// Whether any of its ports is named, so that slices decide about its rules.
    pub(crate) fn has_named_ports(&self) -> bool {
        self.object.as_ref().is_some_and(|object| {
            object.spec.ports.iter().any(|port| matches!(port.target, TargetPort::Name(_)))
        })
    }

    /// The address that people reach it at, or that its pods leave by.
    pub(crate) fn public_address(&self) -> Option<IpAddr> {
        self.actual.public_ips[0].present().and_then(|ip| ip.address)
    }

    /// The IP that Sluice has published in the Service's status. Everybody who edits Services can write the annotation,
    /// so it counts only with the IP of a public IP that Sluice manages.
    pub(crate) fn published(&self, object: &ServiceObject, scope: &Scope) -> Option<IpAddr> {
        let managed = self.actual.public_ips[0].present().filter(|ip| scope.owns(&ip.meta.tags));
        let own = managed.and_then(|ip| ip.address);
        object.annotated.filter(|ip| own == Some(*ip)).or(object.published)
    }

    /// What a NAT gateway should look like.
    pub(crate) fn nat_target(&self, ipv6_nodes: bool, scope: &Scope) -> Target {
        // An address of ours that is there stays, even when the last IPv6 node has gone for a while.
        let v6 = self.actual.public_ips[Actual::public_ip_slot(&self.key, Family::V6)].present();
        Target::NatGateway { ipv6: ipv6_nodes || v6.is_some_and(|ip| scope.owns(&ip.meta.tags)) }
    }
}
