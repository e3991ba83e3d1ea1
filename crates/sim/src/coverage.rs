//! How often everything that should be tried was tried.
//!
//! Two tables: the engine's own state × trigger cells, and fault × invariant pairs. A pair counts
//! when the invariant was judged while the fault was fresh: injected within the last sixty
//! seconds of virtual time, or at any time of the run for the liveness judgements at its end. A
//! zero needs a written reason, here, or the run fails: a simulator that has stopped trying
//! something looks exactly like one that finds nothing.

use core::time::Duration;
use std::fmt::Write as _;

use sluice_engine::state::cell;
use sluice_engine::{Cell, State, Trigger};
use sluice_model::Time;

use crate::names::{FaultKind, Invariant};

/// How long a fault is fresh.
const FRESH: Duration = Duration::from_secs(60);

/// Cells that the engine can come by and the simulator does not, each with its reason.
const CELLS_NOT_EXPECTED: &[(State, Trigger, &str)] = &[
    (State::NotStarted, Trigger::OutcomeUnknown, LOST_LOOK),
    (State::Created, Trigger::OperationSucceeded, LOOK_IN_CREATED),
    (State::Created, Trigger::OperationFailed, LOOK_IN_CREATED),
    (State::Created, Trigger::OutcomeUnknown, LOST_LOOK),
    (State::Created, Trigger::RetryDue, LOOK_IN_CREATED),
    (State::DeletionPending, Trigger::DeletedButDesired, GONE_WHILE_DRAINING),
];

const LOST_LOOK: &str =
    "only a look can be in flight, and the updater reports a look without an answer as transient";
const LOOK_IN_CREATED: &str = "an update must be lost while its service is unwanted, and the service be wanted again before the \
    look that follows has been answered, some 50 ms; in 12,000 seeds one of these three cells was met, once; the engine's own stories meet them all";
const GONE_WHILE_DRAINING: &str = "needs addresses that are bound behind our back in the middle of a teardown, and others who \
    delete the rest before they have drained; the engine's own stories meet it";

/// Pairs that cannot or need not meet, each with its reason.
const PAIRS_NOT_EXPECTED: &[(FaultKind, Invariant, &str)] = &[];

/// The counts of one run or of many.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// State × trigger.
    pub cells: [[u64; Trigger::COUNT]; State::COUNT],
    /// Fault × invariant.
    pub pairs: [[u64; Invariant::COUNT]; FaultKind::COUNT],
    /// How often each fault was injected.
    pub injected: [u64; FaultKind::COUNT],
    /// How often each invariant was judged.
    pub judged: [u64; Invariant::COUNT],
    fresh_until: [Time; FaultKind::COUNT],
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage {
            cells: [[0; Trigger::COUNT]; State::COUNT],
            pairs: [[0; Invariant::COUNT]; FaultKind::COUNT],
            injected: [0; FaultKind::COUNT],
            judged: [0; Invariant::COUNT],
            fresh_until: [Time::ZERO; FaultKind::COUNT],
        }
    }
}

impl Coverage {
    /// A fault was injected.
    pub fn injected(&mut self, now: Time, fault: FaultKind) {
        self.injected[fault.index()] += 1;
        self.fresh_until[fault.index()] = now + FRESH;
    }

    /// An invariant was judged, and by how many single comparisons.
    pub fn judged(&mut self, now: Time, invariant: Invariant, times: u64) {
        if times == 0 {
            return;
        }
        self.judged[invariant.index()] += times;
        for (fault, until) in self.fresh_until.iter().enumerate() {
            if *until > now {
                self.pairs[fault][invariant.index()] += times;
            }
        }
    }

    /// A liveness property was judged at the end of a run: every fault of the run counts.
    pub fn judged_at_the_end(&mut self, invariant: Invariant) {
        self.judged[invariant.index()] += 1;
        for (fault, injected) in self.injected.iter().enumerate() {
            if *injected > 0 {
                self.pairs[fault][invariant.index()] += 1;
            }
        }
    }

    /// Takes over the cells that an engine has counted.
    pub fn cells(&mut self, cells: &[[u64; Trigger::COUNT]; State::COUNT]) {
        for (mine, theirs) in self.cells.iter_mut().zip(cells) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Coverage) {
        self.cells(&other.cells);
        for (mine, theirs) in self.pairs.iter_mut().zip(&other.pairs) {
            add_all(mine, theirs);
        }
        add_all(&mut self.injected, &other.injected);
        add_all(&mut self.judged, &other.judged);
    }

    /// Every single judgement.
    pub fn judged_total(&self) -> u64 {
        self.judged.iter().sum()
    }

    /// Cells and pairs that were never met although nobody has said why, as sentences.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for state in State::ALL {
            for trigger in Trigger::ALL {
                let count = self.cells[state as usize][trigger as usize];
                match (cell(state, trigger), count) {
                    (Cell::Never(why), 1..) => {
                        gaps.push(format!("{state} × {trigger} was met {count} times although: {why}"));
                    }
                    (Cell::Never(_), 0) | (_, 1..) => {}
                    (_, 0) if cell_reason(state, trigger).is_some() => {}
                    (_, 0) => gaps.push(format!("{state} × {trigger} was never met")),
                }
            }
        }
        for fault in FaultKind::ALL {
            if self.injected[fault.index()] == 0 {
                gaps.push(format!("{fault} ({}) was never injected", fault.words()));
                continue;
            }
            for invariant in Invariant::ALL {
                let met = self.pairs[fault.index()][invariant.index()] > 0;
                if !met && pair_reason(fault, invariant).is_none() {
                    gaps.push(format!("{invariant} was never judged under {fault}"));
                }
            }
        }
        gaps
    }

    /// The state × trigger table: a number, `-` for what cannot happen, `0!` for a gap, `0` with a reason.
    pub fn cells_table(&self) -> String {
        let mut table = String::new();
        let _ = write!(table, "{:<20}", "state × event");
        for trigger in Trigger::ALL {
            let _ = write!(table, " {:>width$}", trigger.word(), width = trigger.word().len().max(7));
        }
        table.push('\n');
        for state in State::ALL {
            let _ = write!(table, "{:<20}", state.word());
            for trigger in Trigger::ALL {
                let count = self.cells[state as usize][trigger as usize];
                let shown = match cell(state, trigger) {
                    Cell::Never(_) if count == 0 => "-".to_owned(),
                    _ if count == 0 && cell_reason(state, trigger).is_none() => "0!".to_owned(),
                    _ => short(count),
                };
                let _ = write!(table, " {shown:>width$}", width = trigger.word().len().max(7));
            }
            table.push('\n');
        }
        table
    }

    /// The fault × invariant table.
    pub fn pairs_table(&self) -> String {
        let mut table = String::new();
        let _ = write!(table, "{:<6} {:>8}", "fault", "injected");
        for invariant in Invariant::ALL {
            let _ = write!(table, " {:>5}", invariant.code());
        }
        table.push('\n');
        for fault in FaultKind::ALL {
            let _ = write!(table, "{:<6} {:>8}", fault.code(), self.injected[fault.index()]);
            for invariant in Invariant::ALL {
                let count = self.pairs[fault.index()][invariant.index()];
                let shown = match count {
                    0 if pair_reason(fault, invariant).is_some() => "-".to_owned(),
                    0 => "0!".to_owned(),
                    _ => short(count),
                };
                let _ = write!(table, " {shown:>5}");
            }
            table.push('\n');
        }
        let _ = write!(table, "{:<6} {:>8}", "judged", "");
        for invariant in Invariant::ALL {
            let _ = write!(table, " {:>5}", short(self.judged[invariant.index()]));
        }
        table.push('\n');
        table
    }

    /// The written reasons for zeros that are still zeros.
    pub fn reasons(&self) -> Vec<String> {
        let cells = CELLS_NOT_EXPECTED
            .iter()
            .filter(|(state, trigger, _)| self.cells[*state as usize][*trigger as usize] == 0)
            .map(|(state, trigger, why)| format!("{state} × {trigger}: {why}"));
        let pairs = PAIRS_NOT_EXPECTED
            .iter()
            .filter(|(fault, invariant, _)| self.pairs[fault.index()][invariant.index()] == 0)
            .map(|(fault, invariant, why)| format!("{fault} × {invariant}: {why}"));
        cells.chain(pairs).collect()
    }
}

fn add_all(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}

fn cell_reason(state: State, trigger: Trigger) -> Option<&'static str> {
    CELLS_NOT_EXPECTED.iter().find(|(s, t, _)| *s == state && *t == trigger).map(|(_, _, why)| *why)
}

fn pair_reason(fault: FaultKind, invariant: Invariant) -> Option<&'static str> {
    PAIRS_NOT_EXPECTED.iter().find(|(f, i, _)| *f == fault && *i == invariant).map(|(_, _, why)| *why)
}

/// 12345 as `12k`: the tables are about zero and not zero.
fn short(count: u64) -> String {
    match count {
        0..=99_999 => count.to_string(),
        100_000..=99_999_999 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}
