//! Schedules as data: files, their errors, and drawing from a seed.

mod draw;
mod roundtrip;
mod seeds;
mod typos;
