//! Everything that a scrape is made from, gathered with one question.

use sluice_engine::addresses::Totals;
use sluice_engine::{Counters, Gauges, Phase};
use sluice_model::Time;
use sluice_updater::Numbers;
use sluice_view::overview::{Role, WatchLine};

use super::calls::Counted;
use crate::admin::{Room, Silence, WindowLimits};
use crate::updaters::Tally;

/// What is known at the moment of a scrape.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) counters: Counters,
    pub(crate) gauges: Gauges,
    pub(crate) totals: Totals,
    pub(crate) slots_working: u64,
    pub(crate) slots_waiting: u64,
    pub(crate) phase: Phase,
    pub(crate) gateway_ready: bool,
    pub(crate) azure_trouble: bool,
    pub(crate) numbers: Numbers,
    pub(crate) tally: Tally,
    pub(crate) calls: Counted,
    pub(crate) window_limits: WindowLimits,
    pub(crate) role: Role,
    pub(crate) watches: Vec<WatchLine>,
    pub(crate) streams_open: u64,
    pub(crate) started_seconds: f64,
    /// How late it is on the loop's clock.
    pub(crate) now: Time,
}

impl Facts {
    pub(crate) async fn gather(room: &Room) -> Result<Facts, Silence> {
        let parts = &room.parts;
        let (calls, window_limits) = (parts.calls.so_far(), parts.window_limits);
        let (role, watches) = (room.standing().role, (parts.watches)());
        let streams_open = room.streams_open() as u64;
        let (started_seconds, now) = (parts.almanac.begun_seconds(), parts.almanac.time());
        let ask = room.ask(move |engine, updaters, tally| Facts {
            counters: engine.counters().clone(),
            gauges: engine.gauges(),
            totals: engine.addresses().totals(),
            slots_working: engine.slots().0 as u64,
            slots_waiting: engine.slots().1 as u64,
            phase: engine.start_up().phase,
            gateway_ready: engine.gateway_ready(),
            azure_trouble: engine.listing_trouble().is_some(),
            numbers: updaters.numbers(),
            tally: *tally,
            calls,
            window_limits,
            role,
            watches,
            streams_open,
            started_seconds,
            now,
        });
        ask.await
    }
}

#[cfg(test)]
impl Facts {
    /// A process that has just started.
    pub(super) fn of_nothing() -> Facts {
        Facts {
            counters: Counters::default(),
            gauges: Gauges::default(),
            totals: Totals::default(),
            slots_working: 0,
            slots_waiting: 0,
            phase: Phase::Standby,
            gateway_ready: false,
            azure_trouble: false,
            numbers: Numbers::default(),
            tally: Tally::default(),
            calls: Counted::default(),
            window_limits: WindowLimits { reads: 0, writes: 0 },
            role: Role::Candidate,
            watches: Vec::new(),
            streams_open: 0,
            started_seconds: 0.0,
            now: Time::ZERO,
        }
    }

    /// A process to which everything has happened.
    pub(super) fn of_everything() -> Facts {
        use sluice_arm::{CallRecord, Observer as _, Outcome};
        use sluice_engine::{Histogram, State, Trigger};
        use sluice_model::reason::Reason;

        let mut facts = Facts::of_nothing();
        facts.counters.cells = [[1; Trigger::COUNT]; State::COUNT];
        let mut some = Histogram { count: 3, sum_ms: 12_345, ..Histogram::default() };
        some.buckets[0] = 1;
        some.buckets[4] = 1;
        *some.buckets.last_mut().unwrap() = 1;
        facts.counters.syncs = some;
        facts.gauges.states = [[2; State::COUNT]; 2];
        facts.gauges.parked_for = [1; Reason::ALL.len()];
        facts.window_limits = WindowLimits { reads: 8_000, writes: 800 };
        facts.numbers.remaining.reads = Some(11_000);
        facts.numbers.remaining.writes = Some(150);
        facts.numbers.remaining.deletes = Some(190);
        facts.watches = sluice_model::kube::Kind::ALL
            .map(|kind| WatchLine {
                kind: crate::admin::kind_word(kind).into(),
                listed: true,
                trouble: Some("a sentence that must never be a label".into()),
                ..WatchLine::default()
            })
            .to_vec();
        facts.watches.push(WatchLine { kind: "something-of-a-user".into(), ..WatchLine::default() });
        let calls = super::Calls::default();
        calls.called(&CallRecord {
            method: "put",
            kind: "loadBalancers",
            path: "/subscriptions/s".into(),
            outcome: Outcome::Answered(201),
            bytes_sent: 1,
            bytes_received: 1,
            took: std::time::Duration::from_millis(40),
            remaining: None,
            retry_after: None,
            client_request_id: String::new(),
            request_id: None,
            correlation_id: None,
        });
        facts.calls = calls.so_far();
        facts
    }
}
