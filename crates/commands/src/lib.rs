//! The product's commands: what `sluice run`, `plan`, `status` and the others do.
//!
//! One module per command, each with its `Arguments` and a `run`. The entries return boxed futures, so that a
//! command is compiled here, once, and not again in every program that starts it. The feature `lab` adds the
//! scaled clock of the playground and the bench ([`pace`]); the production build does not have it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the commands speak to a terminal")]

pub mod adopt;
pub mod allow_deletion;
pub mod cleanup;
pub mod config;
pub mod consent;
pub mod doctor;
pub mod explain;
pub mod failure;
pub mod lease;
pub mod logs;
pub mod migrate;
pub mod output;
#[cfg(feature = "lab")]
pub mod pace;
pub mod paint;
pub mod plan;
pub mod reach;
pub mod run;
pub mod status;
mod tags;
