//! The parts of `docs/exhaustive.md` that are made from the results: `<!-- NAME -->` begins one, and
//! `<!-- /NAME -->` ends it.

use std::fmt::Write;
use std::num::NonZeroU8;

use resource::Fencing;

use super::results::{Cost, Results, Searched};
use super::{ONE, TWO};
use crate::System;

/// A page that lacks a part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the page has no `<!-- {part} -->` that is followed by `<!-- /{part} -->`: write both into it")]
pub struct MissingPart {
    /// The name of the part.
    part: &'static str,
}

/// Returns the page with its parts made from the results.
///
/// # Errors
///
/// [`MissingPart`] if the page has no place for one.
pub fn with_results(page: &str, results: &Results) -> Result<String, MissingPart> {
    let parts = [
        ("claim", claim(results)),
        ("one-fault", one_fault(results, ONE)),
        ("two-keys", one_fault(results, TWO)),
        ("more-faults", more_faults(results)),
        ("unfenced", unfenced(results)),
        ("mistakes", mistakes(results)),
    ];
    parts.into_iter().try_fold(page.to_owned(), |page, (part, text)| replaced(&page, part, &text))
}

fn replaced(page: &str, part: &'static str, text: &str) -> Result<String, MissingPart> {
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->"));
    let (before, rest) = page.split_once(&begin).ok_or(MissingPart { part })?;
    let (_, after) = rest.split_once(&end).ok_or(MissingPart { part })?;
    Ok(format!("{before}{begin}{text}{end}{after}"))
}

/// Writes the claim at the start of the page, as the command prints it.
fn claim(results: &Results) -> String {
    let Some(found) = results.search((System::REDIS, Fencing::On, ONE)) else { return String::new() };
    format!(
        "```\n\
         no violation in all {} placements of at most 1 fault, of these kinds and\n  \
         durations, at these points, for this workload, these versions and this seed; {}\n  \
         remaining.\n\
         ```\n",
        thousands(found.placements),
        found.remaining
    )
}

/// Writes the table of the searches for one fault with fencing and this number of keys.
fn one_fault(results: &Results, keys: NonZeroU8) -> String {
    let mut text = "| system | placements of at most 1 fault | violations | processor time |\n\
                    |---|---:|---:|---:|\n"
        .to_owned();
    let is_shown = |found: &&Searched| (found.fencing, found.keys, found.faults) == (Fencing::On, keys, 1);
    for found in results.searches.iter().filter(is_shown) {
        let time = found.cost.as_ref().map_or_else(String::new, processor_time);
        let (title, placements) = (found.system.title(), thousands(found.placements));
        // Writing to a String can't fail.
        let _ = writeln!(text, "| {title} | {placements} | {} | {time} |", found.causes.len());
    }
    text
}

/// Writes the table of the searches for several faults.
fn more_faults(results: &Results) -> String {
    let mut text = "| system | keys | faults | placements | remaining | violations | time |\n\
                    |---|---:|---:|---:|---:|---:|---|\n"
        .to_owned();
    for found in results.searches.iter().filter(|found| found.faults > 1) {
        let Searched { system, keys, faults, placements, remaining, causes, cost, .. } = found;
        let cost = cost.as_ref().map_or_else(|| "in several runs".to_owned(), described);
        let (title, placements) = (system.title(), thousands(*placements));
        let _ = writeln!(
            text,
            "| {title} | {keys} | {faults} | {placements} | {remaining} | {} | {cost} |",
            causes.len()
        );
    }
    text
}

fn described(cost: &Cost) -> String {
    let threads = format!("{} {}", cost.threads, if cost.threads == 1 { "thread" } else { "threads" });
    format!("{} on {threads}, processor time {}", seconds(cost.seconds), processor_time(cost))
}

fn processor_time(cost: &Cost) -> String {
    let build = if cost.is_release { "release" } else { "development" };
    format!("{}, {build} build", seconds(cost.processor_seconds))
}

/// Lists the causes of the violations by one fault on Redis without fencing.
fn unfenced(results: &Results) -> String {
    let Some(found) = results.search((System::REDIS, Fencing::Off, ONE)) else { return String::new() };
    found.causes.iter().map(|cause| format!("- `{cause}`\n")).collect()
}

/// Lists the mistakes, those that need the fewest faults first.
fn mistakes(results: &Results) -> String {
    let mut text = "| mistake | system | faults |\n|---|---|---|\n".to_owned();
    let mut rows: Vec<_> = results.mistakes.iter().collect();
    // `more than 1` follows all numbers.
    rows.sort_by_key(|row| &row.faults);
    for row in rows {
        let _ = writeln!(text, "| `{}` | {} | {} |", row.mistake, row.system, row.faults);
    }
    text
}

/// Returns the number with commas between thousands: 1,234,567.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(time: f64) -> String {
    if time < 60.0 { format!("{time:.1} s") } else { format!("{time:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "head\n<!-- claim -->\nold\n<!-- /claim -->\nbetween\n\
        <!-- one-fault --><!-- /one-fault -->\n";

    #[test]
    fn a_part_is_replaced_between_its_marks() {
        let page = replaced(PAGE, "claim", "new\n").unwrap();
        assert_eq!(page, PAGE.replace("old", "new"));
    }

    #[test]
    fn a_page_without_a_part_is_an_error_that_names_it() {
        let error = with_results(PAGE, &Results::default()).unwrap_err();
        assert!(error.to_string().contains("no `<!-- one-fault -->`"), "{error}");
    }

    #[test]
    fn numbers_have_commas() {
        let shown = [7, 855, 1_469, 242_382, 1_000_000].map(thousands);
        assert_eq!(shown, ["7", "855", "1,469", "242,382", "1,000,000"]);
    }
}
