//! Faults: overlapping ones, pauses, and one defined outside the crate.

mod flap;
mod overlaps;
mod pauses;
