//! Claims about the resource manager's surface, one test each: HTTP in, HTTP out, no sockets.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as loudly as the test")]

mod bodies;
mod deletions;
mod faults;
mod gateways;
mod headers;
mod lists;
mod load_balancers;
mod networks;
mod operations;
mod random;
mod resources;
mod stage;
mod support;
mod throttling;
mod versions;
