//! The emulator as a process: real sockets, real TLS, a client that shares no code with it.
//!
//! Each test has an emulator of its own on a free port. Emulated time is moved by the control API, never
//! waited for.

mod control;
mod doors;
mod faults;
mod hostile;
mod identity;
mod log;
mod state;
mod support;
mod z_list;
