//! The settings of a session.

use std::collections::BTreeMap;

use crate::error::SqlError;

/// The kind of values that a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// Milliseconds, with or without a unit.
    Millis,
    Bool,
    One(&'static [&'static str]),
    /// It can only be read.
    Fixed,
}

const LEVELS: Kind = Kind::One(&["read uncommitted", "read committed", "repeatable read", "serializable"]);
const MESSAGES: Kind = Kind::One(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
]);

/// Name, default and kind of each setting.
const SETTINGS: &[(&str, &str, Kind)] = &[
    ("application_name", "", Kind::Text),
    ("bytea_output", "hex", Kind::One(&["hex"])),
    ("client_encoding", "UTF8", Kind::Text),
    ("client_min_messages", "notice", MESSAGES),
    ("datestyle", "ISO, MDY", Kind::Text),
    ("deadlock_timeout", "1s", Kind::Millis),
    ("default_transaction_isolation", "read committed", LEVELS),
    ("default_transaction_read_only", "off", Kind::Bool),
    ("extra_float_digits", "1", Kind::Text),
    ("idle_in_transaction_session_timeout", "0", Kind::Millis),
    ("idle_session_timeout", "0", Kind::Millis),
    ("integer_datetimes", "on", Kind::Fixed),
    ("intervalstyle", "postgres", Kind::One(&["postgres"])),
    ("is_superuser", "on", Kind::Fixed),
    ("lock_timeout", "0", Kind::Millis),
    ("max_connections", "100", Kind::Fixed),
    ("search_path", "\"$user\", public", Kind::Text),
    ("server_encoding", "UTF8", Kind::Fixed),
    ("server_version", "15.18", Kind::Fixed),
    ("server_version_num", "150018", Kind::Fixed),
    ("session_authorization", "postgres", Kind::Fixed),
    ("standard_conforming_strings", "on", Kind::One(&["on"])),
    ("statement_timeout", "0", Kind::Millis),
    (
        "synchronous_commit",
        "on",
        Kind::One(&["on", "off", "local", "remote_write", "remote_apply", "true", "false"]),
    ),
    ("tcp_keepalives_idle", "0", Kind::Text),
    ("tcp_keepalives_interval", "0", Kind::Text),
    ("tcp_user_timeout", "0", Kind::Text),
    ("timezone", "UTC", Kind::Text),
    ("transaction_isolation", "read committed", LEVELS),
    ("transaction_read_only", "off", Kind::Bool),
];

/// The values that differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The values with which the session began: those of the server and of the first packet.
    base: BTreeMap<String, String>,
    /// The values that statements have set since.
    own: BTreeMap<String, String>,
}

fn find(name: &str) -> Option<&'static (&'static str, &'static str, Kind)> {
    SETTINGS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}

/// Makes the error of a setting that does not exist: 42704.
pub(crate) fn unrecognised(name: &str) -> SqlError {
    SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

impl Settings {
    /// Returns the value as `SHOW` prints it.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        let set = self.own.get(&name).or_else(|| self.base.get(&name)).cloned();
        set.or_else(|| find(&name).map(|(_, default, _)| (*default).to_owned()))
    }

    /// Returns a setting in milliseconds.
    pub(crate) fn millis(&self, name: &str) -> u64 {
        self.get(name).and_then(|text| millis(&text)).unwrap_or(0)
    }

    /// Returns the schemas of the search path.
    pub(crate) fn search_path(&self) -> Vec<String> {
        let path = self.get("search_path").unwrap_or_default();
        let schemas = path.split(',').map(|schema| schema.trim().trim_matches('"').to_owned());
        schemas.filter(|schema| schema != "$user" && !schema.is_empty()).collect()
    }

    /// Sets a value with which the session begins; `RESET` goes back to it.
    pub(crate) fn set_base(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let name = name.to_lowercase();
        let value = accepted(&name, value)?;
        self.own.remove(&name);
        self.base.insert(name, value);
        Ok(())
    }

    /// Sets a value; none goes back to the one with which the session began.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let name = name.to_lowercase();
        let is_custom = find(&name).is_none();
        let value = match value {
            Some(value) => accepted(&name, value)?,
            // PostgreSQL keeps the name of a custom setting, with an empty value.
            None if is_custom && !self.base.contains_key(&name) => accepted(&name, "")?,
            None => {
                self.own.remove(&name);
                return Ok(());
            }
        };
        self.own.insert(name, value);
        Ok(())
    }

    /// Goes back to the values with which the session began.
    pub(crate) fn reset_all(&mut self) {
        self.own.clear();
    }
}

/// Returns the value as it is kept; a name with a point is one of the client's own.
fn accepted(name: &str, value: &str) -> Result<String, SqlError> {
    match find(name) {
        Some((_, _, kind)) => checked(name, value, *kind),
        None if name.contains('.') => Ok(value.to_owned()),
        None => Err(unrecognised(name)),
    }
}

/// Returns the value as it is kept.
fn checked(name: &str, value: &str, kind: Kind) -> Result<String, SqlError> {
    let wrong = || SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
    match kind {
        Kind::Fixed => Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be changed"))),
        Kind::Millis => millis(value).map(in_units).ok_or_else(|| {
            let hint = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
            if value.starts_with(|c: char| c.is_ascii_digit()) { wrong().hint(hint) } else { wrong() }
        }),
        Kind::Bool => match crate::value::Value::parse(crate::value::types::Type::Bool, value) {
            Ok(crate::value::Value::Bool(true)) => Ok("on".to_owned()),
            Ok(_) => Ok("off".to_owned()),
            Err(_) => Err(SqlError::new("22023", format!("parameter \"{name}\" requires a Boolean value"))),
        },
        Kind::One(values) => {
            let value = value.to_lowercase();
            let is_known = values.contains(&value.as_str());
            if is_known {
                Ok(value)
            } else {
                Err(wrong().hint(format!("Available values: {}.", values.join(", "))))
            }
        }
        Kind::Text if name == "timezone" => {
            let is_utc = ["utc", "etc/utc", "gmt", "0", "z"].contains(&value.to_lowercase().as_str());
            if is_utc {
                Ok(value.to_owned())
            } else {
                Err(SqlError::unknown(format_args!("the time zone \"{value}\"; take UTC")))
            }
        }
        Kind::Text if name == "client_encoding" => {
            let is_utf8 = ["utf8", "utf-8", "unicode"].contains(&value.to_lowercase().as_str());
            if is_utf8 {
                Ok("UTF8".to_owned())
            } else {
                Err(SqlError::unknown(format_args!("the encoding \"{value}\"; take UTF8")))
            }
        }
        Kind::Text if name == "datestyle" => {
            if value.to_lowercase().starts_with("iso") {
                Ok("ISO, MDY".to_owned())
            } else {
                Err(SqlError::unknown(format_args!("the DateStyle \"{value}\"; take ISO")))
            }
        }
        Kind::Text => Ok(value.to_owned()),
    }
}

/// Reads a length of time: `500`, `500ms`, `2s`, `1 min`.
fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    let millis = (number * factor).round_ties_even();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range")]
    (0.0..=2_147_483_647.0).contains(&millis).then_some(millis as u64)
}

/// Prints a length of time in the largest unit that divides it.
fn in_units(millis: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    let unit = units.into_iter().find(|(unit, _)| millis != 0 && millis.is_multiple_of(*unit));
    unit.map_or("0".to_owned(), |(unit, name)| format!("{}{name}", millis / unit))
}
