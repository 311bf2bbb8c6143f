//! Faults: what they open they close.

mod pauses;
