//! The commands that restore all keys. Source: `aof.c` of Redis 7.0 (`rewriteAppendOnlyFileRio`), and of
//! Valkey 9.1 for expiries of fields.

use std::sync::Arc;

use super::effects::{Effect, decimal, push_select};
use super::keyspace::Entry;
use super::number::format_f64;
use super::reply::push_command;
use super::state::State;
use super::value::{Hash, Value};

/// The most elements in one command.
const ELEMENTS_MAX: usize = 64;

/// Returns the commands that restore all keys. They begin and end in database 0.
pub(crate) fn snapshot(state: &State) -> Vec<u8> {
    let mut snapshot = Vec::new();
    let mut selected = 0;
    for (database, keyspace) in state.databases().iter().enumerate() {
        for (key, entry) in keyspace.iter() {
            push_select(&mut snapshot, &mut selected, database);
            push_entry(&mut snapshot, key, entry);
        }
    }
    push_select(&mut snapshot, &mut selected, 0);
    snapshot
}

fn push_entry(out: &mut Vec<u8>, key: &Arc<[u8]>, entry: &Entry) {
    match &entry.value {
        Value::String(text) => {
            let (key, value, expires_at) = (key.clone(), text.bytes.clone(), entry.expires_at);
            return Effect::Set { key, value, expires_at, former: None }.encode(out);
        }
        Value::Hash(hash) => push_hash(out, key, hash),
        Value::List(list) => {
            push_elements(out, b"RPUSH", key, list.items.iter().map(|item| vec![item.clone()]))
        }
        Value::Set(set) => {
            push_elements(out, b"SADD", key, set.members().into_iter().map(|member| vec![member]))
        }
        Value::SortedSet(set) => {
            let scored = set.items().iter();
            let pairs =
                scored.map(|item| vec![format_f64(item.score).into_bytes().into(), item.member.clone()]);
            push_elements(out, b"ZADD", key, pairs);
        }
    }
    if let Some(at) = entry.expires_at {
        push_command(out, &[b"PEXPIREAT", key, &decimal(at)]);
    }
}

/// Appends the fields with an expiry, each with a command of its own as Valkey does, then the others.
fn push_hash(out: &mut Vec<u8>, key: &[u8], hash: &Hash) {
    let (expiring, lasting): (Vec<_>, Vec<_>) =
        hash.pairs().into_iter().partition(|(field, _)| hash.expiry(field).is_some());
    // The last one first: in Redis, a field comes before those with the same expiry.
    for (field, value) in expiring.iter().rev() {
        let at = hash.expiry(field).map(decimal).unwrap_or_default();
        push_command(out, &[b"HSETEX", key, b"PXAT", &at, b"FIELDS", b"1", field, value]);
    }
    push_elements(out, b"HMSET", key, lasting.into_iter().map(|(field, value)| vec![field, value]));
}

/// Appends the commands `name` that add `elements`, each of one or two words.
fn push_elements(out: &mut Vec<u8>, name: &[u8], key: &[u8], elements: impl Iterator<Item = Vec<Arc<[u8]>>>) {
    let elements: Vec<_> = elements.collect();
    for part in elements.chunks(ELEMENTS_MAX) {
        let words = part.iter().flatten().map(|word| &**word);
        push_command(out, &[name, key].into_iter().chain(words).collect::<Vec<_>>());
    }
}
