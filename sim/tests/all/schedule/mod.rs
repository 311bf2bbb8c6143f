//! Schedules as data: files, what they may not say, and drawing from a seed.

mod draw;
mod roundtrip;
mod seeds;
mod typos;
