//! The depth of a statement's tree, computed from its tokens.
//!
//! The parser makes a tree of `a OR b OR c …` whose depth is the number of operators, and a tree that is too
//! deep can't even be dropped without the stack overflowing: so it is measured before it is made.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::error::SqlError;

/// The cost of an operator, whose operands are resolved and computed on the stack.
const OPERATOR: usize = 16;
/// The cost of `AND` and `OR`, which are resolved and computed in a loop: only the parser's tree is deep.
const CONNECTIVE: usize = 4;
/// The most that a statement may cost.
const COST_MAX: usize = 4000;

/// The tokens between two parentheses, counted.
#[derive(Default)]
struct Level {
    /// The operators since the last beginning of an operand of `AND` or `OR`, and the most of them.
    chain: usize,
    chain_max: usize,
    connectives: usize,
    connectives_max: usize,
    /// Operators between queries.
    sets: usize,
    /// True if the last word was `DISTINCT`: the `FROM` behind it belongs to `IS DISTINCT FROM`.
    was_distinct: bool,
    /// The most that one pair of parentheses within it costs.
    inner: usize,
}

impl Level {
    fn end_operand(&mut self) {
        self.chain_max = self.chain_max.max(self.chain);
        self.chain = 0;
    }

    fn end_expression(&mut self) {
        self.end_operand();
        self.connectives_max = self.connectives_max.max(self.connectives);
        self.connectives = 0;
    }

    /// Returns the cost if the longest of all were within each other: it may be less, but not more.
    fn cost(&mut self) -> usize {
        self.end_expression();
        let operators = self.chain_max + self.sets + 1;
        operators * OPERATOR + self.connectives_max * CONNECTIVE + self.inner
    }

    fn read(&mut self, token: &Token) {
        let was_distinct = std::mem::take(&mut self.was_distinct);
        match token {
            Token::Word(word) if word.quote_style.is_some() => {}
            Token::Word(word) => match word.keyword {
                Keyword::AND | Keyword::OR => {
                    self.connectives += 1;
                    self.end_operand();
                }
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => self.sets += 1,
                Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::AT
                | Keyword::COLLATE
                | Keyword::NOTNULL => self.chain += 1,
                Keyword::DISTINCT => self.was_distinct = true,
                Keyword::FROM if was_distinct => {}
                keyword if begins_expression(keyword) => self.end_expression(),
                _ => {}
            },
            Token::Comma => self.end_expression(),
            token if is_operand(token) => {}
            _ => self.chain += 1,
        }
    }
}

/// Returns whether an expression after the word has nothing to do with those before it.
fn begins_expression(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::SELECT
            | Keyword::FROM
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::VALUES
            | Keyword::SET
            | Keyword::ON
            | Keyword::RETURNING
    )
}

fn is_operand(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Period
    )
}

/// Refuses a statement whose tree would be too deep: 54001.
pub(super) fn check(tokens: &[Token]) -> Result<(), SqlError> {
    let mut levels = vec![Level::default()];
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket => levels.push(Level::default()),
            Token::RParen | Token::RBracket if levels.len() > 1 => {
                let cost = levels.pop().map_or(0, |mut level| level.cost());
                if let Some(level) = levels.last_mut() {
                    level.inner = level.inner.max(cost);
                    // An index is an operator, and so may be a call.
                    level.chain += usize::from(*token == Token::RBracket);
                }
            }
            token => {
                if let Some(level) = levels.last_mut() {
                    level.read(token);
                }
            }
        }
    }
    let cost: usize = levels.iter_mut().map(Level::cost).sum();
    if cost > COST_MAX { Err(SqlError::stack_depth()) } else { Ok(()) }
}
