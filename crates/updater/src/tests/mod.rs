//! Stories: effects in, scripted replies, and everything that came out, as text.

#[cfg(feature = "seeded-bugs")]
mod bugs;
mod bulk;
mod busy;
mod commits;
mod fresh;
mod habits;
mod lanes;
mod listings;
mod operations;
mod pauses;
mod plans;
mod random;
mod shares;
mod story;
