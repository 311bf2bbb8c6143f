//! Faults: overlapping ones, pauses, triggers, repeats, and one defined outside the crate.

mod cancels;
mod flap;
mod overlaps;
mod pauses;
mod points;
mod repeat;
