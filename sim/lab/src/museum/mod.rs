//! The museum: locks, workers, resources and deployments with one mistake that real ones made. The simulator
//! must convict each of them.
//!
//! [`Mutant`] lists them, a row each in `table.rs`; [`run_with`] runs a schedule with one; [`Museum`] is the
//! laboratory with one. Each mistake has a file of its own, made with the parts of [`kit`](crate::kit). They
//! use only public items: `sim/lab/tests/museum_outside.rs` compiles these files outside the crate.

mod abandoned_place;
mod accepts_equal;
mod asynchronous_commit;
mod barging;
mod blind_del;
mod cached_block;
mod check_then_write;
mod checked_in_application;
mod client_clock;
mod count_then_queue;
mod counter_after;
mod counter_before;
mod counter_deleted;
mod dead_watchdog;
#[macro_use]
mod declare;
mod early_now;
mod endless_renewal;
mod eternal_permits;
mod eternal_readers;
mod exhibit;
mod expiry_alone;
mod failed_release;
mod failure_kept;
mod forgetful_nodes;
mod forgets_on_restart;
mod header_revision;
mod ignores_version;
mod inner_release;
mod late_loss;
mod lease_id_token;
mod lease_is_truth;
mod line;
mod lock_only_cron;
mod margin_added;
mod mutant;
mod no_cleanup;
mod no_rollback;
mod no_second_look;
mod old_session_node;
mod one_key;
mod one_permit_more;
mod one_token;
mod overtaking_release;
mod patient_dead;
#[cfg(test)]
mod permits;
mod plain_redlock;
mod pop_and_lose;
mod prefix_deleted;
mod queue_evicts;
mod queue_keeps_dead;
mod reacquire;
mod reader_behind_reader;
mod readers_first;
mod reentrant;
mod renew_deadline;
mod renewal_logged;
mod renewal_outlives;
mod returns_refused;
mod scripted;
mod set_left_out;
mod setnx;
mod shared_scope;
mod shared_token;
mod stale_observer;
mod start_is_record;
mod started_at;
mod string_tokens;
mod subject;
mod table;
mod token_as_value;
mod token_by_get;
mod token_in_memory;
mod two_step;
mod unchecked;
mod unchecked_waiter;
mod unordered_keys;
mod upgrade_by_waiting;
mod validity_from_reply;
mod wall_clock;
mod write_after_release;

pub use subject::{Museum, load, run, run_with};
pub use table::Mutant;
