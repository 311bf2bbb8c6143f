//! The audit log of manual changes: a line of JSON before each, and one after it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::clock;
use crate::systems::System;

/// A file of records. A record is on disk once it is written.
pub struct AuditLog {
    file: File,
    path: PathBuf,
}

/// The audit log can't be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; give another file to --audit: nothing is changed without a record")]
pub struct AuditError {
    path: String,
    source: io::Error,
}

/// The time of a record, beside the change that it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before the change: if no other record follows, it may have happened or not.
    Before,
    /// After it.
    After,
}

/// A record.
#[derive(Clone, Debug, Serialize)]
pub struct Entry<'a> {
    /// The command, such as `clear`.
    pub command: &'a str,
    /// The time of the record beside the change.
    pub stage: Stage,
    /// The name of the key.
    pub key: &'a str,
    /// The lock system.
    pub system: System,
    /// The servers of the lock.
    pub servers: &'a [String],
    /// The state found before the change, and the change; after it, the outcome.
    #[serde(flatten)]
    pub details: Value,
}

/// A record with its author and time.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    who: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sudo_user: Option<String>,
    #[serde(flatten)]
    entry: &'a Entry<'a>,
}

impl AuditLog {
    /// Opens the file, which is created if it does not exist; records are appended.
    ///
    /// # Errors
    ///
    /// [`AuditError`].
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let failed = |source| AuditError { path: path.display().to_string(), source };
        Ok(Self { file: file.map_err(failed)?, path: path.to_owned() })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record with the user, the host and the time, and syncs it to disk.
    ///
    /// # Errors
    ///
    /// [`AuditError`]; the record may be incomplete.
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<(), AuditError> {
        let line =
            Line { at: utc(clock::wall_unix_micros()), who: who(), sudo_user: variable("SUDO_USER"), entry };
        let written = serde_json::to_string(&line).map_err(io::Error::other);
        let written = written.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()));
        // A record of another size needs the file's new length on disk, too: `sync_all`.
        let synced = written.and_then(|()| self.file.sync_all());
        synced.map_err(|source| AuditError { path: self.path.display().to_string(), source })
    }
}

/// Returns the user of the operating system and its host: `user@host`.
fn who() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    // A user of a directory service is not in the file.
    let user = user_of(&users, uid).unwrap_or_else(|| format!("uid {uid}"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| variable("HOSTNAME")).unwrap_or_default();
    format!("{user}@{}", host.trim())
}

fn user_of(users: &str, uid: u32) -> Option<String> {
    let user = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    user.filter(|user| !user.is_empty())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes a time in RFC 3339, to the millisecond, in UTC.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn utc(unix_micros: u64) -> String {
    let (seconds, millis) = (unix_micros / 1_000_000, unix_micros / 1000 % 1000);
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March there.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(1_709_251_199_999_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(utc(4_102_444_800_000_000), "2100-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_user_is_found_by_its_number() {
        let users = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(user_of(users, 1000).as_deref(), Some("alice"));
        assert_eq!(user_of(users, 100), None);
    }

    #[test]
    fn a_file_that_cannot_be_opened_names_the_flag() {
        let error = AuditLog::open(Path::new("/no/such/folder/audit.jsonl")).err().unwrap().to_string();
        assert!(error.contains("/no/such/folder/audit.jsonl") && error.contains("--audit"), "{error}");
    }
}
