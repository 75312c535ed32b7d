//! Kubernetes controllers built from supervised actors.
