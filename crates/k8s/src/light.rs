//! The objects of Kubernetes, cut down as they arrive.
