//! Measurements: the real loop, engine, updaters and client against an emulated Azure.
//!
//! - [`world`]: a controller with a cluster in memory, against whatever answers as Azure
//! - [`workload`]: what is created and deleted
//! - [`ledger`]: what Azure's side has written down of every call
//! - [`figures`]: what follows from that, and the limits it is held against

pub mod figures;
pub mod ledger;
pub mod workload;
pub mod world;
