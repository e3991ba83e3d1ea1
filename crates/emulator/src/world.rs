//! What one lock keeps together: the surface, the faults, the request log, the journal and the clock.
//!
//! Everything that changes the cloud goes through [`World::apply`] or [`World::change`], which are handed
//! the time and look at nothing else; a replay of the journal takes the same two ways. Around them the
//! live ways take the time from the clock and write the line before anybody hears of the result.

mod tamper;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use sluice_cloud::{Buckets, Config};
use sluice_model::Time;
use sluice_model::azure::ArmId;
use tracing::{error, warn};

use crate::clock::Clock;
use crate::faults::{Faults, What};
use crate::journal::{Journal, Record, Recorded};
use crate::options::Prepared;
use crate::request_log::RequestLog;
use crate::settings::{read_buckets, read_quota, show_buckets, show_quota};
use crate::surface::{Handled, Surface};
use crate::tokens::Tokens;

use tamper::Deed;

/// The longest jump of the clock: a year.
const SKIP_MAX: Duration = Duration::from_secs(366 * 86_400);

/// How long an operation that is over can be asked for in real time, where that is longer than an emulated
/// hour: the slowest of the official clients looks every thirty seconds.
const OPERATIONS_KEPT: Duration = Duration::from_secs(3_600);

/// Who makes the groups that are there from the start, and pays for them.
const PREPARER: &str = "the emulator";

/// The world, shared by all connections.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

/// Everything that a request can see or change.
pub(crate) struct World {
    pub(crate) surface: Surface,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) log: RequestLog,
    tokens: Arc<Tokens>,
    journal: Option<Journal>,
    /// With which the cloud began.
    config: Config,
    prepare: Vec<Prepared>,
    /// While history is replayed nobody is throttled, since what was refused then is not in it: these are
    /// the limits to have afterwards.
    limits_after_replay: Option<Option<Buckets>>,
}

/// Why the control API does not do something.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl Problem {
    /// The caller should have asked otherwise.
    pub(crate) fn bad(message: impl Into<String>) -> Problem {
        Problem { status: StatusCode::BAD_REQUEST, message: message.into() }
    }
}

/// What of the control API changes the cloud, in the words of the journal.
pub(crate) const CHANGES: [&str; 7] =
    ["tamper", "quota", "buckets", "slow", "poison", "calm", "tokens/expire"];

impl Shared {
    pub(crate) fn new(world: World) -> Shared {
        Shared(Arc::new(Mutex::new(world)))
    }

    /// Nobody holds it across an await, so nobody waits long.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        // A panic in one request must not take everybody else's cloud away.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// A world with a history, and its time where that stopped.
    pub(crate) fn new(
        config: Config,
        time_factor: f64,
        journal: Option<(Journal, Vec<Record>)>,
        tokens: Arc<Tokens>,
        log: RequestLog,
        prepare: Vec<Prepared>,
    ) -> World {
        let unlimited = Config { buckets: None, ..config.clone() };
        let (journal, history) = journal.map_or((None, Vec::new()), |(journal, it)| (Some(journal), it));
        let mut world = World {
            surface: fresh_surface(unlimited, time_factor),
            clock: Clock::starting_at(Time::ZERO, time_factor),
            faults: Faults::default(),
            log,
            tokens,
            journal: None,
            limits_after_replay: Some(config.buckets),
            config,
            prepare,
        };
        let mut time = Time::ZERO;
        for (line, record) in history.iter().enumerate() {
            time = time.max(Time::from_millis(record.at));
            world.replay(time, line + 2, record);
        }
        let limits = world.limits_after_replay.take().flatten();
        world.surface.cloud_mut().set_buckets(limits);
        world.clock = Clock::starting_at(time, time_factor);
        world.journal = journal;
        world.make_groups();
        world
    }

    fn replay(&mut self, now: Time, line: usize, record: &Record) {
        if let Some(request) = record.http.as_ref().and_then(|recorded| recorded.request().ok()) {
            let handled = self.apply(now, &request, "https://localhost", 1.0, record.fault.as_ref());
            let status = handled.answer.map(|answer| answer.status().as_u16());
            if status != record.status {
                warn!(line, was = ?record.status, is = ?status, "replay of the state file: a write is answered differently");
            }
        } else if let Some(word) = &record.control {
            if let Err(problem) = self.change(now, word, record.with.as_ref().unwrap_or(&Value::Null)) {
                warn!(line, why = problem.message, "replay of the state file: a change is rejected");
            }
        } else {
            self.surface.cloud_mut().advance(now);
        }
    }

    /// One request to the resource manager at a time.
    fn apply(
        &mut self,
        now: Time,
        request: &Request<Bytes>,
        origin: &str,
        time_factor: f64,
        fault: Option<&What>,
    ) -> Handled {
        let fault = fault.and_then(What::model);
        self.surface.handle(now, request, origin, time_factor, fault.as_ref())
    }

    /// One request of somebody to the resource manager, now. `Err`: it was carried out, but not written down.
    pub(crate) fn handle(
        &mut self,
        principal: &str,
        request: &Request<Bytes>,
        origin: &str,
        fault: Option<&What>,
    ) -> Result<Handled, Problem> {
        let now = self.clock.now();
        let something_ends = self.something_ends(now);
        // A replay needs no payer: nobody is throttled then.
        self.surface.set_payer(principal);
        let handled = self.apply(now, request, origin, self.clock.factor(), fault);
        let status = handled.answer.as_ref().map(|answer| answer.status().as_u16());
        if handled.is_write {
            self.write(|| Record {
                at: now.as_millis(),
                http: Some(Recorded::of(request)),
                fault: fault.filter(|it| it.model().is_some()).cloned(),
                status,
                ..Record::default()
            })?;
        } else if something_ends {
            self.write(|| Record::mark(now.as_millis()))?;
        }
        Ok(handled)
    }

    /// Brings the cloud up to this moment, for somebody who wants to look at it.
    pub(crate) fn settle(&mut self) -> Result<Time, Problem> {
        let now = self.clock.now();
        if self.something_ends(now) {
            self.surface.cloud_mut().advance(now);
            self.write(|| Record::mark(now.as_millis()))?;
        }
        Ok(now)
    }

    /// Lets emulated time pass at once.
    pub(crate) fn skip(&mut self, time: Duration) -> Result<Time, Problem> {
        self.clock.skip(time.min(SKIP_MAX));
        let now = self.clock.now();
        self.surface.cloud_mut().advance(now);
        self.write(|| Record::mark(now.as_millis()))?;
        Ok(now)
    }

    fn something_ends(&self, now: Time) -> bool {
        self.surface.cloud().next_change().is_some_and(|at| at <= now)
    }

    /// One change by the control API, now.
    pub(crate) fn change_now(&mut self, word: &str, with: &Value) -> Result<Value, Problem> {
        // What is over by now is over without the change, be it refused or not.
        let now = self.settle()?;
        let shown = self.change(now, word, with)?;
        let (at, control) = (now.as_millis(), Some(word.to_owned()));
        self.write(|| Record { at, control, with: Some(with.clone()), ..Record::default() })?;
        Ok(shown)
    }

    /// One change by the control API, at a time; says what it is like afterwards.
    fn change(&mut self, now: Time, word: &str, with: &Value) -> Result<Value, Problem> {
        let field = |name: &str| {
            let hint = || Problem::bad(format!("expected the body {{\"{name}\": VALUE}}"));
            with.get(name).ok_or_else(hint)
        };
        match word {
            "tamper" => return Deed::read(with).map_err(Problem::bad)?.carry_out(&mut self.surface, now),
            "quota" => {
                let cloud = self.surface.cloud_mut();
                let quota = read_quota(cloud.quota(), with).map_err(Problem::bad)?;
                cloud.set_quota(quota);
                return Ok(show_quota(quota));
            }
            "buckets" => {
                let before = self.limits_after_replay.unwrap_or_else(|| self.surface.cloud().buckets());
                let buckets = read_buckets(before, with).map_err(Problem::bad)?;
                match &mut self.limits_after_replay {
                    Some(later) => *later = buckets,
                    None => self.surface.cloud_mut().set_buckets(buckets),
                }
                return Ok(show_buckets(buckets));
            }
            "slow" => {
                let factor = field("factor")?;
                let factor = factor.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
                let factor = factor.ok_or_else(|| Problem::bad("factor is not a whole number, 1 or more"))?;
                self.surface.cloud_mut().slow_by(factor);
                return Ok(json!({"factor": factor}));
            }
            "poison" => {
                let address = field("address")?.as_str().and_then(|it| it.parse().ok());
                let address = address.ok_or_else(|| Problem::bad("address is not an IP address"))?;
                self.surface.cloud_mut().poison(address);
            }
            "calm" => {
                let cloud = self.surface.cloud_mut();
                cloud.advance(now);
                cloud.calm();
                self.faults.clear();
            }
            "tokens/expire" => self.tokens.expire_all(),
            _ => {
                return Err(Problem::bad(format!(
                    "unknown change {word:?}; expected one of {}",
                    CHANGES.join(", ")
                )));
            }
        }
        Ok(json!({"done": word}))
    }

    /// Begins again as after a first start; only the clock goes on.
    pub(crate) fn reset(&mut self) -> Result<(), Problem> {
        let now = self.clock.now();
        self.surface = fresh_surface(self.config.clone(), self.clock.factor());
        self.faults.clear();
        self.log.clear();
        if let Some(journal) = &mut self.journal {
            journal.begin(&self.config).map_err(|problem| unsaved(&problem))?;
        }
        self.write(|| Record::mark(now.as_millis()))?;
        self.make_groups();
        Ok(())
    }

    /// Writes the last moment down, so that the next start goes on from here.
    pub(crate) fn close(&mut self) {
        let now = self.clock.now();
        self.surface.cloud_mut().advance(now);
        // It has been told, and there is nobody left to tell.
        let _ = self.write(|| Record::mark(now.as_millis()));
    }

    fn write(&mut self, record: impl FnOnce() -> Record) -> Result<(), Problem> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.write(&record()).map_err(|problem| unsaved(&problem))
    }

    /// Makes the groups that should be there from the start and are not, as anybody could.
    fn make_groups(&mut self) {
        for Prepared { subscription, group } in self.prepare.clone() {
            let id = ArmId::new(format!("/subscriptions/{subscription}/resourceGroups/{group}"));
            if self.surface.cloud().state().groups.contains(&id) {
                continue;
            }
            let request = Request::builder()
                .method(Method::PUT)
                .uri(format!("{id}?api-version=2021-04-01"))
                .header("content-type", "application/json")
                .body(Bytes::from_static(br#"{"location":"eastus"}"#));
            let made = request.ok().and_then(|it| self.handle(PREPARER, &it, "https://localhost", None).ok());
            let status = made.and_then(|it| it.answer).map(|answer| answer.status().as_u16());
            if !matches!(status, Some(200 | 201)) {
                warn!(group, subscription, ?status, "cannot create the resource group");
            }
        }
    }
}

/// An empty cloud. A client waits real time between two polls, so what is over must be kept by that.
fn fresh_surface(config: Config, time_factor: f64) -> Surface {
    let mut surface = Surface::new(config);
    surface.cloud_mut().keep_operations_for(OPERATIONS_KEPT.mul_f64(time_factor));
    surface
}

/// The state file could not be written.
fn unsaved(problem: &std::io::Error) -> Problem {
    error!(%problem, "cannot write the state file; the last change is lost when the emulator stops");
    let message = format!("The request was carried out, but the state file was not written: {problem}.");
    Problem { status: StatusCode::INTERNAL_SERVER_ERROR, message }
}
