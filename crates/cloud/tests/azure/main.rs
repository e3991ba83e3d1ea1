//! Claims about the model of Azure, one test each.

mod containers;
mod faults;
mod foreign;
mod gateway;
mod limits;
mod lists;
mod operations;
mod random;
mod resources;
mod support;
mod tampering;
