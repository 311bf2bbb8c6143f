//! The machine's clocks, for timestamps in a history, and that of a thread. No lock reads them: its time
//! comes from `dlock::Runtime`.

use std::time::Duration;

use history::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the machine's monotonic clock, in nanoseconds since boot. All processes of the machine read the
/// same clock, so their histories can be merged into one order.
pub(crate) fn machine_time() -> Nanos {
    Nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Returns the wall clock, in microseconds since 1970, for comparison with other logs. It may step.
pub(crate) fn wall_unix_micros() -> u64 {
    nanos(clock_gettime(ClockId::Realtime)) / 1000
}

/// Returns the wall clock, in milliseconds since 1970, for records of operators' changes. It may step.
pub fn wall_unix_millis() -> u64 {
    wall_unix_micros() / 1000
}

/// Returns the time for which a processor has run this thread.
pub(crate) fn thread_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
