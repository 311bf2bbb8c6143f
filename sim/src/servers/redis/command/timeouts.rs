//! The timeouts of commands that wait. Source: `getTimeoutFromObjectOrReply` in `timeout.c` of Redis 7.0.

use crate::servers::redis::number::{Extended, strtod};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::state::State;

const MICROS_PER_MS: i64 = 1000;

/// Reads a timeout in seconds. Returns the deadline in microseconds on the wall clock; `None` if there is
/// none.
pub(super) fn deadline(state: &State, text: &[u8]) -> Result<Option<i64>, Reply> {
    if Extended::parse(text).is_none() {
        let (number, length) = strtod(text);
        let is_infinite = number.is_infinite() && length == text.len();
        let not_a_float = "ERR timeout is not a float or out of range";
        return Err(Reply::error(if is_infinite { NEGATIVE } else { not_a_float }));
    }
    let millis = (strtod(text).0 * 1000.0).ceil();
    // 2^63 is the first number above the range: it becomes the smallest one in C.
    let millis = if millis >= 9_223_372_036_854_775_808.0 { i64::MIN } else { millis as i64 };
    match millis {
        ..0 => Err(Reply::error(NEGATIVE)),
        0 => Ok(None),
        // Redis counts whole milliseconds.
        _ => Ok(Some(state.now_ms().saturating_add(millis).saturating_mul(MICROS_PER_MS))),
    }
}

const NEGATIVE: &str = "ERR timeout is negative";
