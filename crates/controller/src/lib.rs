//! The loop: one inbox, one engine, and the shells of the updaters.
