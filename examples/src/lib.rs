//! Runnable lessons in Boatswain.
