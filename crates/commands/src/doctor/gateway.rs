//! The gateway and its subnet: there, ours, and together?
//!
//! It says what `sluice run` would say and do, before it does it.

use sluice_engine::GatewayMode;
use sluice_model::azure::{Gateway, Provisioning, Subnet};
use sluice_model::names::{CLUSTER_TAG, Scope};

use super::finding::{Finding, Group};

const GROUP: Group = Group::Gateway;

/// What is known; `Err` if it could not be read, which another group has told.
pub(super) struct Facts<'a> {
    pub(super) scope: &'a Scope,
    pub(super) mode: GatewayMode,
    /// Whether the cluster id in the scope is known at all.
    pub(super) knows_cluster: bool,
    pub(super) gateway: Result<Option<&'a Gateway>, ()>,
    pub(super) subnet: Result<Option<&'a Subnet>, ()>,
}

pub(super) fn diagnose(facts: &Facts<'_>) -> Vec<Finding> {
    vec![gateway(facts), subnet(facts)]
}

fn gateway(facts: &Facts<'_>) -> Finding {
    let name = &facts.scope.gateway;
    let group = &facts.scope.resource_group;
    let makes = facts.mode == GatewayMode::Ensure;
    let gateway = match facts.gateway {
        Err(()) => return Finding::skipped(GROUP, format!("the gateway {name}: it could not be read")),
        Ok(None) if makes => {
            return Finding::good(
                GROUP,
                format!("the gateway {name} is not there; `sluice run` makes it in {group}"),
            );
        }
        Ok(None) => {
            return Finding::problem(
                GROUP,
                format!("the gateway {name} does not exist in {group}, and sluice.gateway.mode is verify"),
                "make it, correct sluice.gateway.name, or set sluice.gateway.mode to ensure",
            );
        }
        Ok(Some(gateway)) => gateway,
    };
    if gateway.meta.provisioning == Provisioning::Failed {
        let text = format!("the gateway {name} is in the state Failed");
        return match makes {
            true => Finding::warning(GROUP, text, "`sluice run` writes it again, which mends most of these"),
            false => Finding::problem(GROUP, text, "write it again, or set sluice.gateway.mode to ensure"),
        };
    }
    match gateway.meta.tags.get(CLUSTER_TAG) {
        _ if !facts.knows_cluster => Finding::skipped(
            GROUP,
            format!(
                "whose gateway {name} is: our own cluster id is not known without the cluster; sluice.clusterId would say it"
            ),
        ),
        Some(cluster) if **cluster == *facts.scope.cluster_id => {
            Finding::good(GROUP, format!("the gateway {name} is this cluster's"))
        }
        Some(cluster) => Finding::problem(
            GROUP,
            format!(
                "the gateway {name} belongs to the cluster {cluster}, and this one is {}",
                facts.scope.cluster_id
            ),
            "name another gateway in sluice.gateway.name; or, if this cluster was that one, set sluice.clusterId to it",
        ),
        None if makes => Finding::warning(
            GROUP,
            format!("the gateway {name} is nobody's; `sluice run` claims it for this cluster by its tag"),
            "name another gateway in sluice.gateway.name if that is not meant",
        ),
        None => Finding::problem(
            GROUP,
            format!("the gateway {name} is not claimed, and sluice.gateway.mode is verify"),
            "run `sluice adopt`",
        ),
    }
}

fn subnet(facts: &Facts<'_>) -> Finding {
    let id = facts.scope.subnet_id();
    let name = format!("the subnet {}/{}", facts.scope.virtual_network, facts.scope.subnet);
    match facts.subnet {
        Err(()) => Finding::skipped(GROUP, format!("{name}: it could not be read")),
        Ok(None) => Finding::problem(
            GROUP,
            format!("{name} does not exist: {id}"),
            "correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)",
        ),
        Ok(Some(subnet)) => match &subnet.gateway {
            Some(gateway) if *gateway == facts.scope.gateway_id() => {
                Finding::good(GROUP, format!("{name} is attached to the gateway"))
            }
            Some(other) => Finding::problem(
                GROUP,
                format!("{name} is attached to another gateway: {other}"),
                "detach it, or name that gateway in sluice.gateway.name",
            ),
            None if facts.mode == GatewayMode::Ensure => {
                Finding::good(GROUP, format!("{name} is not attached yet; `sluice run` attaches it"))
            }
            None => Finding::problem(
                GROUP,
                format!("{name} is not attached to the gateway, and sluice.gateway.mode is verify"),
                "attach it, or set sluice.gateway.mode to ensure",
            ),
        },
    }
}
