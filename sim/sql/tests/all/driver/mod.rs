//! Runs scripts, and writes the answers as `tests/record` does.

use std::collections::{BTreeMap, BTreeSet};

use sql::{Database, Fields, Now, Prepared, SessionId, SqlError, Step, Type, Value};

/// A statement with its session and its parameters.
struct Line {
    name: String,
    parameters: Option<Vec<serde_json::Value>>,
    sql: String,
    text: Vec<String>,
}

/// The statements of a query that are still to run.
struct Rest {
    statements: Vec<sql::Parsed>,
    parameters: Option<Vec<serde_json::Value>>,
    prepared: Option<(Prepared, Vec<Value>)>,
    /// Answers that the server has not sent yet.
    header: Vec<String>,
}

/// A database with named sessions.
#[derive(Default)]
pub(crate) struct Driver {
    database: Database,
    sessions: BTreeMap<String, SessionId>,
    waiting: BTreeMap<SessionId, Rest>,
    clock: i64,
}

/// Returns the lines that differ, each with its context.
pub(crate) fn differences(recorded: &str, answered: &str) -> String {
    let blocks = |text: &str| -> Vec<String> {
        let mut blocks: Vec<String> = vec![String::new()];
        for line in text.lines() {
            if line.starts_with("> ") {
                blocks.push(String::new());
            }
            if !line.starts_with('#') && !line.is_empty() {
                let block = blocks.last_mut().unwrap();
                block.push_str(line);
                block.push('\n');
            }
        }
        blocks
    };
    let (recorded, answered) = (blocks(recorded), blocks(answered));
    let mut text = String::new();
    for (old, new) in recorded.iter().zip(&answered) {
        if !is_same(old, new) {
            let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
            for line in &old {
                let sign = if new.contains(line) { ' ' } else { '-' };
                text.push_str(&format!("  {sign} {line}\n"));
            }
            for line in new.iter().filter(|line| !old.contains(line)) {
                text.push_str(&format!("  + {line}\n"));
            }
            if old.iter().all(|line| new.contains(line)) && new.len() == old.len() {
                text.push_str("    (in another order)\n");
            }
        }
    }
    if recorded.len() != answered.len() {
        text.push_str("  the numbers of statements differ\n");
    }
    text
}

/// Compares the answers to one statement. A position may be left out, but not be another one; and so may the
/// guess of a column's name.
fn is_same(recorded: &str, answered: &str) -> bool {
    let may_lack =
        |line: &&str| line.starts_with("  position: ") || line.starts_with("  hint: Perhaps you meant");
    let answered: Vec<_> = answered.lines().collect();
    let kept: Vec<_> = recorded.lines().filter(|line| !may_lack(line) || answered.contains(line)).collect();
    kept == answered
}

fn lines(script: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut continues = false;
    for line in script.lines() {
        if let Some(rest) = line.strip_prefix("> ") {
            let (name, parameters, sql) = match rest.split_once("]: ").filter(|(head, _)| head.contains(" ["))
            {
                Some((head, sql)) => {
                    let (name, list) = head.split_once(' ').unwrap();
                    (name, Some(serde_json::from_str(&format!("{list}]")).unwrap()), sql)
                }
                None => {
                    let (name, sql) = rest.split_once(": ").unwrap();
                    (name, None, sql)
                }
            };
            let (name, sql) = (name.to_owned(), sql.to_owned());
            lines.push(Line { name, parameters, sql, text: vec![line.to_owned()] });
            continues = true;
        } else if let (true, Some(more)) = (continues, line.strip_prefix("    ")) {
            let last = lines.last_mut().unwrap();
            last.sql.push('\n');
            last.sql.push_str(more);
            last.text.push(line.to_owned());
        } else {
            continues = false;
        }
    }
    lines
}

impl Driver {
    /// Runs a script; returns it with the answers.
    pub(crate) fn run(&mut self, script: &str) -> String {
        let mut out = Vec::new();
        for line in lines(script) {
            out.extend(line.text.clone());
            let session = match self.sessions.get(&line.name) {
                Some(session) => *session,
                None => {
                    let session = self.database.connect();
                    self.sessions.insert(line.name.clone(), session);
                    session
                }
            };
            self.start(session, line, &mut out);
            self.go_on(session, &mut out);
        }
        out.join("\n") + "\n"
    }

    fn start(&mut self, session: SessionId, line: Line, out: &mut Vec<String>) {
        if line.parameters.is_some() {
            match self.database.prepare(session, &line.sql, &[]) {
                Ok(prepared) => {
                    let mut header = Vec::new();
                    if !prepared.parameters.is_empty() {
                        let oids = prepared.parameters.iter().map(|r#type| r#type.oid().to_string());
                        header.push(format!("? {}", oids.collect::<Vec<_>>().join(", ")));
                    }
                    describe(&prepared, &mut header);
                    let values = line.parameters.clone().unwrap();
                    let read =
                        prepared.parameters.iter().zip(values).map(|(r#type, v)| parameter(*r#type, &v));
                    match read.collect::<Result<Vec<_>, _>>() {
                        Ok(values) => {
                            let parameters = line.parameters;
                            let prepared = Some((prepared, values));
                            let rest = Rest { statements: Vec::new(), parameters, prepared, header };
                            self.waiting.insert(session, rest);
                            self.resume(session, out);
                        }
                        Err(error) => {
                            self.database.fail(session);
                            out.extend(header);
                            report("!", &error, out);
                        }
                    }
                }
                Err(error) => report("!", &error, out),
            }
            return;
        }
        match Database::statements(&line.sql) {
            Ok(statements) => {
                if statements.is_empty() {
                    out.push("=".to_owned());
                }
                let rest = Rest { statements, parameters: None, prepared: None, header: Vec::new() };
                self.waiting.insert(session, rest);
                self.resume(session, out);
            }
            Err(error) => {
                self.database.fail(session);
                report("!", &error, out);
            }
        }
    }

    /// Runs the statements of a session until one waits, or all are done.
    fn resume(&mut self, session: SessionId, out: &mut Vec<String>) {
        let Some(mut rest) = self.waiting.remove(&session) else { return };
        loop {
            if rest.prepared.is_none() {
                if rest.statements.is_empty() {
                    break;
                }
                let parsed = rest.statements.remove(0);
                match self.database.prepare_parsed(session, &parsed, &[]) {
                    Ok(prepared) => rest.prepared = Some((prepared, Vec::new())),
                    Err(error) => {
                        report("!", &error, out);
                        return;
                    }
                }
            }
            let (prepared, values) = rest.prepared.clone().unwrap();
            self.clock += 1000;
            let now = Now { unix_micros: 1_800_000_000_000_000 + self.clock };
            match self.database.run(session, &prepared, &values, now) {
                Step::Done { tag, rows, notices } => {
                    out.append(&mut rest.header);
                    rest.prepared = None;
                    if rest.parameters.is_none() {
                        describe(&prepared, out);
                    }
                    for notice in &notices {
                        report(&format!("* {}", notice.severity), notice, out);
                    }
                    out.extend(rows.iter().map(|row| shown(row)));
                    let synced =
                        if rest.statements.is_empty() { self.database.sync(session) } else { Ok(()) };
                    if let Err(error) = synced {
                        report("!", &error, out);
                        return;
                    }
                    out.push(format!("= {tag}").trim_end().to_owned());
                }
                Step::Failed(error) => {
                    out.append(&mut rest.header);
                    report("!", &error, out);
                    return;
                }
                Step::Blocked { .. } => {
                    self.waiting.insert(session, rest);
                    return;
                }
                Step::Sleeping { until } => self.clock = until.unix_micros - 1_800_000_000_000_000,
            }
        }
    }

    /// Runs the sessions whose waits are over, and ends deadlocks; the sessions are reported by their names.
    fn go_on(&mut self, current: SessionId, out: &mut Vec<String>) {
        let mut answers: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        let circle = self.database.deadlock(current).filter(|_| self.waiting.contains_key(&current));
        if let Some(circle) = circle {
            let error = self.database.deadlock_error(&circle);
            let Step::Failed(error) = self.database.cancel(current, error) else { unreachable!() };
            self.waiting.remove(&current);
            report("!", &error, out);
        }
        loop {
            let woken = self.database.take_woken();
            if woken.is_empty() {
                break;
            }
            for session in woken {
                let mut lines = Vec::new();
                self.resume(session, &mut lines);
                answers.entry(session).or_default().extend(lines);
            }
        }
        for notification in self.database.take_notifications() {
            let line = format!("@ {}: {}", notification.channel, notification.payload);
            if notification.to == current {
                out.push(line);
            }
        }
        if self.waiting.contains_key(&current) {
            out.push("... waits".to_owned());
        }
        let names: BTreeSet<_> = self.sessions.iter().map(|(name, id)| (name.clone(), *id)).collect();
        for (name, id) in names {
            if let Some(lines) = answers.get(&id).filter(|lines| !lines.is_empty()) {
                out.push(format!("{name}:"));
                out.extend(lines.clone());
            }
        }
    }
}

fn parameter(r#type: Type, value: &serde_json::Value) -> Result<Value, SqlError> {
    match value {
        serde_json::Value::Null => Ok(Value::Null),
        serde_json::Value::String(text) => Value::parse(r#type, text),
        other => Value::parse(r#type, &other.to_string()),
    }
}

fn describe(prepared: &Prepared, out: &mut Vec<String>) {
    if let Some(columns) = &prepared.columns {
        let columns = columns.iter().map(|column| format!("{}:{}", column.name, column.r#type.oid()));
        let line = format!("| {}", columns.collect::<Vec<_>>().join(" | "));
        out.push(line.trim_end().to_owned());
    }
}

fn shown(row: &[Value]) -> String {
    let texts = row.iter().map(|value| match value.text() {
        None => "NULL".to_owned(),
        Some(text) => text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t"),
    });
    let line = format!("| {}", texts.collect::<Vec<_>>().join(" | "));
    line.trim_end().to_owned()
}

fn report(mark: &str, error: &SqlError, out: &mut Vec<String>) {
    let Fields { code, message, detail, hint, position, schema, table, column, constraint, .. } = &**error;
    out.push(masked(&format!("{mark} {code}: {message}")));
    let position = position.map(|position| position.to_string());
    let fields = [
        ("detail", detail),
        ("hint", hint),
        ("position", &position),
        ("schema", schema),
        ("table", table),
        ("column", column),
        ("constraint", constraint),
    ];
    for (name, value) in fields {
        for line in value.iter().flat_map(|value| value.lines()) {
            out.push(masked(&format!("  {name}: {line}")));
        }
    }
}

/// Replaces numbers that differ from run to run.
fn masked(line: &str) -> String {
    let mut masked = String::new();
    let words = ["Process ", "by process ", "transaction ", "relation ", "database ", "lock ["];
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        masked.push(c);
        rest = &rest[c.len_utf8()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 && words.iter().any(|word| masked.ends_with(word)) {
            masked.push('N');
            rest = &rest[digits..];
        }
    }
    masked
}
