//! Locks on one Redis, and what random schedules hold against those of every system.

mod counts;
mod lab;

mod batches;
mod concurrency;
mod exclusion;
mod failure;
mod integration;
mod waiting;
