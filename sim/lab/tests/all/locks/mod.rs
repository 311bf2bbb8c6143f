//! Locks on one Redis, and mutual exclusion of the locks on every system under random schedules.

mod counts;
mod lab;

mod batches;
mod concurrency;
mod exclusion;
mod failure;
mod integration;
mod waiting;
