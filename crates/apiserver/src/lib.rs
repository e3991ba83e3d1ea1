//! A small Kubernetes API server in this process, good enough for kubectl as users have it.
//!
//! One [`store::Store`] holds all objects. [`surface`](self) speaks HTTPS for it, and the controllers of
//! the playground use the same calls without HTTP. What is served is a table in [`kinds`]; discovery,
//! tables, defaults and checks follow from it, and `SUPPORT.md` tells it to people.
//!
//! Missing on purpose: a disk, other versions of a kind, admission webhooks, quotas, and rights: whoever
//! has the token may do everything.

mod certificates;
pub mod controllers;
pub mod kinds;
pub mod patch;
mod protobuf;
mod refusal;
mod running;
mod schema;
pub mod store;
mod surface;
mod value;

pub use refusal::{Cause, Refusal};
pub use running::{KUBECONFIG, Options, Running, StartError, start};
pub use schema::decode::Strictness;
