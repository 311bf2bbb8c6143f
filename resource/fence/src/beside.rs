//! The tokens beside a request's own: those of the other permits of a semaphore.

use std::fmt;
use std::str::FromStr;

use dlock::FencingToken;

/// The largest number of tokens in a [`Beside`]. A fence keeps each of them until a newer token comes.
pub const BESIDE_MAX: usize = 1000;

/// The largest number of characters of a bad token that an error shows.
const SHOWN_CHARS_MAX: usize = 40;

/// The fencing tokens of the other permits that were live when a permit of a semaphore was granted, in
/// ascending order. Empty for a mutex: then nothing was live beside the grant.
///
/// In text, as in the header `X-Fence-Beside`, it is a list with commas; spaces around them are allowed.
///
/// # Example
///
/// ```
/// use fence::Beside;
///
/// let beside: Beside = "7, 9".parse()?;
/// assert_eq!(beside, Beside::new(["9".parse()?, "7".parse()?])?);
/// assert_eq!(beside.to_string(), "7,9");
/// assert_eq!("".parse(), Ok(Beside::NONE));
///
/// let error = "9,7".parse::<Beside>().unwrap_err();
/// assert_eq!(error.to_string(), "7 comes after 9: list the tokens in ascending order, each once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside(Vec<FencingToken>);

/// Tokens that are no [`Beside`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BesideError {
    /// An entry of the list is no token.
    #[error("{0:?} is no fencing token: list whole numbers from 1 to 18446744073709551615 with commas")]
    NotToken(
        /// The entry, cut off after 40 characters.
        String,
    ),
    /// A token is not above the one before it.
    #[error("{token} comes after {before}: list the tokens in ascending order, each once")]
    NotAscending {
        /// The token.
        token: FencingToken,
        /// The one before it.
        before: FencingToken,
    },
    /// There are more than [`BESIDE_MAX`].
    #[error("it has {tokens} tokens, {BESIDE_MAX} are allowed: use a semaphore with fewer permits")]
    TooMany {
        /// Their number.
        tokens: usize,
    },
}

impl Beside {
    /// No token: the request is that of a mutex, or of the only permit that was live.
    pub const NONE: Self = Self(Vec::new());

    /// Takes the tokens in any order.
    ///
    /// # Errors
    ///
    /// [`BesideError::TooMany`] if there are more than [`BESIDE_MAX`].
    pub fn new(tokens: impl IntoIterator<Item = FencingToken>) -> Result<Self, BesideError> {
        let mut tokens: Vec<_> = tokens.into_iter().collect();
        tokens.sort_unstable();
        tokens.dedup();
        if tokens.len() > BESIDE_MAX {
            return Err(BesideError::TooMany { tokens: tokens.len() });
        }
        Ok(Self(tokens))
    }

    /// Returns the tokens, in ascending order.
    pub fn tokens(&self) -> &[FencingToken] {
        &self.0
    }

    /// Returns true if there is no token.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Beside {
    type Err = BesideError;

    /// Reads a list with commas. An empty text is the empty list.
    fn from_str(text: &str) -> Result<Self, BesideError> {
        if text.trim().is_empty() {
            return Ok(Self::NONE);
        }
        // Counted before anything is kept: the text may come from anyone.
        let count = text.split(',').count();
        if count > BESIDE_MAX {
            return Err(BesideError::TooMany { tokens: count });
        }
        let mut tokens = Vec::<FencingToken>::with_capacity(count);
        for entry in text.split(',') {
            let shown = || BesideError::NotToken(entry.chars().take(SHOWN_CHARS_MAX).collect());
            let token = entry.trim_matches([' ', '\t']).parse().map_err(|_| shown())?;
            match tokens.last() {
                Some(&before) if before >= token => return Err(BesideError::NotAscending { token, before }),
                _ => tokens.push(token),
            }
        }
        Ok(Self(tokens))
    }
}

impl fmt::Display for Beside {
    /// Writes the list with commas, without spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, token) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{token}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tokens: impl Iterator<Item = u64>) -> String {
        tokens.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_list_of_a_thousand_tokens_is_the_longest() {
        let text = list(1..=1000);
        let beside: Beside = text.parse().unwrap();
        assert_eq!((beside.tokens().len(), beside.to_string()), (1000, text));
        let error = list(1..=1001).parse::<Beside>().unwrap_err();
        assert_eq!(error, BesideError::TooMany { tokens: 1001 });
        assert!(error.to_string().contains("1001 tokens, 1000 are allowed"), "{error}");
        let tokens = (1..=1001).filter_map(FencingToken::new);
        assert_eq!(Beside::new(tokens), Err(BesideError::TooMany { tokens: 1001 }));
    }

    #[test]
    fn a_bad_entry_is_named() {
        for (text, error) in [
            ("0", "\"0\" is no fencing token"),
            ("7,", "\"\" is no fencing token"),
            ("7;9", "\"7;9\" is no fencing token"),
            ("+7", "\"+7\" is no fencing token"),
            ("7,18446744073709551616", "\"18446744073709551616\" is no fencing token"),
            ("7,7", "7 comes after 7"),
        ] {
            let found = text.parse::<Beside>().unwrap_err().to_string();
            assert!(found.starts_with(error), "{text}: {found}");
        }
        let long = "x".repeat(1000).parse::<Beside>().unwrap_err();
        assert_eq!(long, BesideError::NotToken("x".repeat(40)));
    }
}
