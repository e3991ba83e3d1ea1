//! `sluice plan`: what would be created, changed and deleted, and which calls that takes.
//!
//! Both worlds are read once and completely; then the engine and the updaters work on copies of them
//! ([`foresight`]), and what differs afterwards is shown ([`changes`], [`report`]). Nothing is written.

pub mod changes;
mod command;
pub mod foresight;
mod held;
pub mod reading;
pub mod report;

pub use command::{Arguments, run};
pub use held::Case;
pub use report::Verdict;

#[cfg(test)]
mod tests;
