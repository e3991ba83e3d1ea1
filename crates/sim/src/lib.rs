//! The simulator: Kubernetes, Azure, engine and updaters under one clock and one seed.

pub mod cluster;
pub mod rng;
