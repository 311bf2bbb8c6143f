//! Points in time: microseconds and days since 2000-01-01. The time zone of every session is UTC.

use super::Interval;
use super::types::Type;
use crate::error::SqlError;

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH: i64 = EPOCH_DAYS * DAY;
/// The first and the last point in time that PostgreSQL knows.
const RANGE: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// Returns year, month and day. Source: Howard Hinnant, "chrono-compatible low-level date algorithms".
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + EPOCH_DAYS + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the day of a date that exists.
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * 146_097 + day_of_era - 719_468 - EPOCH_DAYS
}

pub(crate) fn days_in(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    day_of(next_year, next, 1) - day_of(year, month, 1)
}

/// Adds an interval: months first, then days, then the time. `None` out of range.
pub(crate) fn add(micros: i64, interval: Interval) -> Option<i64> {
    if micros == i64::MIN || micros == i64::MAX {
        return Some(micros);
    }
    let mut day = micros.div_euclid(DAY);
    if interval.months != 0 {
        let (year, month, of_month) = civil(day);
        let months = year * 12 + month - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        day = day_of(year, month, of_month.min(days_in(year, month)));
    }
    let day = day.checked_add(i64::from(interval.days))?;
    let time = micros.rem_euclid(DAY).checked_add(interval.micros)?;
    day.checked_mul(DAY)?.checked_add(time).filter(|sum| RANGE.contains(sum))
}

fn infinity(is_last: bool) -> String {
    if is_last { "infinity" } else { "-infinity" }.to_owned()
}

pub(super) fn text_of_days(days: i32) -> String {
    if days == i32::MIN || days == i32::MAX {
        return infinity(days == i32::MAX);
    }
    let (year, month, day) = civil(i64::from(days));
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    format!("{year:04}-{month:02}-{day:02}{era}")
}

pub(super) fn text(micros: i64) -> String {
    zoned(micros, "")
}

pub(super) fn text_with_zone(micros: i64) -> String {
    zoned(micros, "+00")
}

fn zoned(micros: i64, zone: &str) -> String {
    if micros == i64::MIN || micros == i64::MAX {
        return infinity(micros == i64::MAX);
    }
    let date = text_of_days(i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX));
    let time = time_text(micros.rem_euclid(DAY).unsigned_abs());
    match date.strip_suffix(" BC") {
        Some(date) => format!("{date} {time}{zone} BC"),
        None => format!("{date} {time}{zone}"),
    }
}

/// Prints `hh:mm:ss`, with the fraction of the second if there is one.
pub(super) fn time_text(micros: u64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    let fraction = fraction.trim_end_matches('0');
    format!("{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Reads `[-]hh:mm[:ss[.ffffff]]` as microseconds.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = rest.split(':');
    let (hours, minutes) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
    let seconds = parts.next().unwrap_or("0");
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds: u32 = seconds.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let is_time = minutes < 60 && seconds <= 60 && parts.next().is_none();
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
    is_time.then_some(sign * (seconds * SECOND + i64::from(fraction)))
}

fn wrong(r#type: Type, text: &str) -> SqlError {
    SqlError::new("22007", format!("invalid input syntax for type {}: \"{text}\"", r#type.name()))
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new("22008", format!("date/time field value out of range: \"{text}\""))
}

/// Reads `2026-11-27 12:00:00.5+00`, ISO 8601, `infinity` and `epoch`.
pub(super) fn parse(text: &str, r#type: Type) -> Result<i64, SqlError> {
    let trimmed = text.trim();
    match trimmed.to_ascii_lowercase().as_str() {
        "infinity" => return Ok(i64::MAX),
        "-infinity" => return Ok(i64::MIN),
        "epoch" => return Ok(-EPOCH),
        word @ ("now" | "today" | "tomorrow" | "yesterday") => {
            return Err(SqlError::unknown(format_args!("the {} '{word}'", r#type.name())));
        }
        _ => {}
    }
    let (date, rest) = trimmed.split_at_checked(10).unwrap_or((trimmed, ""));
    let day = parse_date(date, text, r#type)?;
    let rest = rest.trim_start_matches(['T', 't', ' ']);
    let zone_at = rest.find(['+', '-', 'Z', 'z', ' ']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let time = if time.is_empty() { Some(0) } else { parse_time(time).filter(|time| *time <= DAY) };
    let zone = parse_zone(zone.trim()).ok_or_else(|| wrong(r#type, text))?;
    let time = time.ok_or_else(|| wrong(r#type, text))?;
    let zone = if r#type == Type::Timestamptz { zone } else { 0 };
    let micros = day.checked_mul(DAY).and_then(|day| day.checked_add(time - zone));
    let range = || SqlError::new("22008", format!("timestamp out of range: \"{text}\""));
    micros.filter(|micros| RANGE.contains(micros)).ok_or_else(range)
}

/// Reads the offset of a time zone, in microseconds; no zone is UTC.
fn parse_zone(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") || zone.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let digits = zone.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None => digits.split_at_checked(2).unwrap_or((digits, "")),
    };
    let minutes = if minutes.is_empty() { "0" } else { minutes };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let offset = (hours * 60 + minutes) * 60 * SECOND;
    Some(if zone.starts_with('-') { -offset } else { offset })
}

fn parse_date(date: &str, text: &str, r#type: Type) -> Result<i64, SqlError> {
    let mut parts = date.split('-').map(|part| part.parse::<u32>().ok().map(i64::from));
    let mut next = || parts.next().flatten().ok_or_else(|| wrong(r#type, text));
    let (year, month, day) = (next()?, next()?, next()?);
    let is_date = year > 0 && (1..=12).contains(&month) && day >= 1 && day <= days_in(year, month);
    if is_date {
        return Ok(day_of(year, month, day));
    }
    let is_in_field = (1..=12).contains(&month) && (1..=31).contains(&day);
    let hint = "Perhaps you need a different \"datestyle\" setting.";
    Err(if is_in_field { out_of_range(text) } else { out_of_range(text).hint(hint) })
}

pub(super) fn parse_days(text: &str) -> Result<i32, SqlError> {
    let micros = parse(text, Type::Date)?;
    Ok(days_of_micros(micros))
}

/// Returns the date of a point in time.
pub(crate) fn days_of_micros(micros: i64) -> i32 {
    match micros {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX),
    }
}

/// Returns the first moment of a date.
pub(crate) fn micros_of_days(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        _ => i64::from(days) * DAY,
    }
}
