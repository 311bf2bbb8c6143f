//! The rule that a verdict says is broken.

use crate::audit::VerdictKind;

/// Returns the rule that a run with this verdict has broken, as one sentence.
///
/// # Example
///
/// ```
/// use history::VerdictKind;
///
/// let rule = history::rule(VerdictKind::ForeignRelease);
/// assert_eq!(rule, "A client deletes or extends only a lock that it owns.");
/// ```
pub const fn rule(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Overlap => "At most one holder of a lock is inside its critical section.",
        VerdictKind::StaleWrite => {
            "The resource accepts a write only if its fencing token is above all tokens accepted before."
        }
        VerdictKind::LateWrite => {
            "The resource accepts no write of an older grant once a newer holder has read or claimed it."
        }
        VerdictKind::LostUpdate => "A read-modify-write overwrites only what its writer has read.",
        VerdictKind::TokenRegressed => {
            "An acquire that begins after an earlier grant has returned gets a greater fencing token."
        }
        VerdictKind::ForeignRelease => "A client deletes or extends only a lock that it owns.",
        VerdictKind::Stuck => {
            "Once all faults have healed, each waiter is served, and no key outlives its TTL."
        }
        VerdictKind::Unfair => "A first-come-first-served lock serves waiters in the order of their arrival.",
        VerdictKind::TwoValid => "No two leases on one key are valid at once by their holders' own clocks.",
        VerdictKind::Unheld => {
            "While a lease is valid by its holder's clock, the servers (or a majority) hold its key."
        }
        VerdictKind::Leaked => "Once an acquisition has ended, its key is not stored any more.",
        VerdictKind::Idle => "A free lock is granted to a waiter within the longest retry delay.",
        VerdictKind::AfterRelease => "Once a client releases its lock, it neither writes nor works on.",
    }
}
