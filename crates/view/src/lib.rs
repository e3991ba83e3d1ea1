//! What people see: status, explanations, the overview and its changes, in one JSON shape.
//!
//! The admin server writes these types; `sluice status`, `sluice explain` and the dashboard read them,
//! and none of them has a shape of its own. They are plain data: texts are ready to be
//! shown, moments are wall time with their distance in seconds beside it, so that nobody who reads
//! them needs a clock, and words come from fixed lists, so that they can be compared.
//!
//! - [`status`]: one service or egress as it stands
//! - [`explanation`]: why it stands there, and what to do
//! - [`overview`]: the controller as a whole
//! - [`delta`]: what has changed since somebody last looked
//!
//! Reader and writer may be of different versions: fields that a reader does not know are ignored,
//! fields that a writer does not send are empty, and a word that a reader does not know is `Unknown`.
//!
//! Missing on purpose: the engine's types, which change for reasons of their own; the translation
//! lives with the admin server. And layout: tables and colours are the command line's.

pub mod delta;
pub mod explanation;
pub mod moment;
pub mod overview;
pub mod page;
pub mod state;
pub mod status;

pub use delta::{Delta, Goodbye, Removed};
pub use explanation::{Call, Explanation, Happening, Operation, Step, StepPhase, Told, Wait, WaitKind};
pub use moment::{Due, Since};
pub use overview::Overview;
pub use page::{Page, Problem};
pub use state::{State, Why};
pub use status::{Addresses, EgressStatus, Held, LastFailure, Progress, ServiceStatus, Status};
