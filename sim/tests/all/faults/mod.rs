//! Faults: what they open they close, and one of somebody's own.

mod flap;
mod overlaps;
mod pauses;
