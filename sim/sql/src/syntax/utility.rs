//! The statements that are read word by word: transactions, settings, locks and notifications.

use sqlparser::tokenizer::Token;

use crate::error::SqlError;
use crate::storage::lock::Mode;
use crate::storage::transaction::Isolation;

/// The modes of `BEGIN` and `SET TRANSACTION`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) is_read_only: Option<bool>,
}

/// A statement without expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Utility {
    Begin(Modes, &'static str),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    SetTransaction(Modes),
    SetDefaults(Modes),
    /// No value: the default.
    Set {
        name: String,
        value: Option<String>,
        is_local: bool,
    },
    Show(String),
    Reset(Option<String>),
    DiscardAll,
    Listen(String),
    Unlisten(Option<String>),
    Notify(String, String),
    Lock {
        tables: Vec<Vec<String>>,
        mode: Mode,
        is_nowait: bool,
    },
    Raise {
        level: String,
        message: String,
        code: Option<String>,
    },
    Deallocate,
}

/// A reader of words.
struct Words<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Words<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Consumes the words if they come next, whatever their case.
    fn eat(&mut self, words: &str) -> bool {
        let wanted: Vec<_> = words.split(' ').collect();
        let is_next = wanted.iter().enumerate().all(|(n, wanted)| {
            let token = self.tokens.get(self.at + n);
            token.is_some_and(|token| token.to_string().eq_ignore_ascii_case(wanted))
        });
        if is_next {
            self.at += wanted.len();
        }
        is_next
    }

    /// Reads a name or a value: a word, a string or a number.
    fn name(&mut self) -> Result<String, SqlError> {
        let token = self.peek().cloned();
        self.at += 1;
        match token {
            Some(Token::Word(word)) if word.quote_style.is_none() => Ok(word.value.to_lowercase()),
            Some(Token::Word(word)) => Ok(word.value),
            Some(Token::SingleQuotedString(text)) => Ok(text),
            Some(Token::Number(number, _)) => Ok(number),
            Some(Token::Minus) => self.name().map(|number| format!("-{number}")),
            other => Err(near(other.as_ref())),
        }
    }

    fn end(&self) -> Result<(), SqlError> {
        self.peek().map_or(Ok(()), |token| Err(near(Some(token))))
    }

    fn list(&mut self) -> Result<Vec<String>, SqlError> {
        let mut names = vec![self.name()?];
        while self.eat(",") {
            names.push(self.name()?);
        }
        Ok(names)
    }
}

/// Reports a token that no rule expects: 42601.
pub(crate) fn near(token: Option<&Token>) -> SqlError {
    match token {
        None | Some(Token::EOF) => SqlError::syntax("syntax error at end of input"),
        Some(token) => SqlError::syntax(format!("syntax error at or near \"{token}\"")),
    }
}

/// Reads a statement; `None` if it is another one, which the parser reads.
pub(crate) fn read(tokens: &[Token]) -> Result<Option<Utility>, SqlError> {
    let mut words = Words { tokens, at: 0 };
    let statement = match transaction(&mut words)? {
        Some(statement) => Some(statement),
        None => session(&mut words)?,
    };
    if statement.is_some() {
        words.end()?;
    }
    Ok(statement)
}

fn transaction(words: &mut Words<'_>) -> Result<Option<Utility>, SqlError> {
    Ok(Some(if words.eat("begin") {
        let _ = words.eat("work") || words.eat("transaction");
        Utility::Begin(modes(words)?, "BEGIN")
    } else if words.eat("start transaction") {
        Utility::Begin(modes(words)?, "START TRANSACTION")
    } else if words.eat("commit") || words.eat("end") {
        let _ = words.eat("work") || words.eat("transaction");
        Utility::Commit { chain: chain(words) }
    } else if words.eat("savepoint") {
        Utility::Savepoint(words.name()?)
    } else if words.eat("release") {
        words.eat("savepoint");
        Utility::Release(words.name()?)
    } else if words.eat("rollback") || words.eat("abort") {
        let _ = words.eat("work") || words.eat("transaction");
        if words.eat("to") {
            words.eat("savepoint");
            Utility::RollbackTo(words.name()?)
        } else {
            Utility::Rollback { chain: chain(words) }
        }
    } else {
        return Ok(None);
    }))
}

fn chain(words: &mut Words<'_>) -> bool {
    !words.eat("and no chain") && words.eat("and chain")
}

fn modes(words: &mut Words<'_>) -> Result<Modes, SqlError> {
    let mut modes = Modes::default();
    while words.peek().is_some() {
        if words.eat("isolation level") {
            let level = Isolation::ALL.iter().find(|(_, name)| words.eat(name));
            modes.isolation = Some(level.ok_or_else(|| near(words.peek()))?.0);
        } else if words.eat("read only") {
            modes.is_read_only = Some(true);
        } else if words.eat("read write") {
            modes.is_read_only = Some(false);
        } else if words.eat("deferrable") {
            return Err(SqlError::unknown("DEFERRABLE transactions"));
        } else if !words.eat("not deferrable") && !words.eat(",") {
            return Err(near(words.peek()));
        }
    }
    Ok(modes)
}

fn session(words: &mut Words<'_>) -> Result<Option<Utility>, SqlError> {
    Ok(Some(if words.eat("set") {
        set(words)?
    } else if words.eat("show") {
        Utility::Show(setting_name(words)?)
    } else if words.eat("reset") {
        let all = words.eat("all");
        Utility::Reset(if all { None } else { Some(setting_name(words)?) })
    } else if words.eat("discard") {
        if !words.eat("all") {
            return Err(SqlError::unknown("DISCARD of less than ALL"));
        }
        Utility::DiscardAll
    } else if words.eat("listen") {
        Utility::Listen(words.name()?)
    } else if words.eat("unlisten") {
        let all = words.eat("*");
        Utility::Unlisten(if all { None } else { Some(words.name()?) })
    } else if words.eat("notify") {
        let channel = words.name()?;
        let payload = if words.eat(",") { words.name()? } else { String::new() };
        Utility::Notify(channel, payload)
    } else if words.eat("lock") {
        lock(words)?
    } else if words.eat("do") {
        raise(words)?
    } else if words.eat("deallocate") {
        words.eat("prepare");
        words.name()?;
        Utility::Deallocate
    } else {
        return Ok(None);
    }))
}

fn set(words: &mut Words<'_>) -> Result<Utility, SqlError> {
    if words.eat("transaction") {
        return Ok(Utility::SetTransaction(modes(words)?));
    }
    if words.eat("session characteristics as transaction") {
        return Ok(Utility::SetDefaults(modes(words)?));
    }
    let is_local = words.eat("local");
    if !is_local {
        words.eat("session");
    }
    let name = setting_name(words)?;
    let is_zone = name == "timezone" && !words.eat("to") && !words.eat("=");
    if !is_zone && name != "timezone" && !words.eat("to") && !words.eat("=") {
        return Err(near(words.peek()));
    }
    if words.eat("default") {
        return Ok(Utility::Set { name, value: None, is_local });
    }
    Ok(Utility::Set { name, value: Some(words.list()?.join(", ")), is_local })
}

/// Reads a name, which may have a dot, or one of several words.
fn setting_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    if words.eat("time zone") {
        return Ok("timezone".to_owned());
    }
    if words.eat("transaction isolation level") {
        return Ok("transaction_isolation".to_owned());
    }
    let mut name = words.name()?;
    while words.eat(".") {
        name = format!("{name}.{}", words.name()?);
    }
    Ok(name)
}

fn lock(words: &mut Words<'_>) -> Result<Utility, SqlError> {
    words.eat("table");
    words.eat("only");
    let mut tables = Vec::new();
    loop {
        let mut name = vec![words.name()?];
        while words.eat(".") {
            name.push(words.name()?);
        }
        tables.push(name);
        if !words.eat(",") {
            break;
        }
    }
    let mut mode = Mode::AccessExclusive;
    if words.eat("in") {
        let found = Mode::ALL.iter().rev().find(|(_, name, _)| words.eat(&format!("{name} mode")));
        mode = found.ok_or_else(|| near(words.peek()))?.0;
    }
    Ok(Utility::Lock { tables, mode, is_nowait: words.eat("nowait") })
}

/// Reads `DO $$ BEGIN RAISE EXCEPTION '…'; END $$`, the only code that runs.
fn raise(words: &mut Words<'_>) -> Result<Utility, SqlError> {
    let refused = || {
        SqlError::unknown("PL/pgSQL, except DO $$ BEGIN RAISE EXCEPTION '…' [USING ERRCODE = '…']; END $$")
    };
    if words.eat("language") {
        words.name()?;
    }
    let body = match words.peek() {
        Some(Token::DollarQuotedString(body)) => body.value.clone(),
        Some(Token::SingleQuotedString(body)) => body.clone(),
        other => return Err(near(other)),
    };
    words.at += 1;
    if words.eat("language") {
        words.name()?;
    }
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let tokens = sqlparser::tokenizer::Tokenizer::new(&dialect, &body).tokenize().map_err(|_| refused())?;
    let tokens: Vec<_> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut body = Words { tokens: &tokens, at: 0 };
    if !body.eat("begin raise") {
        return Err(refused());
    }
    let levels = ["exception", "notice", "warning", "info", "log", "debug"];
    let level = levels.into_iter().find(|level| body.eat(level)).unwrap_or("exception");
    let Some(Token::SingleQuotedString(message)) = body.peek().cloned() else { return Err(refused()) };
    body.at += 1;
    let code = if body.eat("using errcode =") { Some(body.name()?) } else { None };
    let is_whole = (body.eat("; end ;") || body.eat("; end")) && body.peek().is_none();
    if !is_whole || message.replace("%%", "").contains('%') {
        return Err(refused());
    }
    Ok(Utility::Raise { level: level.to_owned(), message: message.replace("%%", "%"), code })
}
