//! What the commands of `sluice` and its tests share.
//!
//! The program itself is `main.rs`; here is only what tests must reach too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one crate that speaks to a terminal")]

pub mod bench;
pub mod config;
pub mod pace;
pub mod plan;
