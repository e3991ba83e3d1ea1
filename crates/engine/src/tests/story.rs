//! Plays a story, line by line, and prints what the engine asks for.
//!
//! A line is a fact (`service web applied`), the end of an effect (`#1 done`) or something that happens in
//! Azure. Behind the story stands a small Azure that remembers what was written, so that reads and listings
//! answer truthfully. Listings and status writes are answered at once and not shown, and notices are not
//! shown, unless the story asks for them. A line takes a tenth of a second.
//!
//! ```text
//! config slots=1 linger=60 …                    only at the beginning; see `facts::configure`
//! lead                                          where it is missing, the story starts with it
//! node node-a 192.168.0.1 | node node-a deleted
//! service web applied [nofinalizer] [published=IP] [annotated=IP] [ingress=IP] [inherited: a finalizer] [deleting] [clusterip] [invalid] [port=80->8080/udp]… [idle=5] [annotations=a,b]
//!                     [both-families=prefer|require] [uid=2] [stale] [late] [wiped: its status and annotation] [stuck=addresses|nodes|ports|resources|deletion: its condition] | service other/web applied …
//! service web applied again                     the same event once more
//! service web deleted [uid=2] | service web vanishes
//! endpoints web 10.0.0.4@node-a 10.0.0.5@node-b!unready 10.0.0.6@node-b!terminating [slice=1] [port=8080]
//! endpoints web deleted [slice=1] | endpoints web vanish [slice=1]
//! pod p1 egress=blue ip=10.1.0.1 node=node-a [finished] [pending] [terminating] [hostnetwork] [uid=2]
//! pod p1 applied again | pod p1 deleted | pod p1 vanishes
//! services|slices|nodes|pods relisted [stale]
//! egress blue requested | egress blue released
//! #1 done | #1 lost [applied] [at STEP] | #1 failed CODE STATUS [after=SECONDS] [says=SOME_WORDS] [at STEP]
//! #1 refused
//! #1 gone | #1 exists | #1 unclear | #1 conflict | #1 unavailable
//! #1 waits | #1 throttled|budgeted SECONDS | #1 wants   gives its slot back, asks for one
//! #1 held SECONDS [budget]                      waits for the end of a pause, or for the budget, without a slot
//! last done                                     the effect shown last
//! plans|syncs fail CODE STATUS | … stop failing  every one, at its first write, at once; looks come through
//! azure …                                       see `azure::Azure::happens`
//! writes throttled SECONDS                      Azure asks for a pause of writes and deletes
//! tick SECONDS | allow deletion | leadership lost
//! show|hide status|lists|notices|news|times     `notices`: warnings; `show`: seen, and answered at once where it needs an answer
//! show|hide messages                            the messages with details in the status
//! hold|release status|lists                     `hold`: seen, and answered by the story
//! state web | explain web | trouble web | timeline web | initial sync
//! ```

pub(crate) mod azure;
mod facts;
mod words;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::format;
use std::net::IpAddr;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use sluice_model::allow_deletion::Fingerprint;
use sluice_model::effect::{Existence, KubeOutcome, Listing};
use sluice_model::event::{Relist, ThrottledCalls, Wait};
use sluice_model::kube::{Condition, NodeObject, ObjectRef, PodObject, ServiceObject, Slice};
use sluice_model::notices::{NOTE_BYTES_MAX, Place};
use sluice_model::plan::{PlanReport, Subject};
use sluice_model::reason::{Reason, Severity, names_an_action};
use sluice_model::seeded::Seeded;
use sluice_model::{
    Action, Effect, EffectId, EgressName, Event, Failure, FailureClass, Outcome, Plan, ServiceKey, Step, Time,
};

use crate::{Config, DefaultOutbound, Engine, State, Trigger};
use azure::Azure;

/// Deadlines that one `tick` may meet; more would be a timer that never advances.
const DEADLINES_MAX: usize = 20_000;

/// How often each trigger met each state.
pub(crate) type Cells = [[u64; Trigger::COUNT]; State::COUNT];

std::thread_local! {
    static CELLS: RefCell<Cells> = const { RefCell::new([[0; Trigger::COUNT]; State::COUNT]) };
    static NOTICES: RefCell<Vec<(Reason, bool, Place)>> = const { RefCell::new(Vec::new()) };
}

/// The kinds of notices that stories on this thread have led to since this was last asked.
pub(crate) fn notices_given() -> Vec<(Reason, bool, Place)> {
    NOTICES.take()
}

/// Plays a story and compares what the engine asked for.
pub(crate) fn check(input: &str, expected: expect_test::Expect) {
    expected.assert_eq(&told(input).shown());
}

/// Plays a story from its beginning.
pub(crate) fn told(input: &str) -> Story {
    told_with(input, Seeded::NONE)
}

/// The same, with a deliberate bug.
pub(crate) fn told_with(input: &str, seeded: Seeded) -> Story {
    let lines: Vec<&str> = input.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let settings = lines.iter().take_while(|line| line.starts_with("config ")).count();
    let mut config = Story::config();
    for line in &lines[..settings] {
        facts::configure(&mut config, line);
    }
    let mut story = Story::with_bug(config, seeded);
    if !lines.contains(&"lead") {
        story.play("lead");
        story.lines.clear();
    }
    for line in &lines[settings..] {
        story.play(line);
    }
    story
}

/// The message of a condition of a failure names an action and is not too long. What a leader before has written stays
/// as it is.
fn assert_says_what_to_do(object: &ObjectRef, condition: &Condition) {
    let message = match &*condition.message {
        "" => condition.reason.message(condition.concern, Some(&object.name), None),
        message => message.into(),
    };
    if condition.reason.row().severity >= Severity::Warning && !message.ends_with(facts::OF_LEADER_BEFORE) {
        let (said, _) = message.split_once(" Details: ").expect("the commands that show more");
        assert!(names_an_action(said), "it does not say what to do: {message}");
    }
    assert!(message.len() <= NOTE_BYTES_MAX, "too long: {message}");
}

/// A story being played.
pub(crate) struct Story {
    pub(crate) engine: Engine,
    pub(crate) azure: Azure,
    pub(crate) now: Time,
    version: u64,
    objects: BTreeMap<String, ServiceObject>,
    slices: BTreeMap<String, Slice>,
    nodes: BTreeMap<String, NodeObject>,
    pods: BTreeMap<String, PodObject>,
    pods_made: u128,
    /// The names of identities and locations that the story has met, for people.
    names: BTreeMap<String, String>,
    pending: BTreeMap<EffectId, Asked>,
    numbers: BTreeMap<u64, EffectId>,
    plans_fail: Option<Failure>,
    syncs_fail: Option<Failure>,
    lines: Vec<String>,
    shows: Shows,
}

/// What is shown beside the effects that matter in every story.
#[derive(Default)]
struct Shows {
    status: bool,
    lists: bool,
    notices: bool,
    news: bool,
    times: bool,
    messages: bool,
    hold_status: bool,
    hold_lists: bool,
}

/// An effect whose end is still to come.
struct Asked {
    action: Action,
    at: Time,
    /// What a listing shows: what was there when it began.
    listing: Option<Listing>,
}

impl Story {
    /// The configuration of most stories: no default outbound service of its own accord.
    pub(crate) fn config() -> Config {
        let mut config = Config::new(azure::scope());
        config.default_outbound = DefaultOutbound::Leave;
        config
    }

    /// An engine on standby; play `lead` to start it.
    pub(crate) fn standby(config: Config) -> Story {
        Story::with_bug(config, Seeded::NONE)
    }

    fn with_bug(config: Config, seeded: Seeded) -> Story {
        Story {
            azure: Azure::new(config.scope.clone()),
            engine: Engine::new(config, 7, seeded),
            now: Time::ZERO,
            version: 1,
            objects: BTreeMap::new(),
            slices: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            pods_made: 0,
            names: BTreeMap::new(),
            pending: BTreeMap::new(),
            numbers: BTreeMap::new(),
            plans_fail: None,
            syncs_fail: None,
            lines: Vec::new(),
            shows: Shows::default(),
        }
    }

    /// What the engine asked for, one line each.
    pub(crate) fn shown(&self) -> String {
        let mut text = self.lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Plays lines; each takes a tenth of a second.
    pub(crate) fn play(&mut self, input: &str) {
        for line in input.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.now = self.now + Duration::from_millis(100);
            self.line(line);
        }
    }

    /// The key of a service that the story calls so.
    pub(crate) fn key(&self, name: &str) -> ServiceKey {
        match self.objects.get(name) {
            Some(object) => ServiceKey::Inbound(object.uid),
            None => ServiceKey::from_identity(&self.identity(name)).expect("a service of the story"),
        }
    }

    /// The effects whose end is still to come.
    pub(crate) fn in_flight(&self) -> Vec<(EffectId, Action)> {
        self.pending
            .iter()
            .filter(|(_, asked)| !matches!(asked.action, Action::ResumePlan(_) | Action::Relist(_)))
            .map(|(id, asked)| (*id, asked.action.clone()))
            .collect()
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["lead"] => {
                for kind in ["services", "slices", "nodes", "pods"] {
                    self.relist(kind, false);
                }
                self.tell(Event::LeadershipGained);
            }
            ["leadership", "lost"] => self.tell(Event::LeadershipLost),
            ["writes", "throttled", seconds] => self.tell(Event::Throttled {
                calls: ThrottledCalls::WritesAndDeletes,
                wait: Duration::from_secs(seconds.parse().expect("seconds")),
            }),
            ["tick", seconds] => self.tick(seconds.parse().expect("seconds")),
            ["allow", "deletion", rest @ ..] => self.allow_deletion(rest),
            [kind, "relisted", rest @ ..] => self.relist(kind, rest.contains(&"stale")),
            ["service", name, rest @ ..] => self.service_line(name, rest),
            ["endpoints", name, rest @ ..] => self.endpoints_line(name, rest),
            ["node", name, rest @ ..] => self.node_line(name, rest),
            ["pod", name, rest @ ..] => self.pod_line(name, rest),
            ["egress", name, "requested"] => self.tell(Event::EgressAdded(EgressName::parse(name).unwrap())),
            ["egress", name, "released"] => {
                self.tell(Event::EgressReleased(EgressName::parse(name).unwrap()));
            }
            ["azure", rest @ ..] => {
                let key = rest.iter().find_map(|word| self.key_in(word));
                self.azure.happens(rest, key.as_ref());
            }
            [what @ ("plans" | "syncs"), "fail", code, status, rest @ ..] => {
                let failure = words::failure(&[&["failed", code, status], rest].concat());
                *self.fails(what) = failure;
            }
            [what @ ("plans" | "syncs"), "stop", "failing"] => *self.fails(what) = None,
            ["show", what] => *self.shows.flag(what) = true,
            ["hide", what] => *self.shows.flag(what) = false,
            ["hold", "status"] => self.shows.hold_status = true,
            ["hold", "lists"] => self.shows.hold_lists = true,
            ["release", "status"] => self.shows.hold_status = false,
            ["release", "lists"] => self.shows.hold_lists = false,
            ["state", name] => {
                let explained = self.engine.explain(&self.key(name));
                let state = explained.map_or("forgotten".into(), |it| it.view.state.to_string());
                self.say(format!("{name} is {state}"));
            }
            ["explain", name] => self.say_explanation(name),
            ["trouble", name] => {
                let trouble = self.engine.view_of(&self.key(name)).and_then(|view| view.trouble);
                let words =
                    trouble.map(|it| format!("{name}: {} of {:?}: {}", it.reason, it.concern, it.text));
                self.say(words.unwrap_or_else(|| format!("{name} is in no trouble")));
            }
            ["timeline", name] => self.say_timeline(name),
            ["initial", "sync"] => {
                let left = self.engine.initial_sync_left();
                let done = if self.engine.initial_sync_done() { "done" } else { "not done" };
                self.say(format!("initial sync is {done}, {left} left"));
            }
            ["last", ending @ ..] => self.end(self.numbers.len() as u64, ending),
            [number, ending @ ..] if number.starts_with('#') => {
                self.end(number[1..].parse().expect("a number"), ending);
            }
            _ => panic!("the story has a line that nobody understands: {line}"),
        }
    }

    fn fails(&mut self, what: &str) -> &mut Option<Failure> {
        if what == "plans" { &mut self.plans_fail } else { &mut self.syncs_fail }
    }

    /// The service that a word of an `azure` line names.
    fn key_in(&self, word: &str) -> Option<ServiceKey> {
        if let Some(number) = word.strip_prefix("uid=") {
            return Some(ServiceKey::Inbound(facts::uid(number)));
        }
        let known = self.objects.contains_key(word) || self.names.values().any(|name| name == word);
        let egress = word.strip_prefix("egress=").map(|name| name.to_string());
        known.then(|| self.key(word)).or_else(|| ServiceKey::from_identity(&egress?))
    }

    fn tick(&mut self, seconds: f64) {
        let end = self.now + Duration::from_millis((seconds * 1000.0) as u64);
        for _ in 0..DEADLINES_MAX {
            let Some(at) = self.engine.next_deadline().filter(|at| *at <= end) else {
                self.now = end;
                return self.tell(Event::Tick);
            };
            self.now = self.now.max(at);
            self.tell(Event::Tick);
        }
        panic!("the engine asks to be woken again and again at {}", self.now);
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// The operator allows what is held now, without the services that are excepted; or exactly those that are
    /// named with their public IP, as an earlier leader showed them; or nothing.
    fn allow_deletion(&mut self, rest: &[&str]) {
        let allowed = match rest {
            ["of", named @ ..] => {
                let named = named.iter().filter_map(|it| it.split_once('@'));
                named.map(|(name, ip)| Fingerprint::of(&self.key(name), ip.parse().ok())).collect()
            }
            _ => {
                let held = self.engine.services().into_iter().filter(|view| match rest {
                    ["except", names @ ..] => !names.iter().any(|name| self.key(name) == view.key),
                    _ => true,
                });
                held.filter_map(|view| view.held).map(|held| held.fingerprint).collect()
            }
        };
        self.tell(Event::DeletionAllowed(allowed));
    }

    fn relist(&mut self, kind: &str, stale: bool) {
        let objects = match kind {
            "services" => Relist::Services(self.objects.values().cloned().collect()),
            "slices" => Relist::Slices(self.slices.values().cloned().collect()),
            "nodes" => Relist::Nodes(self.nodes.values().cloned().collect()),
            "pods" => Relist::Pods(self.pods.values().cloned().collect()),
            _ => panic!("{kind} cannot be listed"),
        };
        let version = if stale { 1 } else { self.next_version() };
        self.tell(Event::Relisted { version, objects });
    }

    /// Tells the engine and takes down what it asks for.
    pub(crate) fn tell(&mut self, event: Event) {
        let effects = self.engine.handle(self.now, event);
        for effect in effects {
            self.take_down(effect);
        }
        self.engine.recount().expect("the engine's counts agree");
    }

    fn say(&mut self, text: String) {
        let time = if self.shows.times { format!("t={} ", self.now) } else { String::new() };
        self.lines.push(format!("{time}{text}"));
    }

    fn take_down(&mut self, effect: Effect) {
        let Effect { id, action, cause } = effect;
        if let Action::WriteStatus { object, conditions, .. } = &action {
            conditions.iter().for_each(|condition| assert_says_what_to_do(object, condition));
        }
        let answered_at_once = match &action {
            Action::List(_) if !self.shows.hold_lists => Some(self.shows.lists),
            Action::WriteStatus { .. } if !self.shows.hold_status => Some(self.shows.status),
            Action::Notify(notice) => {
                // The failures of stories end with a period, as those of Azure do.
                let text = &notice.text;
                assert!(
                    !text.contains("..") && !text.ends_with('.'),
                    "two periods, or one at the end: {text}"
                );
                assert!(text.len() <= NOTE_BYTES_MAX, "too long for an event: {text}");
                NOTICES.with_borrow_mut(|all| {
                    all.push((notice.reason, notice.warning, Place::of(&notice.about)))
                });
                let shown = if notice.warning { self.shows.notices } else { self.shows.news };
                if shown {
                    self.say(self.notice_words(notice));
                }
                return;
            }
            _ => None,
        };
        let listing = match &action {
            Action::List(kind) => Some(self.azure.listing(*kind)),
            _ => None,
        };
        let words = self.words(&action);
        self.pending.insert(id, Asked { action, at: self.now, listing });
        if let Some(shown) = answered_at_once {
            if shown {
                self.say(format!("({words})"));
            }
            let asked = self.pending.remove(&id).expect("just put there");
            if asked.listing.is_some() {
                // Two listings never begin at the same moment.
                self.now = self.now + Duration::from_millis(1);
            }
            return self.finish(id, asked, &["done"]);
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(number, id);
        self.say(format!("#{number} {words}   because {}", cause.words()));
        if let Some(outcome) = self.failing(id) {
            self.pending.remove(&id);
            self.tell(Event::EffectFinished { id, outcome });
        }
    }

    /// How an effect ends while all of its kind fail.
    fn failing(&mut self, id: EffectId) -> Option<Outcome> {
        match &self.pending.get(&id)?.action {
            Action::RunPlan(plan) => {
                let failure = self.plans_fail.clone()?;
                let Plan { subject, steps, .. } = plan.clone();
                let reads = steps.iter().take_while(|step| step.is_read());
                let done: Vec<_> = reads.map(|step| self.azure.apply(&subject, step)).collect();
                let failure = (done.len() < steps.len()).then_some(failure);
                Some(Outcome::Plan(PlanReport { done, failure }))
            }
            Action::SyncLocations(_) => {
                let failure = self.syncs_fail.clone()?;
                Some(Outcome::Locations { failure: Some(failure), next_at: self.now })
            }
            _ => None,
        }
    }

    fn end(&mut self, number: u64, ending: &[&str]) {
        let id = *self.numbers.get(&number).unwrap_or_else(|| panic!("#{number} has not been asked for"));
        match ending {
            ["waits"] => return self.tell(Event::SlotReleased { id, wait: Wait::SharedCommit }),
            ["throttled", seconds] => {
                let until = self.now + Duration::from_secs(seconds.parse().expect("seconds"));
                return self.tell(Event::SlotReleased { id, wait: Wait::Throttled { until } });
            }
            ["held", seconds, cause @ ..] => {
                let until = self.now + Duration::from_secs(seconds.parse().expect("seconds"));
                let wait = match cause {
                    ["budget"] => Wait::Budget { until },
                    _ => Wait::Throttled { until },
                };
                return self.tell(Event::Held { id, wait });
            }
            ["budgeted", seconds] => {
                let until = self.now + Duration::from_secs(seconds.parse().expect("seconds"));
                return self.tell(Event::SlotReleased { id, wait: Wait::Budget { until } });
            }
            ["wants"] => return self.tell(Event::SlotWanted(id)),
            _ => {}
        }
        let asked = self.pending.remove(&id).unwrap_or_else(|| panic!("#{number} has ended already"));
        self.finish(id, asked, ending);
    }

    /// Lets an effect end, in the small Azure and in the engine.
    fn finish(&mut self, id: EffectId, asked: Asked, ending: &[&str]) {
        let mut read = None;
        let outcome = match asked.action {
            Action::RunPlan(plan) => {
                let report = self.run(&plan.subject, &plan.steps, ending);
                let done = &plan.steps[..report.done.len()];
                if done.iter().any(|step| matches!(step, Step::ReadRegistration(_))) {
                    let all = self.azure.registrations.values().cloned().collect();
                    read = Some(Event::RegistrationsRead { began: self.now, all });
                }
                Outcome::Plan(report)
            }
            Action::SyncLocations(batch) => {
                let failure = words::failure(ending);
                if failure.is_none() || ending.contains(&"applied") {
                    self.azure.apply_locations(&batch);
                }
                Outcome::Locations { failure, next_at: self.now }
            }
            Action::List(kind) => {
                let failure = words::failure(ending).or_else(|| self.azure.list_failure(kind));
                let listing = asked.listing.expect("listings are taken when they begin");
                Outcome::Listed { began: asked.at, result: failure.map_or(Ok(listing), Err) }
            }
            action @ (Action::AddFinalizer(_) | Action::RemoveFinalizer(_) | Action::WriteStatus { .. }) => {
                // A version is left out, for an event of the time before that comes `late`.
                self.version += 1;
                let version = self.next_version();
                let outcome = words::kube(ending, version);
                if matches!(outcome, KubeOutcome::Done { .. }) {
                    self.write_object(&action, version);
                }
                Outcome::Kube(outcome)
            }
            Action::ConfirmGone(_) => Outcome::Existence(match ending {
                ["gone"] => Existence::Gone,
                ["exists"] => Existence::Exists,
                _ => Existence::Unclear,
            }),
            other => panic!("{other:?} has no end"),
        };
        self.tell(Event::EffectFinished { id, outcome });
        if let Some(read) = read {
            self.tell(read);
        }
    }

    /// What our write leaves in the object.
    fn write_object(&mut self, action: &Action, version: u64) {
        let (object, write) = match action {
            Action::AddFinalizer(object) => (object, Some(true)),
            Action::RemoveFinalizer(object) => (object, Some(false)),
            Action::WriteStatus { object, .. } => (object, None),
            _ => return,
        };
        let Some(known) = self.objects.values_mut().find(|known| known.uid == object.uid) else { return };
        known.version = version;
        if let Some(finalizer) = write {
            known.finalizer = finalizer;
            known.inherited &= finalizer;
        }
        if let Action::WriteStatus { ingress, retract, conditions, .. } = action {
            known.ingress.retain(|ip| Some(*ip) != *retract);
            let missing: Vec<IpAddr> =
                ingress.iter().filter(|ip| !known.ingress.contains(ip)).copied().collect();
            known.ingress.extend(missing);
            known.published = *ingress;
            known.annotated = ingress.or(known.annotated.filter(|ip| known.ingress.contains(ip)));
            known.conditions.clone_from(conditions);
        }
    }

    fn run(&mut self, subject: &Subject, steps: &[Step], ending: &[&str]) -> PlanReport {
        let failure = words::failure(ending);
        let stop = match ending.iter().position(|word| *word == "at") {
            Some(at) => {
                steps.iter().position(|step| step.word() == ending[at + 1]).expect("a step of this plan")
            }
            None if failure.is_some() => 0,
            None => steps.len(),
        };
        let done = steps[..stop].iter().map(|step| self.azure.apply(subject, step)).collect();
        if ending.contains(&"applied") {
            self.azure.apply(subject, &steps[stop]);
        }
        PlanReport { done, failure }
    }
}

impl Drop for Story {
    /// Adds the cells of the table that this story met to those of its thread.
    fn drop(&mut self) {
        CELLS.with_borrow_mut(|met| {
            for (row, cells) in met.iter_mut().zip(&self.engine.counters().cells) {
                for (met, count) in row.iter_mut().zip(cells) {
                    *met += count;
                }
            }
        });
    }
}

/// The cells that the stories of this thread have met since the last call.
pub(crate) fn cells_met() -> Cells {
    CELLS.take()
}

impl Shows {
    fn flag(&mut self, what: &str) -> &mut bool {
        match what {
            "status" => &mut self.status,
            "lists" => &mut self.lists,
            "notices" => &mut self.notices,
            "news" => &mut self.news,
            "times" => &mut self.times,
            "messages" => &mut self.messages,
            _ => panic!("{what} cannot be shown"),
        }
    }
}

/// A failure of a class, as Azure would say it.
pub(crate) fn failure(class: FailureClass, code: &str, status: u16) -> Failure {
    Failure { status, ..Failure::of(class, code, "as the story says.") }
}
