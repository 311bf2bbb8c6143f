//! Faults: overlapping ones, pauses, triggers, and one defined outside the crate.

mod cancels;
mod flap;
mod overlaps;
mod pauses;
mod points;
