//! The schedules in `seeds/`, run.

mod hashes;
mod snapshots;
mod verdicts;
