//! A model of Azure: the resource manager and the network resource provider, as far as Sluice meets them.
//!
//! [`Cloud::handle`] takes one request at a given time and answers as Azure would: it checks references,
//! refuses with Azure's codes, starts operations that take a while, counts calls and pages lists. It reads
//! no clock and draws its latencies from a seed, so the simulator replays it exactly; the emulator puts the
//! same thing behind HTTP. It was written from the wire contract and from recorded traffic, not from what
//! our own engine does, so that the two cannot agree on a mistake.
//!
//! When things happen:
//!
//! - PUT: checked when it arrives, visible at once with `Updating`; the end of the operation turns that into
//!   `Succeeded` (a new public IP has its address only then) or, when the operation fails, into `Failed`.
//!   A PUT that changes nothing answers `Succeeded` at once, with an operation that is already over.
//! - DELETE: checked when it arrives, the resource stays as `Deleting` until the operation ends, and is
//!   checked again then. What is not there answers 204.
//! - The two gateway POSTs: checked as a whole when they arrive, carried out as a whole when the operation
//!   ends, and checked again then; what no longer holds makes the operation `Failed` and changes nothing.
//!   With [`Config::synchronous_posts`] all of it happens at once.
//! - A second write of a resource whose operation still runs is refused. The two POSTs of a gateway are
//!   apart from each other, but not from a PUT or DELETE of the gateway itself; a virtual network and its
//!   subnets are changed one at a time.
//!
//! Nothing is looked for in everything: who names whom and how many there are is kept up with each write, so
//! a request costs about the same in a cloud of ten thousand load balancers as in a small one.
//!
//! What nothing recorded shows, and what we therefore decided:
//!
//! - Unregistering a service that is not registered succeeds; so does a POST with nothing in it.
//! - A gateway is deleted only when no subnet, NAT gateway or registration refers to it.
//! - A NAT gateway is registered only with the gateway that it names, and cannot leave it while registered.
//! - A pool or NAT gateway must be in state `Succeeded` to be registered.
//! - An address may be bound at several locations. One without services is gone, and so is a location
//!   without addresses.
//! - A service gateway is replaced as a whole by a PUT, like a load balancer.
//! - A backend pool that is registered cannot be left out when its load balancer is written.
//! - A subnet or network need not be `Succeeded` to be referred to.
//! - A group that others need is refused at once, where Azure would begin and get stuck.
//!
//! Missing on purpose: JSON, HTTP, tokens and roles (who pays is whoever was named last); regions (quotas and
//! call limits hold for a subscription, and the region in an operation's id is whatever was set last); and every property that the
//! rules here do not need: whoever serves whole documents keeps the rest beside this.
#![no_std]

extern crate alloc;

mod admit;
mod cloud;
mod config;
mod containers;
mod contents;
mod delete;
mod fault;
mod inspect;
mod issue;
mod lag;
mod list;
mod locations;
mod operation;
mod place;
mod put;
mod refusal;
mod services;
mod state;
mod take_over;
mod tamper;
mod throttle;
mod work;

pub use cloud::{Cloud, InlineSubnet, Outcome};
pub use config::{Buckets, Config, Latencies, Quota, Rate, Span, Window};
pub use contents::Contents;
pub use fault::Fault;
pub use inspect::{LimitsAside, Remaining, RunningOperation, Usage};
pub use refusal::{is_managers_code, no_group_text, no_resource_text};
pub use state::State;
pub use tamper::{Forbidden, LockLevel, Tamper};
