//! Runs of the schedules in `seeds/`.

mod hashes;
mod snapshots;
mod verdicts;
