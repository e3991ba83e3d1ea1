//! What was done for each service lately: its last plan step by step, the calls to Azure, what people
//! were told. For explanations only; nothing is decided by it.
//!
//! All of it is bounded over all services together, so a cluster of ten thousand costs no more than
//! one of a hundred, and what is old goes first. A call is found by the service that its operation
//! is for, or by the services that it names: one commit or sync carries many. A sync that only takes
//! addresses off names none, and so belongs to nobody here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sluice_model::call::{Body, Method, Payload, Reply, Request};
use sluice_model::effect::{About, Notice};
use sluice_model::plan::{Intent, Plan, Subject};
use sluice_model::{EffectId, Failure, Outcome, ServiceKey, Time};
use sluice_updater::{CallId, StepEnd, StepNote};

/// Names in all calls that are kept; a call of many services weighs more.
const CALL_NAMES_MAX: usize = 16_384;
/// Plans that are kept, one for each service.
const PLANS_MAX: usize = 4_096;
/// Notices that are kept.
const NOTICES_MAX: usize = 2_048;
/// Calls of one service that are given to whoever asks.
const CALLS_SHOWN: usize = 60;
/// Notices of one service that are given to whoever asks.
const NOTICES_SHOWN: usize = 30;

/// What Azure calls a service.
type Identity = Arc<str>;

/// What was done lately.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    calls: VecDeque<CallNote>,
    call_names: usize,
    /// Calls that were kept and have gone since.
    calls_gone: u64,
    /// Calls on their way, and which of all that were kept each is.
    on_their_way: HashMap<CallId, u64>,
    plans: HashMap<Identity, PlanNote>,
    /// Whose plan was begun when, the oldest first.
    plan_order: VecDeque<(Identity, EffectId)>,
    /// Whom an operation in flight is for.
    subjects: HashMap<EffectId, Identity>,
    notices: VecDeque<(Identity, NoticeNote)>,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct CallNote {
    names: Vec<Identity>,
    pub(crate) effect: EffectId,
    pub(crate) at: Time,
    pub(crate) method: Method,
    pub(crate) target: String,
    /// Nothing while it is on its way.
    pub(crate) end: Option<CallEnd>,
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CallEnd {
    pub(crate) took: Duration,
    /// The status, unless there was no answer.
    pub(crate) status: Option<u16>,
    /// Azure's code, or why there was no answer.
    pub(crate) trouble: Option<String>,
}

/// The last plan of a service.
#[derive(Clone, Debug)]
pub(crate) struct PlanNote {
    pub(crate) effect: EffectId,
    pub(crate) intent: Intent,
    pub(crate) cause: &'static str,
    pub(crate) at: Time,
    pub(crate) steps: Vec<StepLine>,
    /// When it ended, and why it failed if it did.
    pub(crate) end: Option<(Time, Option<String>)>,
}

/// One step of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StepLine {
    pub(crate) word: &'static str,
    pub(crate) phase: StepPhase,
}

/// How far a step is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StepPhase {
    Waiting,
    Running,
    Ended(Duration, Option<Failure>),
}

/// What people were told.
#[derive(Clone, Debug)]
pub(crate) struct NoticeNote {
    pub(crate) at: Time,
    pub(crate) notice: Notice,
}

/// The pages about one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pub(crate) plan: Option<PlanNote>,
    /// Oldest first.
    pub(crate) calls: Vec<CallNote>,
    /// Oldest first.
    pub(crate) notices: Vec<NoticeNote>,
}

impl Journal {
    /// What is known about one service.
    pub(crate) fn of(&self, key: &ServiceKey) -> Pages {
        let identity = key.identity();
        let last = |count: usize, total: usize| total.saturating_sub(count);
        let calls: Vec<&CallNote> = self.calls.iter().filter(|note| note.names.contains(&identity)).collect();
        let notices: Vec<&NoticeNote> =
            self.notices.iter().filter(|(about, _)| *about == identity).map(|(_, note)| note).collect();
        Pages {
            plan: self.plans.get(&identity).cloned(),
            calls: calls[last(CALLS_SHOWN, calls.len())..].iter().copied().cloned().collect(),
            notices: notices[last(NOTICES_SHOWN, notices.len())..].iter().copied().cloned().collect(),
        }
    }

    /// A plan begins.
    pub(crate) fn planned(&mut self, at: Time, effect: EffectId, cause: &'static str, plan: &Plan) {
        let Subject::Service(key) = &plan.subject else { return };
        let identity = key.identity();
        self.subjects.insert(effect, Arc::clone(&identity));
        let steps = plan.steps.iter();
        let steps = steps.map(|step| StepLine { word: step.word(), phase: StepPhase::Waiting }).collect();
        let note = PlanNote { effect, intent: plan.intent, cause, at, steps, end: None };
        self.plans.insert(Arc::clone(&identity), note);
        self.plan_order.push_back((identity, effect));
        if self.plan_order.len() > PLANS_MAX
            && let Some((old, effect)) = self.plan_order.pop_front()
            // A later plan of the same service has its own place.
            && self.plans.get(&old).is_some_and(|note| note.effect == effect)
        {
            self.plans.remove(&old);
        }
    }

    /// A step of a plan begins or ends.
    pub(crate) fn step(&mut self, note: &StepNote) {
        let Some(plan) = self.plan_of(note.effect) else { return };
        let Some(line) = note.number.checked_sub(1).and_then(|at| plan.steps.get_mut(at)) else { return };
        line.phase = match &note.end {
            None => StepPhase::Running,
            Some(StepEnd { took, failure }) => StepPhase::Ended(*took, failure.clone()),
        };
    }

    /// An effect has ended.
    pub(crate) fn ended(&mut self, at: Time, effect: EffectId, outcome: &Outcome) {
        let Outcome::Plan(report) = outcome else { return };
        let failure = report.failure.as_ref().map(ToString::to_string);
        if let Some(plan) = self.plan_of(effect) {
            plan.end = Some((at, failure));
        }
        self.subjects.remove(&effect);
    }

    fn plan_of(&mut self, effect: EffectId) -> Option<&mut PlanNote> {
        let identity = self.subjects.get(&effect)?;
        self.plans.get_mut(identity).filter(|note| note.effect == effect)
    }

    /// A request leaves.
    pub(crate) fn sent(&mut self, at: Time, call: CallId, effect: EffectId, request: &Request) {
        let mut names: Vec<Identity> = match &request.body {
            Body::Services(services) => services.iter().map(|it| Arc::clone(&it.service.name)).collect(),
            Body::Locations(locations) => {
                let addresses = locations.iter().flat_map(|location| &location.addresses);
                addresses.flat_map(|address| address.services.iter().cloned()).collect()
            }
            _ => Vec::new(),
        };
        names.extend(self.subjects.get(&effect).cloned());
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return;
        }
        // Where an operation is polled, Azure gave the address, and its query is signed.
        let target = request.target.as_str().split(['?', '#']).next().unwrap_or_default().to_owned();
        self.call_names += names.len();
        self.on_their_way.insert(call, self.calls_gone + self.calls.len() as u64);
        let method = request.method;
        self.calls.push_back(CallNote { names, effect, at, method, target, end: None });
        while self.call_names > CALL_NAMES_MAX
            && let Some(old) = self.calls.pop_front()
        {
            self.call_names -= old.names.len();
            self.calls_gone += 1;
        }
    }

    /// Its reply has come.
    pub(crate) fn replied(&mut self, at: Time, call: CallId, reply: &Reply) {
        let Some(number) = self.on_their_way.remove(&call) else { return };
        let place = number.checked_sub(self.calls_gone).and_then(|place| usize::try_from(place).ok());
        let Some(note) = place.and_then(|place| self.calls.get_mut(place)) else { return };
        let (status, trouble) = match reply {
            Reply::Answered(answer) => {
                let code = match &answer.payload {
                    Payload::Error(error) => Some(error.code.to_string()),
                    _ => None,
                };
                (Some(answer.status), code)
            }
            Reply::NotSent(why) => {
                (None, Some(format!("not sent: {}", why.trim_start_matches("request not sent: "))))
            }
            Reply::Lost(why) => (None, Some(format!("no answer: {why}"))),
        };
        note.end = Some(CallEnd { took: at.since(note.at), status, trouble });
    }

    /// People are told something.
    pub(crate) fn told(&mut self, at: Time, notice: &Notice) {
        let identity: Identity = match &notice.about {
            About::Service(object) => object.uid.to_string().into(),
            About::Key(key) => key.identity(),
            About::Pod(_) | About::Cluster => return,
        };
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back((identity, NoticeNote { at, notice: notice.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::azure::ArmId;
    use sluice_model::plan::PlanReport;
    use sluice_model::{EgressName, Uid};

    use super::*;

    fn blue() -> ServiceKey {
        ServiceKey::Outbound(EgressName::parse("blue").unwrap())
    }

    fn request(target: &str) -> Request {
        Request::bare(Method::Get, ArmId::new(target))
    }

    fn plan(key: &ServiceKey) -> Plan {
        Plan { subject: Subject::Service(key.clone()), intent: Intent::Provision, steps: Vec::new() }
    }

    #[test]
    fn calls_belong_to_the_service_of_their_operation_and_show_no_signed_query() {
        let mut journal = Journal::default();
        let effect = EffectId(7);
        journal.planned(Time::ZERO, effect, "asked for", &plan(&blue()));
        journal.sent(Time::ZERO, CallId(1), effect, &request("/operations/1?sig=s3cret"));
        journal.sent(Time::ZERO, CallId(2), EffectId(8), &request("/elsewhere"));
        journal.replied(Time::from_millis(40), CallId(1), &Reply::lost("reset"));
        let pages = journal.of(&blue());
        assert_eq!(pages.calls.len(), 1);
        assert_eq!(pages.calls[0].target, "/operations/1");
        let end = pages.calls[0].end.as_ref().unwrap();
        assert_eq!((end.took.as_millis(), end.status), (40, None));
        assert!(end.trouble.as_ref().unwrap().contains("reset"));
    }

    #[test]
    fn it_forgets_the_oldest_and_never_grows_beyond_its_bounds() {
        let mut journal = Journal::default();
        for number in 0..100_000_u64 {
            let key = ServiceKey::Inbound(Uid::from_number(u128::from(number)));
            journal.planned(Time::ZERO, EffectId(number), "asked for", &plan(&key));
            journal.sent(Time::ZERO, CallId(number), EffectId(number), &request("/x"));
            journal.replied(Time::ZERO, CallId(number), &Reply::lost("reset"));
            let report = Outcome::Plan(PlanReport { done: Vec::new(), failure: None });
            journal.ended(Time::ZERO, EffectId(number), &report);
        }
        assert!(journal.calls.len() <= CALL_NAMES_MAX && journal.plans.len() <= PLANS_MAX);
        assert!(journal.subjects.is_empty() && journal.on_their_way.is_empty());
        let newest = ServiceKey::Inbound(Uid::from_number(99_999));
        assert!(journal.of(&newest).plan.is_some() && journal.of(&newest).calls[0].end.is_some());
        assert!(journal.of(&ServiceKey::Inbound(Uid::from_number(0))).plan.is_none());
    }
}
