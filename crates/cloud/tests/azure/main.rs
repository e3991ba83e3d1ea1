//! Claims about the model of Azure, one test each.

mod containers;
mod faults;
mod foreign;
mod gateway;
mod inspect;
mod limits;
mod lists;
mod networks;
mod operations;
mod random;
mod refusals;
mod resources;
mod support;
mod take_over;
mod tampering;
