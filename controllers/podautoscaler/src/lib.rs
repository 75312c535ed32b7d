//! Keeps Deployments at the number of replicas their PodAutoscaler asks for.
