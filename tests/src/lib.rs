//! End-to-end tests of Boatswain, run on the simulated and on a real API server.
