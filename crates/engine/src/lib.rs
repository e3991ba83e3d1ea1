//! Decides what Azure should look like next, and why.
//!
//! [`Engine::handle`] takes one fact and returns every consequence. It reads no clock, opens no
//! socket and spawns no task: the same events at the same times always give the same effects,
//! which is what lets the simulator replay a bug from a seed.
//!
//! - [`state`]: the lifecycle as a table
//! - [`addresses`]: the incremental difference of pod addresses
//! - [`explain`]: why is it like this?
//!
//! Three things are missing on purpose. There is no buffer: addresses that arrive early are
//! wanted, and nothing is sent until the service is registered. There is no deletion checker:
//! `DeletionPending` ends when the last address that may be in Azure has left. And there is no
//! error type: a Service that cannot be served is a state with a reason.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod address_lane;
pub mod addresses;
mod adoption;
mod changes;
mod compare;
mod conditions;
pub mod config;
pub mod counters;
mod dispatch;
mod drift;
mod engine;
pub mod explain;
mod failure_row;
mod foundation;
mod hold;
mod inherited;
mod intake;
mod kube_writes;
mod lifecycle;
mod operations;
mod orphans;
mod overdue;
mod plan;
mod resources;
mod service;
pub mod start_up;
pub mod state;
mod survey;
#[cfg(test)]
mod tests;
mod trouble;
pub mod validate;
mod views;

pub use config::{Config, DefaultOutbound, GatewayMode};
pub use counters::{Counters, Gauges, Histogram};
pub use engine::Engine;
pub use explain::{Explanation, Held, LastFailure, ServiceView, Trouble, WaitsFor};
pub use hold::Hold;
pub use start_up::{FirstDifference, Phase, StartUp};
pub use state::{Cell, State, Trigger};
