//! Converts between a fence and a row of the table `resource_locks`.

use bytes::Bytes;
use dlock::FencingToken;
use resource::fence::{Fence, Guard, LastWrite, Mark, Position};
use resource::store::{Snapshot, StoreError};
use resource::{BodyDigest, OwnerToken};
use tokio_postgres::Row;

use super::permits::permits_of;

/// The columns read by [`load`] and [`snapshot`], in this order. Numbers beyond bigint are sent as text.
pub(super) const COLUMNS: &str = "last_token::text, last_seq::text, last_owner, written_token::text, \
     written_seq::text, written_owner, written_sha256, version, value, permits::text";

/// A position as parameters of a statement.
pub(super) struct Parameters {
    pub(super) token: String,
    pub(super) seq: String,
    pub(super) owner: Option<String>,
}

impl Parameters {
    pub(super) fn of_mark(mark: Option<&Mark>) -> Self {
        match mark {
            None => Self::new(0, 0, None),
            Some(Mark { position, owner }) => {
                Self::new(position.token().as_u64(), position.seq(), owner.as_ref())
            }
        }
    }

    /// Returns the last write, as the numbers of its guard: see [`Guard::to_parts`].
    pub(super) fn of_write(last: &LastWrite) -> Self {
        let (token, number) = last.guard.to_parts();
        Self::new(token, number, last.owner.as_ref())
    }

    fn new(token: u64, seq: u64, owner: Option<&OwnerToken>) -> Self {
        let owner = owner.map(|owner| owner.as_str().to_owned());
        Self { token: token.to_string(), seq: seq.to_string(), owner }
    }
}

/// Reads the fence from a row.
pub(super) fn load(row: &Row) -> Result<Fence, StoreError> {
    let highest = mark(position(row, 0)?);
    let sha256: Option<&[u8]> = row.try_get(6).map_err(corrupt)?;
    let last_write = match sha256 {
        None => None,
        Some(sha256) => {
            let sha256 = sha256.try_into().map_err(|_| StoreError::Corrupt("a digest has not 32 bytes"))?;
            Some(last_write(position(row, 3)?, BodyDigest::from_bytes(sha256))?)
        }
    };
    let version: i64 = row.try_get(7).map_err(corrupt)?;
    let version = u64::try_from(version).map_err(|_| StoreError::Corrupt("a version is negative"))?;
    let permits: Option<&str> = row.try_get(9).map_err(corrupt)?;
    let beside = permits_of(highest.as_ref(), permits)?;
    Ok(Fence { highest, beside, last_write, version })
}

/// Reads the snapshot for a reader from a row.
pub(super) fn snapshot(row: &Row, fence: &Fence) -> Result<Snapshot, StoreError> {
    let value: Option<&[u8]> = row.try_get(8).map_err(corrupt)?;
    Ok(Snapshot {
        value: value.map(Bytes::copy_from_slice),
        version: fence.version,
        max_fence: fence.max_fence(),
    })
}

/// Reads token, sequence and owner from three columns, beginning with `first`.
fn position(row: &Row, first: usize) -> Result<(u64, u64, Option<OwnerToken>), StoreError> {
    let number = |column| {
        let text: &str = row.try_get(column).map_err(corrupt)?;
        text.parse::<u64>().map_err(|_| StoreError::Corrupt("a token or sequence is no whole number"))
    };
    let owner: Option<&str> = row.try_get(first + 2).map_err(corrupt)?;
    let owner = owner.map(OwnerToken::new).transpose();
    let owner = owner.map_err(|_| StoreError::Corrupt("an owner token is no text"))?;
    Ok((number(first)?, number(first + 1)?, owner))
}

/// Returns `None` if the token is zero: there was none yet.
fn mark((token, seq, owner): (u64, u64, Option<OwnerToken>)) -> Option<Mark> {
    let token = FencingToken::new(token)?;
    Some(Mark { position: Position::from_parts(token, seq), owner })
}

fn last_write(
    (token, number, owner): (u64, u64, Option<OwnerToken>),
    digest: BodyDigest,
) -> Result<LastWrite, StoreError> {
    let guard =
        Guard::from_parts(token, number).ok_or(StoreError::Corrupt("a write has the position of a claim"))?;
    Ok(LastWrite { guard, owner, digest })
}

pub(super) fn corrupt(_: tokio_postgres::Error) -> StoreError {
    StoreError::Corrupt("a column has another type: the tables are not those of this program")
}
