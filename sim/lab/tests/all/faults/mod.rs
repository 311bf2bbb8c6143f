//! Faults: overlapping ones, pauses, triggers, repeats, lookups, and one defined outside the crate.

mod cancels;
mod dns;
mod flap;
mod overlaps;
mod pauses;
mod points;
mod repeat;
