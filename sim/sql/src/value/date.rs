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
/// The points in time that PostgreSQL knows.
const RANGE: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// The days that it knows: those of dates go further than those of points in time.
const DAYS: std::ops::Range<i64> = -2_451_545..2_145_031_949;
/// The hours of the largest offset of a time zone.
const ZONE_HOURS_MAX: i64 = 15;

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

/// Reads `[-]hh:mm[:ss[.ffffff]]` as microseconds, which may be more than an `i64` has.
pub(super) fn parse_time(text: &str) -> Option<i128> {
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
    let seconds = i128::from(hours) * 3600 + i128::from(minutes) * 60 + i128::from(seconds);
    is_time.then_some(sign * (seconds * i128::from(SECOND) + i128::from(fraction)))
}

fn wrong(r#type: Type, text: &str) -> SqlError {
    SqlError::new("22007", format!("invalid input syntax for type {}: \"{text}\"", r#type.name()))
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new("22008", format!("date/time field value out of range: \"{text}\""))
}

/// Makes the error of a value beyond the range of its type: 22008.
fn beyond(what: &str) -> SqlError {
    SqlError::new("22008", format!("{what} out of range"))
}

/// Returns the days if a date may have them: infinity, or a day that PostgreSQL knows.
pub(crate) fn in_range(days: i32) -> Result<i32, SqlError> {
    let is_infinite = days == i32::MIN || days == i32::MAX;
    if is_infinite || DAYS.contains(&i64::from(days)) { Ok(days) } else { Err(beyond("date")) }
}

/// Returns the microseconds if a timestamp may have them: infinity, or a time that PostgreSQL knows.
pub(crate) fn timestamp_in_range(micros: i64) -> Result<i64, SqlError> {
    let is_infinite = micros == i64::MIN || micros == i64::MAX;
    if is_infinite || RANGE.contains(&micros) { Ok(micros) } else { Err(beyond("timestamp")) }
}

/// The parts of a text: the day, the time of the day and the offset of the time zone.
struct Parts {
    day: i64,
    time: i64,
    zone: i64,
}

/// Reads `infinity` and `epoch`, as microseconds.
fn parse_word(text: &str, r#type: Type) -> Result<Option<i64>, SqlError> {
    Ok(match text.trim().to_ascii_lowercase().as_str() {
        "infinity" => Some(i64::MAX),
        "-infinity" => Some(i64::MIN),
        "epoch" => Some(-EPOCH),
        word @ ("now" | "today" | "tomorrow" | "yesterday") => {
            return Err(SqlError::unknown(format_args!("the {} '{word}'", r#type.name())));
        }
        _ => None,
    })
}

/// Reads `2026-11-27 12:00:00.5+00`, ISO 8601, and `0044-03-15 BC`: whatever [`text`] prints.
fn parse_parts(text: &str, r#type: Type) -> Result<Parts, SqlError> {
    let trimmed = text.trim();
    let before_christ = trimmed.len().checked_sub(3).and_then(|at| trimmed.split_at_checked(at));
    let before_christ = before_christ.filter(|(_, era)| era.eq_ignore_ascii_case(" BC"));
    let (trimmed, is_before_christ) = before_christ.map_or((trimmed, false), |(rest, _)| (rest, true));
    let mut dashes = 0;
    let is_end = |c: char| {
        dashes += usize::from(c == '-');
        dashes > 2 || !(c == '-' || c.is_ascii_digit())
    };
    let (date, rest) = trimmed.split_at(trimmed.find(is_end).unwrap_or(trimmed.len()));
    let day = parse_date(date, is_before_christ, text, r#type)?;
    let rest = rest.trim_start_matches(['T', 't', ' ']);
    let zone_at = rest.find(['+', '-', 'Z', 'z', ' ']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let time = if time.is_empty() { Some(0) } else { parse_time(time) };
    let time = time.and_then(|time| i64::try_from(time).ok()).filter(|time| *time <= DAY);
    let time = time.ok_or_else(|| wrong(r#type, text))?;
    let zone = parse_zone(zone.trim(), text, r#type)?;
    Ok(Parts { day, time, zone })
}

/// Reads a point in time.
pub(super) fn parse(text: &str, r#type: Type) -> Result<i64, SqlError> {
    if let Some(micros) = parse_word(text, r#type)? {
        return Ok(micros);
    }
    let Parts { day, time, zone } = parse_parts(text, r#type)?;
    let zone = if r#type == Type::Timestamptz { zone } else { 0 };
    let micros = day.checked_mul(DAY).and_then(|day| day.checked_add(time - zone));
    let range = || SqlError::new("22008", format!("timestamp out of range: \"{text}\""));
    micros.filter(|micros| RANGE.contains(micros)).ok_or_else(range)
}

/// Reads the offset of a time zone, in microseconds; no zone is UTC.
fn parse_zone(zone: &str, text: &str, r#type: Type) -> Result<i64, SqlError> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") || zone.eq_ignore_ascii_case("utc") {
        return Ok(0);
    }
    let digits = zone.strip_prefix(['+', '-']).ok_or_else(|| wrong(r#type, text))?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None => digits.split_at_checked(2).unwrap_or((digits, "")),
    };
    let minutes = if minutes.is_empty() { "0" } else { minutes };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return Err(wrong(r#type, text));
    }
    let part = |part: &str, most: i64| part.parse().ok().filter(|number: &i64| *number <= most);
    let (Some(hours), Some(minutes)) = (part(hours, ZONE_HOURS_MAX), part(minutes, 59)) else {
        return Err(SqlError::new("22009", format!("time zone displacement out of range: \"{text}\"")));
    };
    let offset = (hours * 60 + minutes) * 60 * SECOND;
    Ok(if zone.starts_with('-') { -offset } else { offset })
}

fn parse_date(date: &str, is_before_christ: bool, text: &str, r#type: Type) -> Result<i64, SqlError> {
    let mut parts = date.split('-').map(|part| part.parse::<u32>().ok().map(i64::from));
    let mut next = || parts.next().flatten().ok_or_else(|| wrong(r#type, text));
    let (named, month, day) = (next()?, next()?, next()?);
    // The year before the first is the first before Christ.
    let year = if is_before_christ { 1 - named } else { named };
    let is_date = named > 0 && (1..=12).contains(&month) && day >= 1 && day <= days_in(year, month);
    if is_date {
        return Ok(day_of(year, month, day));
    }
    let is_in_field = (1..=12).contains(&month) && (1..=31).contains(&day);
    let hint = "Perhaps you need a different \"datestyle\" setting.";
    Err(if is_in_field { out_of_range(text) } else { out_of_range(text).hint(hint) })
}

/// Reads a date.
pub(super) fn parse_days(text: &str) -> Result<i32, SqlError> {
    if let Some(micros) = parse_word(text, Type::Date)? {
        return Ok(days_of_micros(micros));
    }
    let day = parse_parts(text, Type::Date)?.day;
    let known = i32::try_from(day).ok().filter(|_| DAYS.contains(&day));
    known.ok_or_else(|| SqlError::new("22008", format!("date out of range: \"{text}\"")))
}

/// Returns the date of a point in time.
pub(crate) fn days_of_micros(micros: i64) -> i32 {
    match micros {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => i32::try_from(micros.div_euclid(DAY)).unwrap_or(i32::MAX),
    }
}

/// Returns the first moment of a date; 22008 for one after the last point in time.
pub(crate) fn micros_of_days(days: i32) -> Result<i64, SqlError> {
    match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        _ => {
            let micros = i64::from(days).checked_mul(DAY).filter(|micros| RANGE.contains(micros));
            micros.ok_or_else(|| SqlError::new("22008", "date out of range for timestamp"))
        }
    }
}

/// Adds days to a date; infinity stays.
pub(crate) fn add_days(days: i32, by: i64) -> Result<i32, SqlError> {
    if days == i32::MIN || days == i32::MAX {
        return Ok(days);
    }
    let sum = i64::from(days).checked_add(by).filter(|sum| DAYS.contains(sum));
    sum.and_then(|sum| i32::try_from(sum).ok()).ok_or_else(|| beyond("date"))
}
