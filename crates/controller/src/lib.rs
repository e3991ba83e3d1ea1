//! The loop: one inbox, one engine, and the shells of the updaters.
//!
//! [`Controller::run`] is one task that owns the engine and the updaters. Everything that can
//! happen comes to it through one [`Inbox`]: facts of the watches, replies of Azure, answers of
//! Kubernetes, deadlines, the lease. It hands each to whom it concerns, carries out what comes of
//! it, and sleeps until the next thing or the next deadline.
//!
//! ```text
//! watches, lease ─▶ Handle ─┐
//!                           ├─▶ inbox ─▶ engine ─▶ effects ─┬─▶ updaters ─▶ Azure ─┐
//! deadlines ────────────────┤                               └─▶ Kubernetes ────────┤
//!                           └──────────────── how it ended ◀───────────────────────┘
//! ```
//!
//! What sends to Azure is an [`Azure`], what writes to Kubernetes a [`Kube`], what tells the time a
//! [`Clock`]: three traits, so that tests and benchmarks bring their own, and the loop is the same.
//!
//! Missing on purpose: decisions. What to do is the engine's, in which order, how often and when
//! the updaters'. Here things are sent, received and reported; a call that fails, hangs or panics
//! is reported as that and nothing else.

pub mod admin;
mod azure;
mod clock;
mod cluster;
mod inbox;
mod journal;
mod kube;
mod leadership;
pub mod memory;
pub mod metrics;
mod operations;
mod records;
mod run;
mod standing;
mod startup;
mod updaters;
mod waiting;

pub use azure::Azure;
pub use clock::{Clock, Monotonic};
pub use cluster::ApiServer;
pub use inbox::{Closed, Handle, Inbox};
pub use kube::{Kube, StatusWrite};
pub use leadership::{ClusterLease, Farewell, Leadership, LeaseDoor, LeaseEnd};
pub use run::{Config, Controller, Ended, Limits, Why};
pub use standing::Standing;
pub use updaters::Tally;
