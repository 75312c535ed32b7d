//! A keyed work queue as a pure data structure: one cell per key, priority lanes with ageing, delays, rate limiters.
