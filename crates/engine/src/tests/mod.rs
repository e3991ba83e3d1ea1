//! Story tests: facts in, effects out, read aloud.

mod bad_input;
mod cells;
mod deletion;
mod dispatch;
mod drift;
mod explain;
mod fencing;
mod inbound;
mod kubernetes;
mod metrics;
mod outbound;
mod retry;
mod startup;
mod story;
mod table;
mod updates;
mod validate;
