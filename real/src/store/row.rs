//! A fence as a row of the table `resource_locks`, and back.

use bytes::Bytes;
use dlock::FencingToken;
use resource::fence::{Fence, Mark, Position};
use resource::store::{Snapshot, StoreError};
use resource::{BodyDigest, OwnerToken};
use tokio_postgres::Row;

/// What [`load`] and [`snapshot`] read, in this order. Numbers beyond bigint travel as text.
pub(super) const COLUMNS: &str = "last_token::text, last_seq::text, last_owner, written_token::text, written_seq::text, \
     written_owner, written_sha256, version, value";

/// A position as parameters of a statement.
pub(super) struct Parameters {
    pub(super) token: String,
    pub(super) seq: String,
    pub(super) owner: Option<String>,
}

impl Parameters {
    pub(super) fn of(mark: Option<&Mark>) -> Self {
        let number = |part: fn(Position) -> u64| mark.map_or(0, |mark| part(mark.position)).to_string();
        let owner = mark.and_then(|mark| mark.owner.as_ref());
        Self {
            token: number(|position| position.token().as_u64()),
            seq: number(Position::seq),
            owner: owner.map(|owner| owner.as_str().to_owned()),
        }
    }
}

/// The fence in a row.
pub(super) fn load(row: &Row) -> Result<Fence, StoreError> {
    let highest = mark(row, 0)?;
    let sha256: Option<&[u8]> = row.try_get(6).map_err(corrupt)?;
    let last_write = match (mark(row, 3)?, sha256) {
        (None, _) => None,
        (Some(mark), Some(sha256)) => {
            let sha256 = sha256.try_into().map_err(|_| StoreError::Corrupt("a digest has not 32 bytes"))?;
            Some((mark, BodyDigest::from_bytes(sha256)))
        }
        (Some(_), None) => return Err(StoreError::Corrupt("a write has no digest")),
    };
    let version: i64 = row.try_get(7).map_err(corrupt)?;
    let version = u64::try_from(version).map_err(|_| StoreError::Corrupt("a version is negative"))?;
    Ok(Fence { highest, last_write, version })
}

/// What a reader is told of a row.
pub(super) fn snapshot(row: &Row, fence: &Fence) -> Result<Snapshot, StoreError> {
    let value: Option<&[u8]> = row.try_get(8).map_err(corrupt)?;
    Ok(Snapshot {
        value: value.map(Bytes::copy_from_slice),
        version: fence.version,
        max_fence: fence.max_fence(),
    })
}

/// The position in three columns from `first` on; `None` where the token is zero.
fn mark(row: &Row, first: usize) -> Result<Option<Mark>, StoreError> {
    let number = |column| {
        let text: &str = row.try_get(column).map_err(corrupt)?;
        text.parse::<u64>().map_err(|_| StoreError::Corrupt("a token or sequence is no whole number"))
    };
    let Some(token) = FencingToken::new(number(first)?) else { return Ok(None) };
    let position = Position::from_parts(token, number(first + 1)?);
    let owner: Option<&str> = row.try_get(first + 2).map_err(corrupt)?;
    let owner = owner.map(OwnerToken::new).transpose();
    Ok(Some(Mark { position, owner: owner.map_err(|_| StoreError::Corrupt("an owner token is no text"))? }))
}

fn corrupt(_: tokio_postgres::Error) -> StoreError {
    StoreError::Corrupt("a column has another type: the tables are not those of this program")
}
