//! The clocks of the machine, for what is recorded of a run. No lock reads them: its time comes through `dlock::Runtime`.

use resource::audit::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The machine's monotonic clock: nanoseconds since it was started. All processes of the machine read the same, so that
/// their histories can be put in one order.
pub(crate) fn machine_time() -> Nanos {
    Nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// The wall clock, in microseconds since 1970: for those who look for an event in other logs. It may step.
pub(crate) fn wall_unix_micros() -> u64 {
    nanos(clock_gettime(ClockId::Realtime)) / 1000
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
