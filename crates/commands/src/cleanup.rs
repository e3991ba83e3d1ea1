//! `sluice cleanup`: removes everything of a cluster id, before Sluice is uninstalled.
//!
//! It is the controller itself, told that nobody wants anything any more: no Service is ours, no pod has
//! a label, the default outbound is released. So the order is the usual one (addresses first, finalizers
//! last), and so are tags, budget and retries. What another controller has taken back is only untagged, and
//! so is the gateway in the end, unless Sluice created it and nobody else uses it: then it is deleted. The
//! plan is shown first. All of it happens under the lease, so that no controller works against it; where
//! there is no election nobody can see whether one runs, and whoever cleans up has to say that none does.

mod calls;
mod carry_out;
mod gateway;
mod taken_back;

use anyhow::anyhow;
use clap::Args;
use futures::future::LocalBoxFuture;
use sluice_engine::DefaultOutbound;
use sluice_model::event::Relist;
use sluice_model::{EgressName, Event};

use crate::config::ConfigArguments;
use crate::consent;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::plan::foresight::{Forecast, Worlds, foresee_with};
use crate::plan::report::Report;
use crate::reach::Reached;
use gateway::{Fate, Users};
use taken_back::TakenBack;

/// Delete everything that carries this cluster's ID.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Leave the service gateway and its subnet unchanged
    #[arg(long)]
    keep_gateway: bool,
    /// Confirm that no controller is running
    ///
    /// Required if leader election is disabled: without a Lease, the command cannot detect a running controller.
    #[arg(long)]
    controller_is_stopped: bool,
}

const HELP: &str = "\
Example: sluice cleanup --config azure.yaml

Exit codes: 0 deleted, declined at the prompt, or nothing to delete · 1 failed · 2 invalid arguments or \
configuration · 5 Kubernetes unreachable or access denied · 6 no Azure access token";

/// Shows the plan, asks, and carries it out.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<(), Failure>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> Result<(), Failure> {
    let reached = Reached::by(&arguments.config).await?;
    if !reached.config.leader_election.enabled && !arguments.controller_is_stopped {
        return Err(anyhow!(
            "no changes made: leader election is disabled, so a running controller cannot be detected; stop the \
             controller and re-run with --controller-is-stopped"
        )
        .into());
    }
    let (worlds, taken_back) = abandoned(&reached).await?;
    let forecast = forecast(&reached, &worlds);
    let scope = reached.config.scope(&reached.cluster_id);
    let report = Report::of(&scope, &forecast);
    let gateway = match arguments.keep_gateway {
        true => Fate::Untouched,
        false => gateway::fate(&reached, Users::after(&forecast.after, &scope)).await?,
    };
    if report.writes_nothing() && taken_back.is_empty() && gateway == Fate::Untouched {
        println!(
            "Nothing to delete: no resources of cluster {} in resource group {}.",
            reached.cluster_id, scope.resource_group
        );
        return Ok(());
    }
    print!("{}", report.text(Paint::for_stdout()));
    taken_back.iter().for_each(announce);
    match &gateway {
        Fate::Untouched => {}
        Fate::Deleted => {
            println!(
                "Then: detach subnet {} and delete the service gateway {}.",
                scope.subnet, scope.gateway
            );
        }
        Fate::Kept(why) => println!(
            "Then: remove the tags of this cluster from the service gateway {}. It is kept, with its subnet \
             attached: {why}.",
            scope.gateway
        ),
    }
    let question = format!("Delete all resources of cluster {}?", reached.cluster_id);
    if !consent::given(arguments.yes, &question)? {
        println!("No changes made.");
        return Ok(());
    }
    match carry_out::carry_out(&reached, arguments.keep_gateway).await? {
        Fate::Untouched | Fate::Deleted => {
            println!(
                "All resources of cluster {} are deleted. Sluice can be uninstalled.",
                reached.cluster_id
            );
        }
        Fate::Kept(why) => println!(
            "All resources of cluster {} are deleted. Sluice can be uninstalled. The service gateway {} is kept, with \
             its subnet attached: {why}.\nTo delete it, once nothing uses it and its subnets are detached: {}",
            reached.cluster_id,
            scope.gateway,
            gateway::command(&scope)
        ),
    }
    Ok(())
}

/// Says what is left to another controller.
fn announce(taken_back: &TakenBack) {
    let TakenBack { service, resources } = taken_back;
    for (what, id) in resources {
        println!(
            "~ {what:<15} {}  (kept, tags removed: Service {} has another class)",
            id.name(),
            service.name
        );
    }
    let what = "Service";
    println!("~ {what:<15} {}  (finalizer and conditions removed)", service.name);
}

/// Both worlds as nobody wants anything, and what another controller has taken back.
async fn abandoned(reached: &Reached) -> Result<(Worlds, Vec<TakenBack>), Failure> {
    let mut worlds = reached.read().await?;
    let taken_back = taken_back::find(reached, &worlds).await?;
    taken_back::forget(&mut worlds, &taken_back);
    Ok((unwanted(worlds), taken_back))
}

/// What would happen in worlds in which nobody wants anything.
fn forecast(reached: &Reached, worlds: &Worlds) -> Forecast {
    foresee_with(engine_config(reached), reached.config.updaters(), worlds, &releases())
}

/// The engine's choices in a world in which nothing is wanted: nothing is made and nothing is held.
fn engine_config(reached: &Reached) -> sluice_engine::Config {
    let mut config = reached.config.engine(&reached.cluster_id);
    config.allow_mass_deletion = true;
    config.default_outbound = DefaultOutbound::Leave;
    config.gateway_mode = sluice_engine::GatewayMode::Verify;
    config.linger = std::time::Duration::ZERO;
    config
}

/// What is told once the first difference has been worked off.
fn releases() -> Vec<Event> {
    vec![Event::EgressReleased(EgressName::default_outbound())]
}

/// The same world, in which nobody wants anything.
fn unwanted(mut worlds: Worlds) -> Worlds {
    for event in &mut worlds.kubernetes {
        let Event::Relisted { objects, .. } = event else { continue };
        match objects {
            Relist::Services(services) => services.iter_mut().for_each(|service| {
                service.selected = false;
                // They are those of whoever serves the Service next, which may be at work already.
                service.inherited = false;
            }),
            Relist::Pods(pods) => pods.clear(),
            Relist::Slices(_) | Relist::Nodes(_) => {}
        }
    }
    worlds
}

#[cfg(test)]
mod tests {
    use sluice_model::kube::{Phase, PodObject, ServiceObject, ServiceSpec};
    use sluice_model::{ObjectName, Uid};

    use super::*;

    #[test]
    fn in_a_world_that_is_left_nobody_wants_anything_and_every_object_is_still_known() {
        let service = ServiceObject {
            uid: Uid::from_number(1),
            name: ObjectName::new("shop", "web"),
            version: 1,
            selected: true,
            load_balancer: true,
            deleting: false,
            finalizer: true,
            inherited: true,
            spec: ServiceSpec::default(),
            ingress: Vec::new(),
            published: None,
            annotated: None,
            conditions: Vec::new(),
        };
        let pod = PodObject {
            uid: Uid::from_number(2),
            name: ObjectName::new("shop", "crawler"),
            version: 1,
            egress: Some("blue".into()),
            node: None,
            ips: Vec::new(),
            host_ips: Vec::new(),
            phase: Phase::Running,
            terminating: false,
            host_network: false,
            created: 1,
        };
        let lists = [Relist::Services(vec![service.clone()]), Relist::Pods(vec![pod])];
        let kubernetes = lists.into_iter().map(|objects| Event::Relisted { version: 1, objects }).collect();
        let left = unwanted(Worlds { kubernetes, skipped: Vec::new(), azure: Vec::new() });
        let nobodys = ServiceObject { selected: false, inherited: false, ..service };
        let expected = [Relist::Services(vec![nobodys]), Relist::Pods(Vec::new())];
        let expected = expected.map(|objects| Event::Relisted { version: 1, objects });
        assert_eq!(left.kubernetes, expected);
    }
}
