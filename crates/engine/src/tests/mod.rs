//! Story tests: facts in, effects out, read aloud.

mod inbound;
mod story;
mod table;
