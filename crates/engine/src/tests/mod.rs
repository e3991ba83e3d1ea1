//! Story tests: facts in, effects out, read aloud.

mod adoption;
mod bad_input;
mod cells;
mod changes;
mod conditions;
mod deletion;
mod dispatch;
mod drift;
mod explain;
mod fencing;
mod inbound;
mod kubernetes;
mod late;
mod measured;
mod metrics;
mod outbound;
mod ownership;
mod pods;
mod random;
mod retry;
mod startup;
mod story;
mod table;
mod teardown;
mod updates;
mod validate;
