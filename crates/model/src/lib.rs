//! The nouns of Sluice and the contract between its parts.
//!
//! Everybody meets here: the engine decides in these words, the updaters carry them
//! out, the cloud model answers in them, and the outside is translated into them once,
//! at the edge. Nothing in this crate acts; the only behaviour is parsing, naming and
//! the classification of failures, so that all rooms agree on those three.
//!
//! - [`event`]: every fact that can reach the engine, one closed enum
//! - [`effect`]: every action the engine can ask for, and how each can end
//! - [`plan`]: what one operation on a service consists of, step by step
//! - [`call`]: one request to Azure and its answer, without JSON and HTTP
//! - [`azure`] and [`kube`]: the objects of both worlds, cut down to what we use
//! - [`failure`]: what went wrong, grouped by what one can do next
//! - [`notices`]: everything that people are told by events
//! - [`allow_deletion`]: which held deletions the operator allows
//! - [`lease`]: the durations of leader election, and how long another replica's Lease is honored
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod address;
pub mod allow_deletion;
pub mod annotations;
pub mod azure;
pub mod call;
pub mod effect;
pub mod event;
pub mod failure;
pub mod key;
pub mod kube;
pub mod lease;
pub mod names;
pub mod notices;
pub mod plan;
pub mod reason;
pub mod seeded;
pub mod time;

pub use address::Family;
pub use effect::{Action, Effect, Outcome};
pub use event::Event;
pub use failure::{Failure, FailureClass};
pub use key::{EffectId, EgressName, ObjectName, ServiceKey, Uid};
pub use plan::{Plan, Step};
pub use time::Time;
