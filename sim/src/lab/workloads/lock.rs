//! The lock: a worker acquires, reads, works, checks its lease, writes to the resource and releases.

use futures_util::future::BoxFuture;

use super::super::seat::Seat;

/// All rounds of a worker, on the lock of the schedule's system.
pub(super) fn rounds(seat: Seat<'_>) -> BoxFuture<'_, ()> {
    seat.options.system.get().work(seat)
}
