//! Leader election by a Lease, without a clock of its own.
