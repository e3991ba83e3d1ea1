//! Claims about the wire, one test each.

mod any;
mod properties;
mod reading;
mod support;
mod trouble;
mod writing;
