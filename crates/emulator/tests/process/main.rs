//! The emulator as a process: real sockets, real TLS, a client that shares no code with it.
//!
//! Each test has an emulator of its own on a free port. Emulated time is moved by the control API, never
//! waited for.
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

mod control;
mod doors;
mod faults;
mod hostile;
mod identity;
mod log;
mod state;
mod support;
mod z_list;
