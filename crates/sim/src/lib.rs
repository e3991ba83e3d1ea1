//! The deterministic simulator: engine, updaters, a model of Azure and a model of Kubernetes
//! under one virtual clock and one seed.
//!
//! A run has two phases. In the **fault phase** users act, faults strike, and after every step the
//! judge checks S1-S14. Then all faults end, and in the **liveness phase** everything must converge
//! and go quiet: L1-L8. The same seed gives the same run, byte for byte, so a failing seed is a
//! bug report by itself.
//!
//! - [`cluster`] and [`world`]: the fake cluster, and everything put together
//! - [`faults`] and [`crash_points`]: what goes wrong, by dice and by enumeration
//! - [`invariants`] and [`liveness`]: what must hold
//! - [`run`]: one seed or one story from beginning to end
//! - [`coverage`] and [`bugs`]: whether the tests would notice
//! - [`trace`]: the story of a run, for people
//!
//! There is no thread, no tokio and no clock in here; only the binary has them: it does runs on
//! all cores, and it looks at a watch to draw its progress line.

pub mod bugs;
pub mod calls;
pub mod cluster;
pub mod coverage;
pub mod crash_points;
pub mod faults;
pub mod invariants;
pub mod liveness;
pub mod names;
pub mod portrait;
pub mod rng;
pub mod run;
pub mod trace;
mod twin;
pub mod world;
