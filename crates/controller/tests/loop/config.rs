//! The configuration of every world in which a controller is tried: a default outbound that nobody touches, and
//! everything else as it ships.

use sluice_controller::{Config, Limits};
use sluice_engine::DefaultOutbound;
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;

pub(crate) fn config() -> Config {
    let scope = Scope {
        subscription: "sub".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster-under-test".into(),
    };
    let mut engine = sluice_engine::Config::new(scope);
    engine.default_outbound = DefaultOutbound::Leave;
    Config {
        engine,
        updaters: sluice_updater::Config::default(),
        limits: Limits::default(),
        seed: 1,
        seeded: Seeded::NONE,
    }
}
