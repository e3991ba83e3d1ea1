//! What the controller does to the cluster: finalizers, status, a live look.
//!
//! Every write is fenced by the UID. A status is written with the resourceVersion that the
//! client has read, and conflicts when the object has moved on; a finalizer is a patch that
//! tests the UID and nothing else. A write that changes nothing makes no new version.

use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::Time;
use sluice_model::effect::{Action, Existence, KubeOutcome};
use sluice_model::kube::{Condition, ObjectRef};

use super::Cluster;
use super::faults::WriteFault;
use super::objects::{INHERITED_FINALIZER, OUR_FINALIZER, ServiceRecord, Stored};

/// One write of the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KubeWrite {
    /// Put our finalizer on.
    AddFinalizer(ObjectRef),
    /// Take our finalizer off.
    RemoveFinalizer(ObjectRef),
    /// Write the status.
    WriteStatus {
        /// Whose.
        object: ObjectRef,
        /// Our IP, to be among the ingress IPs.
        ingress: Option<IpAddr>,
        /// An IP that must not be among them.
        retract: Option<IpAddr>,
        /// Our conditions.
        conditions: Vec<Condition>,
        /// The resourceVersion that the write is based on; `None`: whatever is there when it arrives.
        based_on: Option<u64>,
    },
}

impl KubeWrite {
    /// The write that an action asks for; `None` if it asks for something else.
    pub fn of(action: &Action, based_on: Option<u64>) -> Option<KubeWrite> {
        match action {
            Action::AddFinalizer(object) => Some(KubeWrite::AddFinalizer(object.clone())),
            Action::RemoveFinalizer(object) => Some(KubeWrite::RemoveFinalizer(object.clone())),
            Action::WriteStatus { object, ingress, retract, conditions } => Some(KubeWrite::WriteStatus {
                object: object.clone(),
                ingress: *ingress,
                retract: *retract,
                conditions: conditions.clone(),
                based_on,
            }),
            _ => None,
        }
    }

    /// The object that it is about.
    pub fn object(&self) -> &ObjectRef {
        match self {
            KubeWrite::AddFinalizer(object)
            | KubeWrite::RemoveFinalizer(object)
            | KubeWrite::WriteStatus { object, .. } => object,
        }
    }
}

/// A write that nobody waits for any more, but that will be done.
#[derive(Clone, Debug)]
pub(crate) struct LateWrite {
    at: Time,
    write: KubeWrite,
}

impl Cluster {
    /// Does one write of the controller, as far as the fault lets it.
    pub fn write(&mut self, write: &KubeWrite, fault: WriteFault) -> KubeOutcome {
        match fault {
            WriteFault::None => self.carry_out(write),
            WriteFault::Conflict => match self.service_of(write.object()) {
                Some(_) => KubeOutcome::Conflict,
                None => KubeOutcome::Gone,
            },
            WriteFault::AnswerLost => {
                self.carry_out(write);
                KubeOutcome::Unavailable
            }
            WriteFault::RequestLost => KubeOutcome::Unavailable,
            WriteFault::LandsLater(delay) => {
                self.late.push(LateWrite { at: self.now() + delay, write: write.clone() });
                KubeOutcome::Unavailable
            }
            WriteFault::Webhook => {
                KubeOutcome::Refused("admission webhook \"policy.example.com\" denied the request".into())
            }
            WriteFault::Forbidden => {
                KubeOutcome::Refused("services is forbidden: cannot patch resource".into())
            }
        }
    }

    /// Puts our finalizer on a Service.
    pub fn add_finalizer(&mut self, object: &ObjectRef, fault: WriteFault) -> KubeOutcome {
        self.write(&KubeWrite::AddFinalizer(object.clone()), fault)
    }

    /// Takes our finalizer off a Service, and the inherited one with it.
    pub fn remove_finalizer(&mut self, object: &ObjectRef, fault: WriteFault) -> KubeOutcome {
        self.write(&KubeWrite::RemoveFinalizer(object.clone()), fault)
    }

    /// Asks, live, whether this incarnation of a Service is there; `unanswered` if the question gets lost.
    pub fn exists(&self, object: &ObjectRef, unanswered: bool) -> Existence {
        match self.service_of(object) {
            _ if unanswered => Existence::Unclear,
            Some(_) => Existence::Exists,
            None => Existence::Gone,
        }
    }

    /// When the next late write lands.
    pub fn next_landing(&self) -> Option<Time> {
        self.late.iter().map(|late| late.at).min()
    }

    /// Does the late writes whose time has come; an answer is of no interest to anybody.
    pub(crate) fn land_late_writes(&mut self) {
        let now = self.now();
        let (mut due, later): (Vec<_>, Vec<_>) = self.late.drain(..).partition(|late| late.at <= now);
        self.late = later;
        due.sort_by_key(|late| late.at);
        for late in due {
            self.carry_out(&late.write);
        }
    }

    /// This very incarnation.
    fn service_of(&self, object: &ObjectRef) -> Option<&Arc<Stored<ServiceRecord>>> {
        self.services.find(&object.name).filter(|stored| stored.meta.uid == object.uid)
    }

    fn carry_out(&mut self, write: &KubeWrite) -> KubeOutcome {
        let object = write.object();
        let Some(stored) = self.service_of(object) else { return KubeOutcome::Gone };
        match write {
            KubeWrite::AddFinalizer(_) => {
                let there = stored.meta.finalizers.contains(OUR_FINALIZER);
                if stored.meta.deletion_seconds.is_some() && !there {
                    let why = "no new finalizers can be added if the object is being deleted";
                    return KubeOutcome::Refused(why.into());
                }
                self.edit::<ServiceRecord>(&object.name, |stored| {
                    stored.meta.finalizers.insert(OUR_FINALIZER.into());
                });
            }
            KubeWrite::RemoveFinalizer(_) => {
                self.edit::<ServiceRecord>(&object.name, |stored| {
                    stored.meta.finalizers.remove(OUR_FINALIZER);
                    stored.meta.finalizers.remove(INHERITED_FINALIZER);
                });
            }
            KubeWrite::WriteStatus { ingress, retract, conditions, based_on, .. } => {
                if based_on.is_some_and(|version| version != stored.meta.version) {
                    return KubeOutcome::Conflict;
                }
                self.edit::<ServiceRecord>(&object.name, |stored| {
                    let listed = &mut stored.body.ingress;
                    listed.retain(|ip| Some(*ip) != *retract);
                    if let Some(ip) = ingress.filter(|ip| !listed.contains(ip)) {
                        listed.push(ip);
                    }
                    stored.body.published = *ingress;
                    stored.body.annotation =
                        ingress.or(stored.body.annotation.filter(|ip| listed.contains(ip)));
                    stored.body.conditions = conditions.clone();
                    stored.body.conditions.sort();
                });
            }
        }
        // Who has gone with its last finalizer has the version of its end.
        let version = self.service_of(object).map_or(self.version, |stored| stored.meta.version);
        KubeOutcome::Done { version }
    }
}
