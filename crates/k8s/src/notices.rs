//! Notices become Kubernetes events.
