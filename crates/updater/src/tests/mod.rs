//! Stories: effects in, scripted replies, and everything that came out, as text.

mod plans;
mod story;
