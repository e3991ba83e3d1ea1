//! What the commands of `sluice` and its tests share.
//!
//! The program itself is `main.rs`; here is only what tests must reach too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one crate that speaks to a terminal")]

pub mod adopt;
pub mod bench;
pub mod cleanup;
pub mod config;
pub mod consent;
pub mod doctor;
pub mod explain;
pub mod failure;
pub mod lease;
pub mod pace;
pub mod paint;
pub mod plan;
pub mod reach;
pub mod status;
