//! Statements that change which prepared statements, portals and savepoints a session has, read from their
//! text: the connection keeps these, and the database does not know them.

/// The change that a statement makes to them once it has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Drops a prepared statement; `None` for all.
    Deallocate(Option<String>),
    /// Drops all prepared statements and portals.
    DiscardAll,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// It does nothing to them, or ends a transaction, as its command tag tells.
    Other,
}

/// The most tokens of a statement of these kinds: `ROLLBACK WORK TO SAVEPOINT a`, and one more.
const TOKENS_MAX: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A keyword, a name without quotes or a number, in lower case.
    Word(String),
    /// A name in quotes.
    Name(String),
    /// The end of a statement.
    Semicolon,
    Other,
}

impl Control {
    /// Reads the statements of a text that the database has parsed. Empty ones are left out, as the database
    /// leaves them out.
    pub(super) fn all(sql: &str) -> Vec<Self> {
        let (mut rest, mut tokens, mut controls) = (sql, Vec::new(), Vec::new());
        loop {
            let next = token(rest);
            let ends = matches!(next, None | Some((Token::Semicolon, _)));
            if ends && !tokens.is_empty() {
                controls.push(Self::read(&tokens));
                tokens.clear();
            }
            let Some((token, after)) = next else { return controls };
            if !ends && tokens.len() < TOKENS_MAX {
                tokens.push(token);
            }
            rest = after;
        }
    }

    fn read(tokens: &[Token]) -> Self {
        let words = tokens.iter().map(|token| match token {
            Token::Word(word) => word.as_str(),
            _ => "",
        });
        let words: Vec<&str> = words.collect();
        let name = || match tokens.last() {
            Some(Token::Word(name) | Token::Name(name)) => name.clone(),
            _ => String::new(),
        };
        match words.as_slice() {
            ["discard", "all"] => Self::DiscardAll,
            ["deallocate", "all"] | ["deallocate", "prepare", "all"] => Self::Deallocate(None),
            ["deallocate", _] | ["deallocate", "prepare", _] => Self::Deallocate(Some(name())),
            ["savepoint", _] => Self::Savepoint(name()),
            ["release", _] | ["release", "savepoint", _] => Self::Release(name()),
            ["rollback" | "abort", to @ ..] if is_to(to) => Self::RollbackTo(name()),
            _ => Self::Other,
        }
    }
}

/// Returns true for what follows on `ROLLBACK` if it goes back to a savepoint.
fn is_to(words: &[&str]) -> bool {
    let words = match words {
        ["work" | "transaction", rest @ ..] => rest,
        words => words,
    };
    matches!(words, ["to", _] | ["to", "savepoint", _])
}

/// Returns the first token of a text, and what follows; `None` at the end.
fn token(text: &str) -> Option<(Token, &str)> {
    let text = after_blanks(text);
    let mut chars = text.chars();
    let first = chars.next()?;
    let rest = chars.as_str();
    Some(match first {
        ';' => (Token::Semicolon, rest),
        '"' => {
            let (name, rest) = quoted(rest, '"', false);
            (Token::Name(name), rest)
        }
        '\'' => (Token::Other, quoted(rest, '\'', false).1),
        '$' => (Token::Other, after_dollars(rest).unwrap_or(rest)),
        first if first.is_alphanumeric() || first == '_' => word(text),
        _ => (Token::Other, rest),
    })
}

/// Reads a word at the beginning of a text; `E'…'` is a string.
fn word(text: &str) -> (Token, &str) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match rest.strip_prefix('\'') {
        Some(string) if word.eq_ignore_ascii_case("e") => (Token::Other, quoted(string, '\'', true).1),
        _ => (Token::Word(word.to_lowercase()), rest),
    }
}

/// Reads up to a closing quote; two quotes are one of the contents. Returns the contents, and what follows.
/// In a string with escapes a backslash takes the next character with it.
fn quoted(text: &str, quote: char, has_escapes: bool) -> (String, &str) {
    let (mut contents, mut chars) = (String::new(), text.chars());
    while let Some(next) = chars.next() {
        if next == quote {
            match chars.as_str().strip_prefix(quote) {
                Some(rest) => chars = rest.chars(),
                None => break,
            }
        } else if next == '\\' && has_escapes {
            chars.next();
        }
        contents.push(next);
    }
    (contents, chars.as_str())
}

/// Returns what follows on a string in dollars, from behind its first dollar on; `None` if none begins here.
fn after_dollars(text: &str) -> Option<&str> {
    let (tag, body) = text.split_once('$')?;
    let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_tag || tag.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let end = format!("${tag}$");
    Some(body.split_once(end.as_str()).map_or("", |(_, rest)| rest))
}

/// Skips blanks and comments.
fn after_blanks(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start()
        } else if rest.starts_with("/*") {
            after_comment(rest).trim_start()
        } else {
            return rest;
        };
    }
}

/// Skips a comment, which may have others in it.
fn after_comment(text: &str) -> &str {
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        if let Some(inner) = rest.strip_prefix("/*") {
            (rest, depth) = (inner, depth + 1);
        } else if let Some(outer) = rest.strip_prefix("*/") {
            (rest, depth) = (outer, depth.saturating_sub(1));
            if depth == 0 {
                return rest;
            }
        } else {
            let mut chars = rest.chars();
            if chars.next().is_none() {
                return rest;
            }
            rest = chars.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_text_are_found_statement_by_statement() {
        let named = |name: &str| name.to_owned();
        let text = "SELECT 'a;b', E'\\';', $x$;$x$, $1; ; -- none;\nSAVEPOINT A; /* ; /* ; */ */ \
                    ROLLBACK WORK TO SAVEPOINT \"B;\"\"\"; RELEASE a; DEALLOCATE \"all\"; \
                    DEALLOCATE PREPARE ALL; DISCARD ALL; ROLLBACK AND CHAIN";
        let expected = [
            Control::Other,
            Control::Savepoint(named("a")),
            Control::RollbackTo(named("B;\"")),
            Control::Release(named("a")),
            Control::Deallocate(Some(named("all"))),
            Control::Deallocate(None),
            Control::DiscardAll,
            Control::Other,
        ];
        assert_eq!(Control::all(text), expected);
        assert!(Control::all(" ; /* nothing */ ").is_empty());
    }
}
