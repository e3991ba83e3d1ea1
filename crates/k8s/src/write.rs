//! Finalizers and status, one call each, fenced by the UID.
