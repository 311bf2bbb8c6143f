//! Commands on the expiries of hash fields: HEXPIRE, HTTL and their like, HPERSIST, and HSETEX, HGETEX and
//! HGETDEL.
//!
//! Redis and Valkey have them by the same names. They differ in the order in which they check arguments, in
//! errors, in the events and in what replicas repeat, so that each has a module of its own.

mod arguments;
mod redis;
mod valkey;

use std::sync::Arc;

use super::expiry::{MILLIS, SECONDS, UNIX_MILLIS, UNIX_SECONDS, Unit};
use crate::servers::redis::effects::decimal;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

const HEXPIRE: Event = Event(Class::Hash, "hexpire");
const HPERSIST: Event = Event(Class::Hash, "hpersist");

/// The answers about a field: it does not exist, it has no expiry, the conditions are not met, its expiry was
/// set or removed, and it was removed since its expiry has passed.
const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const REMOVED: i64 = 2;

pub(super) fn hexpire(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    expire(state, args, SECONDS, "hexpire")
}

pub(super) fn hpexpire(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    expire(state, args, MILLIS, "hpexpire")
}

pub(super) fn hexpireat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    expire(state, args, UNIX_SECONDS, "hexpireat")
}

pub(super) fn hpexpireat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    expire(state, args, UNIX_MILLIS, "hpexpireat")
}

pub(super) fn httl(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    time_left(state, args, SECONDS)
}

pub(super) fn hpttl(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    time_left(state, args, MILLIS)
}

pub(super) fn hexpiretime(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    time_left(state, args, UNIX_SECONDS)
}

pub(super) fn hpexpiretime(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    time_left(state, args, UNIX_MILLIS)
}

pub(super) fn hpersist(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if state.is_valkey() { valkey::hpersist(state, args) } else { redis::hpersist(state, args) }
}

pub(super) fn hsetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if state.is_valkey() { valkey::hsetex(state, args) } else { redis::hsetex(state, args) }
}

pub(super) fn hgetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if state.is_valkey() { valkey::hgetex(state, args) } else { redis::hgetex(state, args) }
}

pub(super) fn hgetdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if state.is_valkey() { valkey::hgetdel(state, args) } else { redis::hgetdel(state, args) }
}

fn expire(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Result<Reply, Reply> {
    let expire = if state.is_valkey() { valkey::expire } else { redis::expire };
    expire(state, args, unit, command)
}

fn time_left(state: &mut State, args: Args<'_>, unit: Unit) -> Result<Reply, Reply> {
    let time_left = if state.is_valkey() { valkey::time_left } else { redis::time_left };
    time_left(state, args, unit)
}

/// Returns the name under which replicas repeat HEXPIRE and its like.
fn repeated_name<'a>(args: Args<'a>, unit: Unit) -> &'a [u8] {
    if unit == UNIX_MILLIS { args.at(0) } else { b"HPEXPIREAT" }
}

/// Returns the answer about each of `count` fields of a hash that does not exist.
fn no_fields(count: usize) -> Reply {
    Reply::Array(vec![Reply::Integer(NO_FIELD); count])
}

fn integers(numbers: Vec<i64>) -> Reply {
    Reply::Array(numbers.into_iter().map(Reply::Integer).collect())
}

/// Returns values, and nil for fields that do not exist.
fn values(values: Vec<Option<Arc<[u8]>>>) -> Reply {
    Reply::Array(values.into_iter().map(|value| value.map_or(Reply::Nil, Reply::Bulk)).collect())
}

/// Records that fields got the expiry `at`, or lost theirs if there is none.
fn record_expiry(state: &mut State, key: &[u8], at: Option<i64>, fields: &[&[u8]]) {
    let (at, number) = (at.map(decimal), count(fields.len()));
    let name: &[u8] = if at.is_some() { b"HPEXPIREAT" } else { b"HPERSIST" };
    let event = if at.is_some() { HEXPIRE } else { HPERSIST };
    let start = [name, key].into_iter().chain(at.as_deref());
    let words = start.chain([&b"FIELDS"[..], &number]).chain(fields.iter().copied());
    state.changed(key, event, &words.collect::<Vec<_>>());
}

fn count(fields: usize) -> Vec<u8> {
    decimal(i64::try_from(fields).unwrap_or(i64::MAX))
}
