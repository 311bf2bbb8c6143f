//! Decides whether two replies agree: nearly all must to the byte, and the exceptions are listed here.

use super::wire::Reply;

/// The longest time between the requests to the two servers, in milliseconds.
const SKEW_MS: i64 = 25;
/// The fencing tokens that are times: microseconds since 1970, from the year 2017 to 2065.
const MICROS: std::ops::Range<i64> = 1_500_000_000_000_000..3_000_000_000_000_000;
const MICROS_PER_MS: i64 = 1000;

/// How closely two replies must agree, from strict to loose: each also allows what those before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Closeness {
    /// To the byte, but for tokens that are times.
    Exact,
    /// Integers above 1 may differ by the time between two requests: the remaining time of a lease.
    Millis,
    /// Names may be in any order.
    Unordered,
    /// Integers may differ, since the server chooses them: the number of a connection.
    AnyInteger,
    /// Only the kind of reply is compared.
    Kind,
}

impl Closeness {
    /// Returns true if `live` and `simulated` agree.
    pub(crate) fn agree(self, live: &Reply, simulated: &Reply) -> bool {
        let (mut live, mut simulated) = (live.lines(), simulated.lines());
        if self == Self::Kind {
            let kind = |lines: &[&[u8]]| lines.first().and_then(|line| line.first().copied());
            return kind(&live) == kind(&simulated);
        }
        if self >= Self::Unordered {
            live.sort_unstable();
            simulated.sort_unstable();
        }
        live.len() == simulated.len() && live.iter().zip(&simulated).all(|(one, other)| self.line(one, other))
    }

    fn line(self, one: &[u8], other: &[u8]) -> bool {
        if one == other {
            return true;
        }
        let (Some(left), Some(right)) = (integer(one), integer(other)) else { return false };
        let apart = left.abs_diff(right);
        if MICROS.contains(&left) && MICROS.contains(&right) {
            return apart <= (SKEW_MS * MICROS_PER_MS).unsigned_abs();
        }
        let is_reply = one.starts_with(b":") && other.starts_with(b":");
        match self {
            Self::Millis | Self::Unordered => {
                is_reply && left > 1 && right > 1 && apart <= SKEW_MS.unsigned_abs()
            }
            Self::AnyInteger => is_reply,
            _ => false,
        }
    }
}

/// Returns the integer of a line, `:12`, or of a text, `12`.
fn integer(line: &[u8]) -> Option<i64> {
    std::str::from_utf8(line.strip_prefix(b":").unwrap_or(line)).ok()?.parse().ok()
}
