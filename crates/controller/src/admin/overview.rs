//! The controller as a whole, put together from one question to the loop.

use sluice_engine::addresses::Totals;
use sluice_engine::{Counters, Engine, Gauges, Phase, StartUp};
use sluice_model::reason::Reason;
use sluice_updater::{GateNumbers, Numbers};
use sluice_view::overview::{AddressTotals, Counts, FoundAndMended, InitialSync, Lane};
use sluice_view::{Overview, State, Why};

use super::almanac::Today;
use super::{Room, Silence};

/// What the loop is asked for.
struct Heard {
    start_up: StartUp,
    gauges: Gauges,
    counters: Counters,
    totals: Totals,
    unclaimed: Vec<String>,
    released: Vec<String>,
    azure_trouble: Option<(Reason, String)>,
    numbers: Numbers,
}

impl Heard {
    fn of(engine: &Engine, numbers: Numbers) -> Heard {
        Heard {
            start_up: engine.start_up(),
            gauges: engine.gauges(),
            counters: engine.counters().clone(),
            totals: engine.addresses().totals(),
            unclaimed: engine.unclaimed().iter().map(ToString::to_string).collect(),
            azure_trouble: engine.listing_trouble(),
            released: engine.released().iter().map(ToString::to_string).collect(),
            numbers,
        }
    }
}

/// The overview as it stands now.
pub(super) async fn overview(room: &Room) -> Result<Overview, Silence> {
    Ok(overview_and(room, |_| ()).await?.0)
}

/// The overview, and what else there is to ask, of the same moment.
pub(super) async fn overview_and<T: Send + 'static>(
    room: &Room,
    question: impl FnOnce(&Engine) -> T + Send + 'static,
) -> Result<(Overview, T), Silence> {
    let (heard, answer) =
        room.ask(|engine, updaters, _| (Heard::of(engine, updaters.numbers()), question(engine))).await?;
    Ok((told(room, heard), answer))
}

fn told(room: &Room, heard: Heard) -> Overview {
    let Heard { start_up, gauges, counters, totals, unclaimed, released, azure_trouble, numbers } = heard;
    let today = room.parts.almanac.today();
    let standing = room.standing();
    let about = &room.parts.about;
    let counted = |counts: [u64; Reason::ALL.len()]| {
        let some = Reason::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        some.map(|(reason, count)| (reason.word().into(), count)).collect()
    };
    Overview {
        version: about.version.clone(),
        identity: about.identity.clone(),
        cluster_id: about.cluster_id.clone(),
        role: standing.role,
        leader: standing.leader,
        started: today.begun(),
        initial_sync: InitialSync {
            phase: start_up.phase.word().into(),
            done: start_up.phase == Phase::Done,
            left: start_up.left as u64,
            gateway_trouble: start_up.gateway_trouble,
        },
        watches: (room.parts.watches)(),
        services: counts(&gauges.states[0]),
        egresses: counts(&gauges.states[1]),
        parked: counted(gauges.parked_for),
        trouble: counted(gauges.trouble),
        azure_trouble: azure_trouble.map(|(reason, text)| Why::new(reason, text)),
        addresses: AddressTotals {
            desired: gauges.addresses_wanted,
            buffered: gauges.buffered_endpoints + gauges.buffered_pods,
            programmed: totals.programmed as u64,
            dirty: totals.dirty as u64,
            in_flight: totals.in_flight as u64,
            uncertain: totals.either as u64,
            quarantined: gauges.quarantined_addresses,
            kept_for_others: gauges.kept_for_others,
        },
        budget: budget(&today, &numbers),
        operations_active: gauges.operations_active,
        mass_deletion_held: gauges.held,
        unclaimed,
        released,
        drift: FoundAndMended { found: counters.drift_found, repaired: counters.drift_repaired },
        orphans: FoundAndMended { found: counters.orphans_found, repaired: counters.orphans_removed },
    }
}

/// In the engine's order of states, which is that of the views.
fn counts(states: &[u64]) -> Counts {
    Counts {
        total: states.iter().sum(),
        by_state: State::ALL.into_iter().zip(states.iter().copied()).collect(),
    }
}

fn budget(today: &Today<'_>, numbers: &Numbers) -> Vec<Lane> {
    let remaining = &numbers.remaining;
    let lane = |word: &str, gate: &GateNumbers, remaining: Option<u32>| Lane {
        lane: word.into(),
        tokens: gate.tokens.into(),
        queued: gate.queued as u64,
        remaining: remaining.map(u64::from),
        paused_until: gate.paused_until.and_then(|at| today.due(at)),
    };
    vec![
        lane("reads", &numbers.reads_gate, remaining.reads),
        lane("service-writes", &numbers.service_writes_gate, remaining.writes),
        lane("location-writes", &numbers.location_writes_gate, remaining.writes),
        lane("deletes", &numbers.deletes_gate, remaining.deletes),
    ]
}
