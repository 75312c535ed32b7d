//! A supervision tree for actix actors: restarts that keep address and mailbox, backoff, escalation, ordered stop.
