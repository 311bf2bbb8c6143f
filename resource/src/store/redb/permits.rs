//! The table of the permits beside the highest token of a key.

use dlock::FencingToken;
use redb::{ReadableTable, TableDefinition, TableHandle, WriteTransaction};

use super::{MarkRow, decode_mark, failed, mark_row};
use crate::ResourceKey;
use crate::fence::{Fence, Permit};
use crate::store::StoreError;

/// A permit: its token, and its mark if one was seen of it.
type PermitRow<'a> = (u64, Option<MarkRow<'a>>);
/// The highest token, and the permits beside it.
type PermitsRow<'a> = (u64, Vec<PermitRow<'a>>);

/// A row names the highest token to which its permits belong: a program without permits raises the token, and
/// leaves the row, which then counts no more. The table is created with its first row, so that the file of a
/// store of mutexes is as it was before there were permits.
const PERMITS: TableDefinition<'_, &str, PermitsRow<'_>> = TableDefinition::new("permits");

/// Loads the permits of `key` beside `highest`.
pub(super) fn load(
    transaction: &WriteTransaction,
    key: &ResourceKey,
    highest: FencingToken,
) -> Result<Vec<Permit>, StoreError> {
    if !exists(transaction)? {
        return Ok(Vec::new());
    }
    let permits = transaction.open_table(PERMITS).map_err(failed)?;
    let row = permits.get(key.as_str()).map_err(failed)?;
    match row.as_ref().map(|row| row.value()) {
        Some((token, rows)) if token == highest.as_u64() => rows.into_iter().map(decode).collect(),
        _ => Ok(Vec::new()),
    }
}

/// Stores the permits of `fence`.
pub(super) fn save(
    transaction: &WriteTransaction,
    key: &ResourceKey,
    fence: &Fence,
) -> Result<(), StoreError> {
    match fence.max_fence() {
        Some(highest) if !fence.beside.is_empty() => {
            let rows = fence.beside.iter().map(encode).collect::<Vec<_>>();
            let mut permits = transaction.open_table(PERMITS).map_err(failed)?;
            permits.insert(key.as_str(), (highest.as_u64(), rows)).map_err(failed)?;
        }
        // Also if none were loaded: the row may be of another token, to which an operator sets the fence.
        _ if exists(transaction)? => {
            let mut permits = transaction.open_table(PERMITS).map_err(failed)?;
            permits.remove(key.as_str()).map_err(failed)?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns true if the table exists: opening it would create it.
fn exists(transaction: &WriteTransaction) -> Result<bool, StoreError> {
    Ok(transaction.list_tables().map_err(failed)?.any(|table| table.name() == PERMITS.name()))
}

fn encode(permit: &Permit) -> PermitRow<'_> {
    (permit.token().as_u64(), permit.mark().map(mark_row))
}

fn decode((token, mark): PermitRow<'_>) -> Result<Permit, StoreError> {
    if let Some(mark) = mark {
        return decode_mark(mark).map(Permit::Seen);
    }
    FencingToken::new(token).map(Permit::Unseen).ok_or(StoreError::Corrupt("the token of a permit is zero"))
}
