//! Every number and choice of the engine, with a default that works.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use sluice_model::names::Scope;

use crate::addresses::Limits;

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where our resources live.
    pub scope: Scope,
    /// Plans that may work at once.
    pub slots_max: usize,
    /// What to do about a missing gateway or attachment.
    pub gateway_mode: GatewayMode,
    /// The IPv4 route target address of a gateway that has to be made. Without one of either family Azure
    /// chooses an IPv4 address.
    pub route_target_address: Option<Ipv4Addr>,
    /// The IPv6 one, if it gets one.
    pub route_target_address_v6: Option<Ipv6Addr>,
    /// Whether the cluster gets a default outbound service.
    pub default_outbound: DefaultOutbound,
    /// Egresses at most; the label is cluster-wide trust.
    pub egress_max: usize,
    /// How long an egress outlives its last pod.
    pub linger: Duration,
    /// The namespaces whose pods may name an egress; `None`: all.
    pub egress_namespaces: Option<Vec<Arc<str>>>,
    /// Let more services be torn down at once than is plausible.
    pub allow_mass_deletion: bool,
    /// How often each kind is compared with Azure.
    pub drift_interval: Duration,
    /// How soon a difference is looked at again before it is believed.
    pub second_look: Duration,
    /// A listing or read says nothing about what was written so shortly before it began.
    pub settle: Duration,
    /// A deletion that waits longer says what holds it.
    pub report_after: Duration,
    /// How long after the tags of one Service those of the next may be written: two writes at a time are to be
    /// a fifth of the write budget at most.
    pub adoption_interval: Duration,
    /// When what failed is tried again.
    pub retry: Retry,
    /// Bounds of the location lane.
    pub locations: Limits,
}

impl Config {
    /// The defaults for a scope.
    pub fn new(scope: Scope) -> Config {
        Config {
            scope,
            slots_max: 10,
            gateway_mode: GatewayMode::Ensure,
            route_target_address: None,
            route_target_address_v6: None,
            default_outbound: DefaultOutbound::Ensure,
            egress_max: 50,
            linger: Duration::ZERO,
            egress_namespaces: None,
            allow_mass_deletion: false,
            drift_interval: Duration::from_secs(15 * 60),
            second_look: Duration::from_secs(45),
            settle: Duration::from_secs(30),
            report_after: Duration::from_secs(5 * 60),
            adoption_interval: Duration::from_millis(3_750),
            retry: Retry::default(),
            locations: Limits::default(),
        }
    }
}

/// What to do about a missing gateway or attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GatewayMode {
    /// Make it.
    Ensure,
    /// Say so and wait.
    Verify,
}

/// Whether the cluster gets a default outbound service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultOutbound {
    /// Make `default-natgw` unless there is a default already.
    Ensure,
    /// Leave whatever is there.
    Leave,
}

/// When what failed is tried again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The first wait.
    pub backoff_min: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// Failures in a row before a park.
    pub attempts_max: u32,
    /// The park between two bursts of transient failures.
    pub burst_park: Duration,
    /// The first and the longest park for quotas and refusals.
    pub quota_park: (Duration, Duration),
    /// The first and the longest park for permissions, locks and policies.
    pub forbidden_park: (Duration, Duration),
}

impl Default for Retry {
    fn default() -> Retry {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        Retry {
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            attempts_max: 12,
            burst_park: minutes(5),
            quota_park: (minutes(10), minutes(60)),
            forbidden_park: (minutes(5), minutes(60)),
        }
    }
}
