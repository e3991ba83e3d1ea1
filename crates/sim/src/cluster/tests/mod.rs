//! Claims about the model of Kubernetes.
