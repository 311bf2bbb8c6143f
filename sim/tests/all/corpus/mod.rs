//! The schedules in `seeds/`, run.

mod snapshots;
mod verdicts;
