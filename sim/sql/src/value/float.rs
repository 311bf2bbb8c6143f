//! Floating-point numbers: the shortest text that reads back as the same number.

use std::cmp::Ordering;

use super::invalid;
use crate::error::SqlError;

pub(super) fn text8(number: f64) -> String {
    text(&format!("{number:e}"), 15)
}

pub(super) fn text4(number: f32) -> String {
    text(&format!("{number:e}"), 6)
}

/// Rewrites Rust's `1.5e-7`; numbers from 0.0001 up to `digits` digits are printed without an exponent.
fn text(scientific: &str, digits: i32) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return match scientific {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            other => other,
        }
        .to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if exponent < -4 || exponent >= digits {
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{mark}{:02}", exponent.abs());
    }
    let plain: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let Ok(places) = usize::try_from(exponent) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        return format!("{sign}0.{}{plain}", "0".repeat(zeros));
    };
    let whole = format!("{plain:0<width$}", width = places + 1);
    let (before, after) = whole.split_at(places + 1);
    if after.is_empty() { format!("{sign}{before}") } else { format!("{sign}{before}.{after}") }
}

pub(super) fn parse8(text: &str) -> Result<f64, SqlError> {
    let number: f64 = parse(text).ok_or_else(|| invalid("double precision", text))?;
    if number.is_infinite() && !is_named(text) {
        return Err(out_of_range(text, "double precision"));
    }
    Ok(number)
}

pub(super) fn parse4(text: &str) -> Result<f32, SqlError> {
    let number: f32 = parse(text).ok_or_else(|| invalid("real", text))?;
    if number.is_infinite() && !is_named(text) {
        return Err(out_of_range(text, "real"));
    }
    Ok(number)
}

fn parse<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn is_named(text: &str) -> bool {
    text.contains(['i', 'I'])
}

fn out_of_range(text: &str, r#type: &str) -> SqlError {
    SqlError::new("22003", format!("\"{text}\" is out of range for type {type}"))
}

/// Compares as PostgreSQL does: `NaN` equals itself and is above all others.
pub(super) fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
