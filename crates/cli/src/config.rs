//! The configuration: what the operator decides, and where each value came from.

mod arguments;

pub use arguments::{Assignment, ConfigArguments};
