//! MSETEX. Source: `t_string.c` of Valkey 9.1 and of Redis 8.4.

use super::super::SYNTAX_ERROR;
use super::super::expiry::{UNIX_MILLIS, Unit};
use super::super::ranges::parse_within;
use super::options::{Options, OptionsOf, repeated};
use crate::servers::redis::effects::decimal;
use crate::servers::redis::events::{EXPIRE, SET};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

/// MSETEX: sets all keys with one expiry, or none.
pub(in super::super) fn msetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let is_valkey = state.is_valkey();
    let pairs = pairs(args, is_valkey)?;
    let written = args.skip(2 + pairs.len());
    let options = Options::parse(written, OptionsOf::MSetEx)?;
    let expires_at = options.expires_at(state.now_ms(), "msetex")?;
    let (allows_missing, allows_former) = (options.allow_key(false), options.allow_key(true));
    if !(allows_missing && allows_former) {
        // Redis only reads the keys for XX.
        state.set_reading(!is_valkey && !allows_missing);
        for key in pairs.iter().step_by(2) {
            let exists = state.lookup(key).is_some();
            if !options.allow_key(exists) {
                return Ok(Reply::Integer(0));
            }
        }
        state.set_reading(false);
    }
    let at = expires_at.map(decimal);
    // Redis leaves EXAT as it is.
    let is_rewritten = |unit: Unit| if is_valkey { unit != UNIX_MILLIS } else { !unit.is_absolute };
    let rest = repeated(written, true, |unit| at.as_deref().filter(|_| is_rewritten(unit)));
    let words: Vec<_> = args.take(2 + pairs.len()).iter().chain(rest).collect();
    state.as_command(&words, |state| {
        for at in (0..pairs.len()).step_by(2) {
            set(state, pairs.at(at), pairs.at(at + 1), expires_at, options.keeps_expiry);
        }
    });
    Ok(Reply::Integer(1))
}

/// Returns the keys and their values.
fn pairs(args: Args<'_>, is_valkey: bool) -> Result<Args<'_>, Reply> {
    let (out_of_range, missing) = if is_valkey {
        ("ERR invalid numkeys value or out of range", SYNTAX_ERROR)
    } else {
        ("ERR invalid numkeys value", "ERR wrong number of key-value pairs")
    };
    let count = parse_within(args.at(1), 1..=i64::from(i32::MAX), Some(out_of_range))?;
    let words = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(2);
    let pairs = args.skip(2).take(words);
    if pairs.len() < words { Err(Reply::error(missing)) } else { Ok(pairs) }
}

fn set(state: &mut State, key: &[u8], value: &[u8], expires_at: Option<i64>, keeps_expiry: bool) {
    // The former value has expired or is overwritten.
    let kept = state.lookup(key).filter(|_| keeps_expiry).and_then(|entry| entry.expires_at);
    state.set(key, value.into(), expires_at.or(kept));
    let publishes_first = expires_at.is_some() && !state.is_valkey();
    if publishes_first {
        state.notify(EXPIRE, key);
    }
    state.notify(SET, key);
    if expires_at.is_some() && !publishes_first {
        state.notify(EXPIRE, key);
    }
}
