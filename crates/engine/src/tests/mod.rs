//! Story tests: facts in, effects out, read aloud.

mod story;
mod table;
