//! The same story told otherwise, without faults or in another order: it must end the same.
//!
//! Whether two ends can be compared is decided by the clusters: where a fault or another order made
//! people's actions come out differently (a name was still taken), there is nothing to compare.

use core::time::Duration;

use sluice_model::Time;

use crate::cluster::KubeFaults;
use crate::cluster::stories::UserAction;
use crate::faults::FaultPlan;
use crate::names::{Invariant, Violation};
use crate::portrait::{FOUNDATION_COST, Portrait, cost_of};
use crate::rng::Rng;
use crate::run::{Plan, Scene, Script, converge, fault_phase};
use crate::world::World;

/// One seed in so many is also told in another order.
const REORDERED_ONE_IN: u64 = 4;

/// The same actions at the same times without a single fault must end the same; and the faulty run
/// may have written at most three times as much, and two more for each fault (**L8**).
pub(crate) fn same_as_without_faults(world: &mut World, plan: &Plan) -> Result<bool, Violation> {
    let given = actions_of(world);
    let other = calm(world, plan, given, "the run without faults")?;
    l8(world, &other)?;
    world.coverage.judged_at_the_end(Invariant::L8);
    agree(world, &other, "the run without faults")
}

/// The same edits, each with its neighbour here and there, must end the same.
pub(crate) fn same_in_another_order(world: &mut World, plan: &Plan) -> Result<bool, Violation> {
    if !plan.setup.seed.is_multiple_of(REORDERED_ONE_IN) {
        return Ok(false);
    }
    let given = actions_of(world);
    let mut dice = Rng::new(plan.setup.seed).fork("order");
    let (times, mut actions): (Vec<Time>, Vec<UserAction>) = given.into_iter().unzip();
    let mut at = 0;
    while at + 1 < actions.len() {
        if dice.chance(300) {
            actions.swap(at, at + 1);
            at += 1;
        }
        at += 1;
    }
    let given = times.into_iter().zip(actions).collect();
    let other = calm(world, plan, given, "the same edits in another order")?;
    agree(world, &other, "the same edits in another order")
}

fn actions_of(world: &World) -> Vec<(Time, UserAction)> {
    let done = world.actions_done.iter().filter(|(_, action, _)| !matches!(action, UserAction::Trouble(_)));
    done.map(|(at, action, _)| (*at, action.clone())).collect()
}

/// A world without faults in which people do this, brought to rest. If that fails, its trace follows that of `world`.
fn calm(
    world: &mut World,
    plan: &Plan,
    given: Vec<(Time, UserAction)>,
    title: &str,
) -> Result<World, Violation> {
    let mut setup = plan.setup.clone();
    setup.plan = FaultPlan::none();
    setup.kube_faults = KubeFaults::none();
    setup.crash = None;
    setup.processes = 1;
    let calm = Plan {
        setup,
        script: Script::Given(given),
        aftermath: Duration::ZERO,
        compare: false,
        scene: Scene::default(),
    };
    let mut other = World::new(calm.setup.clone());
    let result = (|| {
        fault_phase(&mut other, &calm)?;
        other.run_until(other.now.max(world.faults_ended_at))?;
        other.calm_down();
        converge(&mut other)
    })();
    if result.is_err() {
        world.trace.append(title, &other.trace);
    }
    result.map(|()| other)
}

fn agree(world: &World, other: &World, which: &str) -> Result<bool, Violation> {
    let (faulty, clean) = (Portrait::of(world), Portrait::of(other));
    if faulty.objects != clean.objects {
        return Ok(false);
    }
    match faulty.difference(&clean) {
        None => Ok(true),
        Some(what) => {
            let text = format!("the end differs from that of {which}: {what}");
            Err(Violation::of(Invariant::L1, text))
        }
    }
}

/// **L8**: writes to converge ≤ 3 × the minimal plan + 2 per injected fault.
///
/// The minimal plan is what the engine itself writes for the same actions at the same times without
/// any fault; that number is in turn bounded by what the actions cost by themselves (see
/// [`crate::portrait::cost_of`]). What others have destroyed counts as faults by the number of
/// writes that mend it.
fn l8(world: &World, clean: &World) -> Result<(), Violation> {
    let faults: u64 = world.coverage.injected.iter().sum();
    let bound = 3 * clean.azure_writes + 2 * faults + world.destroyed;
    if world.azure_writes > bound {
        let text = format!(
            "{} writes, at most {bound} are allowed (3 × {} without faults + 2 × {faults} faults)",
            world.azure_writes, clean.azure_writes
        );
        return Err(Violation::of(Invariant::L8, text));
    }
    let actions = clean.actions_done.iter().map(|(_, action, _)| cost_of(action)).sum::<u64>();
    let bound = 3 * (actions + FOUNDATION_COST);
    if clean.azure_writes > bound {
        let text =
            format!("{} writes without any fault; the actions cost at most {bound}", clean.azure_writes);
        return Err(Violation::of(Invariant::L8, text));
    }
    Ok(())
}
