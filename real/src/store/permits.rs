//! Converts between the permits of a fence and the column `permits` of the table `resource_locks`.

use dlock::FencingToken;
use resource::OwnerToken;
use resource::fence::{Fence, Mark, Permit, Position};
use resource::store::StoreError;
use serde::{Deserialize, Serialize};

/// The column, as JSON.
#[derive(Serialize, Deserialize)]
struct Column {
    /// The highest token when the permits were stored. They count no more if it has changed since: an older
    /// program on the same database raises the token, and leaves the column.
    beside: u64,
    permits: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    token: u64,
    /// `None` if no request with the token was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

/// Returns the value of the column; `None` if there are no permits.
pub(super) fn permits_text(fence: &Fence) -> Option<String> {
    let beside = fence.max_fence().filter(|_| !fence.beside.is_empty())?.as_u64();
    let permits = fence.beside.iter().map(Entry::of).collect();
    // A structure of texts and numbers is always JSON.
    serde_json::to_string(&Column { beside, permits }).ok()
}

/// Reads the permits beside `highest` from the column.
pub(super) fn permits_of(highest: Option<&Mark>, text: Option<&str>) -> Result<Vec<Permit>, StoreError> {
    let (Some(highest), Some(text)) = (highest, text) else { return Ok(Vec::new()) };
    let column = serde_json::from_str::<Column>(text);
    let column = column.map_err(|_| StoreError::Corrupt("the permits are not those of this program"))?;
    if column.beside != highest.position.token().as_u64() {
        return Ok(Vec::new());
    }
    column.permits.into_iter().map(Entry::into_permit).collect()
}

impl Entry {
    fn of(permit: &Permit) -> Self {
        let owner = permit.mark().and_then(|mark| mark.owner.as_ref());
        Self {
            token: permit.token().as_u64(),
            seq: permit.mark().map(|mark| mark.position.seq()),
            owner: owner.map(|owner| owner.as_str().to_owned()),
        }
    }

    fn into_permit(self) -> Result<Permit, StoreError> {
        let token = FencingToken::new(self.token);
        let token = token.ok_or(StoreError::Corrupt("the token of a permit is zero"))?;
        let Some(seq) = self.seq else { return Ok(Permit::Unseen(token)) };
        let owner = self.owner.as_deref().map(OwnerToken::new).transpose();
        let owner = owner.map_err(|_| StoreError::Corrupt("an owner token is no text"))?;
        Ok(Permit::Seen(Mark { position: Position::from_parts(token, seq), owner }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64, seq: u64, owner: Option<&str>) -> Mark {
        let owner = owner.map(|name| OwnerToken::new(name).unwrap());
        Mark { position: Position::from_parts(FencingToken::new(number).unwrap(), seq), owner }
    }

    fn fence(highest: u64) -> Fence {
        let beside = vec![
            Permit::Unseen(FencingToken::new(5).unwrap()),
            Permit::Seen(mark(6, 0, None)),
            Permit::Seen(mark(7, u64::MAX, Some("a"))),
        ];
        Fence { highest: Some(mark(highest, 1, None)), beside, ..Fence::default() }
    }

    #[test]
    fn the_column_is_read_as_it_was_written() {
        let fence = fence(u64::MAX);
        let text = permits_text(&fence).unwrap();
        assert_eq!(
            text,
            "{\"beside\":18446744073709551615,\"permits\":[{\"token\":5},{\"token\":6,\"seq\":0},\
             {\"token\":7,\"seq\":18446744073709551615,\"owner\":\"a\"}]}"
        );
        assert_eq!(permits_of(fence.highest.as_ref(), Some(&text)).unwrap(), fence.beside);
    }

    #[test]
    fn a_row_of_a_mutex_has_no_permits() {
        assert_eq!(permits_text(&Fence { beside: Vec::new(), ..fence(9) }), None);
        assert_eq!(permits_of(Some(&mark(9, 1, None)), None).unwrap(), []);
    }

    #[test]
    fn permits_beside_another_token_do_not_count() {
        let text = permits_text(&fence(9)).unwrap();
        assert_eq!(permits_of(Some(&mark(12, 1, None)), Some(&text)).unwrap(), []);
        assert_eq!(permits_of(None, Some(&text)).unwrap(), []);
    }

    #[test]
    fn a_column_of_something_else_is_corrupt() {
        for text in ["[]", "{\"beside\":9,\"permits\":[{\"token\":0}]}"] {
            let found = permits_of(Some(&mark(9, 1, None)), Some(text));
            assert!(matches!(found, Err(StoreError::Corrupt(_))), "{text}: {found:?}");
        }
    }
}
