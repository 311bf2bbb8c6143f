//! Text as statements.

use std::sync::Arc;

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use super::utility::{self, Utility};
use crate::error::SqlError;

/// One statement of a text, parsed.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub(crate) command: Command,
    /// The text of the whole query, in which errors have their positions.
    pub(crate) text: Arc<str>,
    /// The text of this statement.
    pub(crate) sql: Arc<str>,
    /// True if the query has other statements, with which it runs in one implicit block.
    pub(crate) is_one_of_several: bool,
}

/// A statement of one of two kinds.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Utility(Utility),
    Sql(Arc<Statement>),
}

/// Parses all statements of a text.
pub(crate) fn statements(sql: &str) -> Result<Vec<Parsed>, SqlError> {
    let text: Arc<str> = Arc::from(sql);
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().map_err(|error| {
        let text = if error.message.starts_with("Unterminated") {
            format!("unterminated quoted string at or near \"{}\"", rest_of(sql, error.location))
        } else {
            format!("syntax error at or near \"{}\"", rest_of(sql, error.location))
        };
        SqlError::syntax(text).at(position(sql, error.location))
    })?;
    let tokens = tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    let tokens: Vec<_> = tokens.collect();
    let parts = tokens.split(|token| token.token == Token::SemiColon);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    let is_one_of_several = parts.len() > 1;
    parts.into_iter().map(|part| statement(part, &text, is_one_of_several)).collect()
}

fn statement(tokens: &[TokenWithSpan], text: &Arc<str>, is_one_of_several: bool) -> Result<Parsed, SqlError> {
    let bytes = |location| byte_of(text, location);
    let (first, last) = (tokens.first(), tokens.last());
    let range = first.map_or(0, |t| bytes(t.span.start))..last.map_or(0, |t| bytes(t.span.end));
    let sql = Arc::from(text.get(range).unwrap_or_default());
    let plain: Vec<_> = tokens.iter().map(|token| token.token.clone()).collect();
    if let Some(utility) = utility::read(&plain)? {
        let (command, text) = (Command::Utility(utility), Arc::clone(text));
        return Ok(Parsed { command, text, sql, is_one_of_several });
    }
    super::depth::check(&plain)?;
    let tokens = move_locks(&before_conflict(tokens));
    let mut parser = Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens);
    let parsed = parser.parse_statement().map_err(|error| match error {
        ParserError::RecursionLimitExceeded => SqlError::stack_depth(),
        error => syntax_error(&error.to_string(), text),
    })?;
    let next = parser.peek_token();
    if next.token != Token::EOF {
        return Err(utility::near(Some(&next.token)).at(position(text, next.span.start)));
    }
    let (command, text) = (Command::Sql(Arc::new(parsed)), Arc::clone(text));
    Ok(Parsed { command, text, sql, is_one_of_several })
}

/// Puts `WHERE true` between a `SELECT` without sources and `ON CONFLICT`, whose `ON` the parser takes for
/// the name of a column.
fn before_conflict(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let is = |at: usize, wanted: Keyword| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword == wanted,
        _ => false,
    };
    let mut out = Vec::with_capacity(tokens.len());
    let mut is_bare = vec![false];
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => is_bare.push(false),
            Token::RParen if is_bare.len() > 1 => {
                is_bare.pop();
            }
            Token::Word(word) => {
                let ends = [Keyword::FROM, Keyword::WHERE, Keyword::ORDER, Keyword::LIMIT, Keyword::VALUES];
                let is_conflict = is(at, Keyword::ON) && is(at + 1, Keyword::CONFLICT);
                if let Some(last) = is_bare.last_mut() {
                    if is_conflict && *last {
                        for keyword in [Keyword::WHERE, Keyword::TRUE] {
                            let value = format!("{keyword:?}");
                            let token = Token::Word(Word { value, quote_style: None, keyword });
                            out.push(TokenWithSpan {
                                token,
                                span: tokens
                                    .get(at)
                                    .map_or_else(sqlparser::tokenizer::Span::empty, |t| t.span),
                            });
                        }
                    }
                    *last = word.keyword == Keyword::SELECT || (*last && !ends.contains(&word.keyword));
                }
            }
            _ => {}
        }
        out.push(token.clone());
    }
    out
}

/// Moves the locking clauses of each query to its end, where the parser expects them, and writes each as
/// `FOR UPDATE OF strength.table.table`: the parser knows neither all strengths nor lists of tables.
fn move_locks(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut moved = Vec::with_capacity(tokens.len());
    let mut pending: Vec<Vec<TokenWithSpan>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::LParen => pending.push(Vec::new()),
            Token::RParen => moved.extend(pending.pop().unwrap_or_default()),
            _ => {}
        }
        if let Some((clause, len)) = lock_clause(tokens.get(at..).unwrap_or_default()) {
            if pending.is_empty() {
                pending.push(Vec::new());
            }
            if let Some(pending) = pending.last_mut() {
                pending.extend(clause);
            }
            at += len;
            continue;
        }
        moved.push(token.clone());
        at += 1;
    }
    moved.extend(pending.into_iter().flatten());
    moved
}

/// Reads a locking clause; returns its new form, and how many tokens it had.
fn lock_clause(tokens: &[TokenWithSpan]) -> Option<(Vec<TokenWithSpan>, usize)> {
    let word = |at: usize, wanted: &str| {
        tokens.get(at).is_some_and(|token| token.token.to_string().eq_ignore_ascii_case(wanted))
    };
    if !word(0, "for") {
        return None;
    }
    let strengths: [(&str, &[&str]); 4] = [
        ("update", &["update"]),
        ("no key update", &["no", "key", "update"]),
        ("share", &["share"]),
        ("key share", &["key", "share"]),
    ];
    let is = |words: &[&str]| words.iter().enumerate().all(|(n, wanted)| word(n + 1, wanted));
    let (strength, words) = strengths.into_iter().find(|(_, words)| is(words))?;
    let span = tokens.first()?.span;
    let make = |token: Token| TokenWithSpan { token, span };
    let keyword = |text: &str, keyword: Keyword| {
        make(Token::Word(Word { value: text.to_owned(), quote_style: None, keyword }))
    };
    let quoted = |value: &str| {
        let (value, keyword) = (value.to_owned(), Keyword::NoKeyword);
        make(Token::Word(Word { value, quote_style: Some('"'), keyword }))
    };
    let mut clause = vec![
        keyword("FOR", Keyword::FOR),
        keyword("UPDATE", Keyword::UPDATE),
        keyword("OF", Keyword::OF),
        quoted(strength),
    ];
    let mut at = words.len() + 1;
    if word(at, "of") {
        loop {
            at += 1;
            clause.extend([make(Token::Period), tokens.get(at)?.clone()]);
            at += 1;
            if !word(at, ",") {
                break;
            }
        }
    }
    if word(at, "nowait") {
        clause.push(keyword("NOWAIT", Keyword::NOWAIT));
        at += 1;
    } else if word(at, "skip") && word(at + 1, "locked") {
        clause.extend([keyword("SKIP", Keyword::SKIP), keyword("LOCKED", Keyword::LOCKED)]);
        at += 2;
    }
    Some((clause, at))
}

/// Rewrites `… found: x at Line: 1, Column: 8` in PostgreSQL's words.
fn syntax_error(message: &str, text: &str) -> SqlError {
    let Some((_, found)) = message.rsplit_once("found: ") else {
        return SqlError::syntax(format!("syntax error: {message}"));
    };
    let Some((token, place)) = found.rsplit_once(" at Line: ") else {
        return SqlError::syntax("syntax error at end of input").at(text.chars().count() + 1);
    };
    let location = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
    });
    let at = location.map_or(0, |location| position(text, location));
    SqlError::syntax(format!("syntax error at or near \"{token}\"")).at(at)
}

/// Returns the place of a location among the characters of a text, counted from 1; 0 for none.
pub(crate) fn position(text: &str, location: Location) -> usize {
    if location.line == 0 {
        return 0;
    }
    text.get(..byte_of(text, location)).map_or(0, |before| before.chars().count() + 1)
}

fn byte_of(text: &str, location: Location) -> usize {
    let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = text.split_inclusive('\n').take(index(location.line));
    let line_start: usize = lines.map(str::len).sum();
    let line = text.get(line_start..).unwrap_or_default();
    line_start + line.char_indices().nth(index(location.column)).map_or(line.len(), |(at, _)| at)
}

fn rest_of(text: &str, location: Location) -> &str {
    text.get(byte_of(text, location)..).unwrap_or_default()
}
