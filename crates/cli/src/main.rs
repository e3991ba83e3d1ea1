//! `sluice`: everything a person starts.

fn main() {}
