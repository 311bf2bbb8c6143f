//! Patterns of `LIKE`.

use crate::error::SqlError;

/// Returns whether a text matches a pattern: `%` is any text, `_` any character, and a backslash escapes.
///
/// Only the last `%` is tried at further places: what stands before it has matched as early as it can.
pub(super) fn matches(text: &[char], pattern: &[char]) -> Result<bool, SqlError> {
    let (mut at, mut part) = (0, 0);
    // Behind the last `%`: the place in the pattern, and that in the text where the rest is tried.
    let mut last = None;
    loop {
        let rest = pattern.get(part..).unwrap_or_default();
        let taken = match (rest, text.get(at)) {
            (['%', ..], _) => {
                part += 1;
                last = Some((part, at));
                continue;
            }
            (rest, None) => return Ok(rest.is_empty()),
            (['\\'], _) => {
                return Err(SqlError::new("22025", "LIKE pattern must not end with escape character"));
            }
            (['_', ..], _) => 1,
            (['\\', wanted, ..], Some(c)) => 2 * usize::from(wanted == c),
            ([wanted, ..], Some(c)) if wanted == c => 1,
            _ => 0,
        };
        if taken > 0 {
            (part, at) = (part + taken, at + 1);
            continue;
        }
        let Some((behind, from)) = &mut last else { return Ok(false) };
        *from += 1;
        (part, at) = (*behind, *from);
    }
}
