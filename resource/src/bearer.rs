//! Bearer tokens: the secrets by which a client shows that it may use the service.
//!
//! Source: RFC 6750, "The OAuth 2.0 Authorization Framework: Bearer Token Usage". A bearer token is sent in
//! plain text with each request: use TLS.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use crate::BodyDigest;

/// The fewest characters of a bearer token: 16 random ones are beyond guessing.
pub const BEARER_CHARS_MIN: usize = 16;
/// The name of a token that stands alone on its line.
const UNNAMED: &str = "unnamed";

/// A secret that a client sends. Its `Debug` does not show it.
///
/// # Example
///
/// ```
/// use resource::bearer::BearerToken;
///
/// let token: BearerToken = "9f86d081884c7d659a2feaa0c55ad015".parse()?;
/// assert_eq!(format!("{token:?}"), "BearerToken");
/// # Ok::<(), resource::bearer::BearerError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Arc<str>);

/// A text that holds no usable tokens. It does not show the text, which may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BearerError {
    /// There is no token.
    #[error("no bearer token is given: make one by `openssl rand -hex 32`")]
    Missing,
    /// A token is short enough to be guessed.
    #[error(
        "line {line}: the bearer token has {chars} characters, at least {BEARER_CHARS_MIN} are needed; make \
         one by `openssl rand -hex 32`"
    )]
    Short {
        /// Its line, from 1.
        line: usize,
        /// Its length.
        chars: usize,
    },
    /// A line is neither a token nor a name and a token.
    #[error(
        "line {line}: give a bearer token, or a name, one space and a token; a token consists of letters, \
         digits and -._~+/="
    )]
    Form {
        /// The line, from 1.
        line: usize,
    },
}

impl BearerToken {
    /// Returns the value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl std::str::FromStr for BearerToken {
    type Err = BearerError;

    /// Reads a token; ignores space around it, such as the end of the line in a file.
    fn from_str(text: &str) -> Result<Self, BearerError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BearerError::Missing);
        }
        checked(text, 1).map(|text| Self(text.into()))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// The tokens that a service accepts. It keeps their digests alone. Clones share them.
#[derive(Clone)]
pub struct BearerTokens(Arc<[Accepted]>);

struct Accepted {
    name: Box<str>,
    digest: BodyDigest,
}

impl BearerTokens {
    /// Reads tokens, one on each line: alone, or after the name of its holder and one space. Ignores empty
    /// lines and lines that begin with `#`. While a token is being replaced, both may be listed.
    ///
    /// # Errors
    ///
    /// [`BearerError`] names the line.
    ///
    /// # Example
    ///
    /// ```
    /// use resource::bearer::BearerTokens;
    ///
    /// let tokens = BearerTokens::parse("# on call\nalice 9f86d081884c7d659a2feaa0c55ad015\n")?;
    /// assert_eq!(tokens.holder("9f86d081884c7d659a2feaa0c55ad015"), Some("alice"));
    /// assert_eq!(tokens.holder("9f86d081884c7d65"), None);
    /// # Ok::<(), resource::bearer::BearerError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, BearerError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let accepted = lines.map(|(number, line)| {
            let (name, token) = line.split_once(' ').unwrap_or((UNNAMED, line));
            let digest = BodyDigest::of(checked(token, number)?.as_bytes());
            Ok(Accepted { name: name.into(), digest })
        });
        let accepted = accepted.collect::<Result<Arc<[_]>, _>>()?;
        if accepted.is_empty() { Err(BearerError::Missing) } else { Ok(Self(accepted)) }
    }

    /// Returns the name of the holder of `token`; `None` if it is not accepted. The time that it takes
    /// depends neither on the accepted tokens nor on the place of the first difference.
    pub fn holder(&self, token: &str) -> Option<&str> {
        let digest = BodyDigest::of(token.as_bytes());
        let mut holder = None;
        for accepted in self.0.iter() {
            let pairs = accepted.digest.as_bytes().iter().zip(digest.as_bytes());
            // `black_box` keeps the compiler from leaving the loop early.
            let difference = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
            if difference == 0 {
                holder = Some(&*accepted.name);
            }
        }
        holder
    }
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|accepted| &accepted.name)).finish()
    }
}

/// Returns `token` if it has the form of RFC 6750, section 2.1, and enough characters.
fn checked(token: &str, line: usize) -> Result<&str, BearerError> {
    let body = token.trim_end_matches('=');
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    if body.is_empty() || !body.bytes().all(is_valid) {
        return Err(BearerError::Form { line });
    }
    if token.len() < BEARER_CHARS_MIN {
        return Err(BearerError::Short { line, chars: token.len() });
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "9f86d081884c7d659a2feaa0c55ad015";

    #[test]
    fn no_error_and_no_debug_text_shows_a_token() {
        let tokens = BearerTokens::parse(&format!("alice {SECRET}")).unwrap();
        let own: BearerToken = SECRET.parse().unwrap();
        let short = BearerTokens::parse("alice 9f86d081884c").unwrap_err();
        let form = BearerTokens::parse(&format!("alice bob {SECRET}")).unwrap_err();
        let shown = format!("{tokens:?} {own:?} {short} {short:?} {form} {form:?}");
        assert!(!shown.contains("9f86"), "{shown}");
        assert_eq!(
            (short, form),
            (BearerError::Short { line: 1, chars: 12 }, BearerError::Form { line: 1 },)
        );
    }

    #[test]
    fn each_listed_token_has_its_holder_and_no_other_has_one() {
        let text = format!("# first\n\nalice {SECRET}\nbob {SECRET}0\n{SECRET}1\n");
        let tokens = BearerTokens::parse(&text).unwrap();
        let holders = ["", "0", "1", "2"].map(|end| tokens.holder(&format!("{SECRET}{end}")));
        assert_eq!(holders, [Some("alice"), Some("bob"), Some(UNNAMED), None]);
        assert_eq!(tokens.holder(""), None);
        assert_eq!(BearerTokens::parse("# none\n\n").unwrap_err(), BearerError::Missing);
    }
}
