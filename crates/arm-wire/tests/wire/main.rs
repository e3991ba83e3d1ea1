//! Claims about the wire, one test each.

mod any;
mod load_balancers;
mod properties;
mod reading;
mod support;
mod trouble;
mod writing;
