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
    kind.words().rule
}
