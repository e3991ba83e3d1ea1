//! The client against servers that misbehave: real sockets, real TLS, scripted answers.
//!
//! Every test takes part in one more: all that is logged by anybody, at level trace, is kept,
//! and at the end of each test searched for every secret that was ever used.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as loudly as the test")]

mod answers;
mod authority;
mod certificates;
mod connections;
mod credentials;
mod documents;
mod leaks;
mod printing;
mod proxies;
mod server;
mod tls;
mod tokens;
mod world;
