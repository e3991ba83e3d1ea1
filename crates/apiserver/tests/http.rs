//! The server over HTTPS, as a client sees it.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "http/client.rs"]
mod client;
#[path = "http/discovery.rs"]
mod discovery;
#[path = "http/lists.rs"]
mod lists;
#[path = "http/support.rs"]
mod support;
#[path = "http/watches.rs"]
mod watches;
#[path = "http/writes.rs"]
mod writes;
