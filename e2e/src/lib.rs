//! What the programs of `e2e/` share: the driver of a real control plane.

pub mod testenv;
