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
        Err(()) => return Finding::skipped(GROUP, format!("gateway {name}: not checked (read failed)")),
        Ok(None) if makes => {
            return Finding::good(
                GROUP,
                format!("gateway {name}: not found (`sluice run` creates it in resource group {group})"),
            );
        }
        Ok(None) => {
            return Finding::problem(
                GROUP,
                format!(
                    "gateway {name}: not found in resource group {group} (sluice.gateway.mode is verify)"
                ),
                "create it, correct sluice.gateway.name, or set sluice.gateway.mode to ensure",
            );
        }
        Ok(Some(gateway)) => gateway,
    };
    if gateway.meta.provisioning == Provisioning::Failed {
        let text = format!("gateway {name}: provisioning state is Failed");
        return match makes {
            true => Finding::warning(
                GROUP,
                text,
                "start the controller: `sluice run` updates the gateway, which usually clears the Failed state",
            ),
            false => Finding::problem(
                GROUP,
                text,
                "update the gateway with the tool that created it, or set sluice.gateway.mode to ensure",
            ),
        };
    }
    match gateway.meta.tags.get(CLUSTER_TAG) {
        _ if !facts.knows_cluster => Finding::skipped(
            GROUP,
            format!("owner of gateway {name}: not checked (cluster unreachable); set sluice.clusterId"),
        ),
        Some(cluster) if **cluster == *facts.scope.cluster_id => {
            Finding::good(GROUP, format!("gateway {name}: managed by this cluster"))
        }
        Some(cluster) => Finding::problem(
            GROUP,
            format!(
                "gateway {name}: managed by another cluster ({cluster}; this cluster is {})",
                facts.scope.cluster_id
            ),
            format!(
                "set sluice.gateway.name to another gateway; if this cluster replaces that one, set sluice.clusterId \
                 to {cluster}"
            ),
        ),
        None if makes => Finding::warning(
            GROUP,
            format!("gateway {name}: unmanaged (`sluice run` tags it as managed by this cluster)"),
            "to use another gateway, set sluice.gateway.name",
        ),
        None => Finding::problem(
            GROUP,
            format!("gateway {name}: unmanaged (sluice.gateway.mode is verify)"),
            "run `sluice adopt --config FILE gateway`",
        ),
    }
}

fn subnet(facts: &Facts<'_>) -> Finding {
    let id = facts.scope.subnet_id();
    let name = format!("subnet {}/{}", facts.scope.virtual_network, facts.scope.subnet);
    match facts.subnet {
        Err(()) => Finding::skipped(GROUP, format!("{name}: not checked (read failed)")),
        Ok(None) => Finding::problem(
            GROUP,
            format!("{name}: not found ({id})"),
            "correct vnetName, vnetResourceGroup and subnetName (or sluice.gateway.subnet)",
        ),
        Ok(Some(subnet)) => match &subnet.gateway {
            Some(gateway) if *gateway == facts.scope.gateway_id() => {
                Finding::good(GROUP, format!("{name}: attached to gateway {}", facts.scope.gateway))
            }
            Some(other) => Finding::problem(
                GROUP,
                format!("{name}: attached to another gateway ({other})"),
                format!("detach the subnet, or set sluice.gateway.name to {}", other.name()),
            ),
            None if facts.mode == GatewayMode::Ensure => {
                Finding::good(GROUP, format!("{name}: not attached (`sluice run` attaches it)"))
            }
            None => Finding::problem(
                GROUP,
                format!(
                    "{name}: not attached to gateway {} (sluice.gateway.mode is verify)",
                    facts.scope.gateway
                ),
                "attach the subnet to the gateway, or set sluice.gateway.mode to ensure",
            ),
        },
    }
}
