//! A simulated Kubernetes API server that speaks the real wire protocol.
