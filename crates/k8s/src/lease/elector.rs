//! The elector itself: what is known of the Lease, and what that allows.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use sluice_model::Time;
use sluice_model::seeded::Seeded;

use super::{Answer, BadElection, Next, Request, Timing};

/// Decides by what it is told; see the module's own words for the rules.
#[derive(Clone, Debug)]
pub struct Elector {
    identity: Arc<str>,
    timing: Timing,
    /// The newest time that we were handed.
    now: Time,
    known: Known,
    plan: Plan,
    due: Time,
    asked: Option<Asked>,
    /// Before our last successful renewal was sent.
    renewed: Option<Time>,
    /// A conflict has been followed by a look without a pause, and nothing has succeeded since.
    hurried: bool,
    retired: bool,
}

/// The Lease as we know it.
#[derive(Clone, Debug)]
enum Known {
    /// We have never looked.
    Nothing,
    /// There was none when we looked.
    Absent {
        since: Time,
        /// We had seen one before.
        vanished: bool,
    },
    Seen {
        lease: Box<Lease>,
        since: Time,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    Read,
    Create,
    Replace,
}

/// A request that is under way.
#[derive(Clone, Debug)]
struct Asked {
    began: Time,
    /// The version that it writes over.
    version: Option<String>,
}

impl Elector {
    /// An elector under a name that no other process has, also not this one's predecessor:
    /// the pod's name with something random behind it.
    pub fn new(identity: impl Into<Arc<str>>, timing: Timing) -> Result<Elector, BadElection> {
        timing.check(Seeded::NONE)?;
        let identity = identity.into();
        if identity.is_empty() {
            return Err(BadElection::NoIdentity);
        }
        Ok(Elector {
            identity,
            timing,
            now: Time::ZERO,
            known: Known::Nothing,
            plan: Plan::Read,
            due: Time::ZERO,
            asked: None,
            renewed: None,
            hurried: false,
            retired: false,
        })
    }

    /// Our name.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Until when something may be begun by the last renewal that succeeded. It may be past.
    pub fn may_act_until(&self) -> Option<Time> {
        self.renewed.map(|renewed| renewed + self.timing.renew_deadline)
    }

    /// Whether something may be begun now.
    pub fn leads(&self, now: Time) -> bool {
        self.may_act_until().is_some_and(|until| now < until)
    }

    /// Who held the Lease when we last heard of it.
    pub fn holder(&self) -> Option<&str> {
        match &self.known {
            Known::Seen { lease, .. } => holder(lease),
            Known::Nothing | Known::Absent { .. } => None,
        }
    }

    /// An annotation of the Lease, as we last heard of it.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        match &self.known {
            Known::Seen { lease, .. } => Some(lease.metadata.annotations.as_ref()?.get(name)?),
            Known::Nothing | Known::Absent { .. } => None,
        }
    }

    /// The next renewal writes this annotation, or takes it away, unless somebody writes the Lease before it.
    pub fn annotate(&mut self, name: &str, text: Option<String>) {
        let Known::Seen { lease, .. } = &mut self.known else { return };
        let annotations = lease.metadata.annotations.get_or_insert_default();
        match text {
            Some(text) => annotations.insert(name.to_owned(), text),
            None => annotations.remove(name),
        };
    }

    /// What to do now. A request counts as sent at `now`; the time of day only stands in the Lease,
    /// for people. A request whose end was never told counts as failed.
    pub fn next(&mut self, now: Time, wall: Timestamp) -> Next {
        let now = self.newest(now);
        if self.retired {
            return Next::Wait(Time::NEVER);
        }
        if self.asked.take().is_some() {
            self.plan = Plan::Read;
        }
        if now < self.due {
            return Next::Wait(self.due);
        }
        let request = match (self.plan, &self.known) {
            (Plan::Replace, Known::Seen { lease, .. }) => {
                Request::Replace(Box::new(self.ours(Some(lease), wall)))
            }
            (Plan::Create, _) => Request::Create(Box::new(self.ours(None, wall))),
            _ => Request::Read,
        };
        let version = match &request {
            Request::Replace(lease) => lease.metadata.resource_version.clone(),
            Request::Read | Request::Create(_) => None,
        };
        self.asked = Some(Asked { began: now, version });
        Next::Ask(request)
    }

    /// What came of the request, and when.
    pub fn heard(&mut self, now: Time, answer: Answer) {
        let now = self.newest(now);
        let Some(asked) = self.asked.take() else { return };
        match answer {
            Answer::Found(lease) => {
                self.see(*lease, now);
                self.judge(now);
            }
            Answer::Missing => {
                self.miss(now);
                self.judge(now);
            }
            Answer::Written(lease) => self.written(asked, *lease, now),
            Answer::Conflict => {
                self.plan = Plan::Read;
                // Whoever leads has no time to lose, but must not run in circles either.
                let hurry = self.leads(now) && !self.hurried;
                self.hurried = hurry;
                self.due = if hurry { now } else { now + self.timing.retry };
            }
            Answer::Failed(_) => {
                self.plan = Plan::Read;
                self.due = now.max(asked.began + self.timing.retry);
            }
        }
    }

    /// Nothing is asked for any more, and the Lease is left to run out.
    pub fn retire(&mut self) {
        self.retired = true;
        self.asked = None;
        self.renewed = None;
    }

    /// Retires, and gives the Lease to write when it is ours to give up. Only for when nothing of ours
    /// is on the wire: the next holder begins at once.
    pub fn release(&mut self, wall: Timestamp) -> Option<Request> {
        self.retire();
        let Known::Seen { lease, .. } = &self.known else { return None };
        if holder(lease) != Some(&*self.identity) {
            return None;
        }
        let mut free = self.ours(Some(lease), wall);
        if let Some(spec) = &mut free.spec {
            spec.holder_identity = None;
        }
        Some(Request::Replace(Box::new(free)))
    }

    fn newest(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// A version that we have not seen begins a new wait; the same one goes on with the old.
    fn see(&mut self, found: Lease, now: Time) {
        if let Known::Seen { lease, .. } = &self.known
            && lease.metadata.resource_version == found.metadata.resource_version
            && lease.metadata.uid == found.metadata.uid
        {
            return;
        }
        self.known = Known::Seen { lease: Box::new(found), since: now };
    }

    fn miss(&mut self, now: Time) {
        match &self.known {
            Known::Nothing => self.known = Known::Absent { since: now, vanished: false },
            Known::Absent { .. } => {}
            Known::Seen { .. } => self.known = Known::Absent { since: now, vanished: true },
        }
    }

    /// What follows from a look at the Lease.
    fn judge(&mut self, now: Time) {
        let (plan, free_at) = match &self.known {
            Known::Nothing => (Plan::Read, Time::NEVER),
            Known::Absent { since, vanished } => {
                // Somebody may have taken it away from under a holder who does not know yet.
                let waits = *vanished && !self.leads(now);
                (Plan::Create, if waits { *since + self.timing.lease } else { now })
            }
            Known::Seen { lease, since } => match holder(lease) {
                // Ours although no answer said so: renewed before it counts.
                Some(holder) if holder == &*self.identity => (Plan::Replace, now),
                Some(_) => (Plan::Replace, *since + self.claimed(lease)),
                None => (Plan::Replace, now),
            },
        };
        if free_at <= now {
            (self.plan, self.due) = (plan, now);
        } else {
            (self.plan, self.due) = (Plan::Read, free_at.min(now + self.timing.retry));
        }
    }

    fn written(&mut self, asked: Asked, lease: Lease, now: Time) {
        let changed = lease.metadata.resource_version != asked.version;
        let is_ours = holder(&lease) == Some(&*self.identity);
        self.see(lease, now);
        // A write that changed nothing is not seen by others, so it is no renewal.
        if !changed || !is_ours {
            (self.plan, self.due) = (Plan::Read, now + self.timing.retry);
            return;
        }
        self.renewed = Some(asked.began);
        self.hurried = false;
        (self.plan, self.due) = (Plan::Replace, asked.began + self.timing.retry);
    }

    /// How long another holder's Lease must be seen unchanged.
    fn claimed(&self, lease: &Lease) -> Duration {
        let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        let theirs = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.timing.honored(theirs, Seeded::NONE)
    }

    /// The Lease with us as its holder; what else stands in it stays.
    fn ours(&self, base: Option<&Lease>, wall: Timestamp) -> Lease {
        let mut lease = base.cloned().unwrap_or_default();
        let had = holder(&lease) == Some(&*self.identity);
        let spec = lease.spec.get_or_insert_default();
        let mut micros = wall.as_microsecond();
        // A clock that stands still must not make a renewal that changes nothing.
        if spec.renew_time.as_ref().is_some_and(|renewed| renewed.0.as_microsecond() == micros) {
            micros += 1;
        }
        let time = MicroTime(Timestamp::from_microsecond(micros).unwrap_or(wall));
        if !had {
            spec.acquire_time = Some(time.clone());
            if base.is_some() {
                spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
            }
        }
        spec.lease_transitions.get_or_insert_default();
        spec.holder_identity = Some(self.identity.to_string());
        spec.lease_duration_seconds = Some(whole_seconds(self.timing.lease));
        spec.renew_time = Some(time);
        lease
    }
}

/// Who holds it; an empty name is nobody.
fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|name| !name.is_empty())
}

/// The Lease has whole seconds, at least one; longer is safer than shorter.
fn whole_seconds(span: Duration) -> i32 {
    i32::try_from(span.as_millis().div_ceil(1000)).unwrap_or(i32::MAX).max(1)
}
