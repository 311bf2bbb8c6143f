//! The pages that show the results. Their prose is written by hand; what stands between two comments that
//! name a section is written from the results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lab::museum::Mutant;
use sim::Strategy;
use sim::explore::Portfolio;

use super::results::{DEFAULT, Key, Results, Row};
use super::{exhibits, identity, strategies};
use crate::cli::{Outcome, print};

/// A part of a page that is written from the results.
struct Section {
    page: &'static str,
    name: &'static str,
    text: fn(&Results) -> String,
}

const SECTIONS: [Section; 6] = [
    Section { page: "docs/museum.md", name: "exhibits", text: |_| exhibits::exhibits() },
    Section { page: "docs/museum.md", name: "hunts", text: exhibits::hunts },
    Section { page: "docs/strategies.md", name: "shares", text: |_| strategies::shares() },
    Section { page: "docs/strategies.md", name: "cost", text: strategies::cost },
    Section { page: "docs/strategies.md", name: "figures", text: strategies::figures },
    Section { page: "docs/strategies.md", name: "comparison", text: strategies::comparison },
];

/// Writes the results into the pages.
pub(super) fn write(results: &Results) -> Outcome {
    for (page, text) in pages(results)? {
        files::write(Path::new(page), text)?;
    }
    print_problems(&problems(results, &Portfolio::default()))
}

/// Compares the pages, and the rows with the exhibits. Returns false, and prints why, if they differ.
pub(super) fn check(results: &Results) -> Outcome {
    let mut found = problems(results, &Portfolio::default());
    for (page, text) in pages(results)? {
        if read(page)? != text {
            found.push(format!("{page} is not what the results say: write it with `museum --report`"));
        }
    }
    let program = identity::program()?;
    if let Some(row) = results.rows.iter().find(|row| row.origin.program != program) {
        let measured = &row.origin.program;
        print(&format!("note: measured with the simulator {measured}, and this one is {program}\n"))?;
    }
    print_problems(&found)
}

fn print_problems(problems: &[String]) -> Outcome {
    for problem in problems {
        print(&format!("{problem}\n"))?;
    }
    Ok(problems.is_empty())
}

/// Returns what is wrong with the rows: exhibits without one, rows without an exhibit, rows of one strategy
/// by another program or with other shares than the rest, and twins that are accused.
fn problems(results: &Results, portfolio: &Portfolio) -> Vec<String> {
    let of_mutant = |mutant: &Mutant| {
        let mutant = *mutant;
        mutant.systems().into_iter().map(move |system| Key::new(mutant, system, DEFAULT))
    };
    let meant: BTreeSet<Key> = Mutant::ALL.iter().flat_map(of_mutant).collect();
    let kept: BTreeSet<Key> = results.by(DEFAULT).map(|row| row.key.clone()).collect();
    let missing = meant.difference(&kept).map(|key| format!("{key}: no results; run its hunts"));
    let exhibit = |row: &&Row| !meant.contains(&Key { strategy: DEFAULT.to_owned(), ..row.key.clone() });
    let foreign = results.rows.iter().filter(exhibit).map(|row| format!("{}: no such exhibit", row.key));
    let mut problems: Vec<String> = missing.chain(foreign).collect();
    let program = results.most_common_program();
    for row in &results.rows {
        // The page names those of all strategies in turns; strategies are compared with each other.
        let is_compared = row.key.strategy != DEFAULT;
        if is_compared && program.is_some_and(|program| *program != row.origin.program) {
            problems.push(format!("{}: measured by another program than the other rows", row.key));
        }
        let shares = &row.origin.shares;
        let meant = identity::shares(&portfolio_of(row, portfolio));
        if *shares != meant {
            problems.push(format!("{}: measured with the shares {shares}, which are now {meant}", row.key));
        }
        problems.extend(row.accused.iter().map(|accused| format!("{}: not acquitted: {accused}", row.key)));
    }
    problems
}

/// Returns the portfolio that the strategy of a row names; the one given for all in turns.
fn portfolio_of(row: &Row, all: &Portfolio) -> Portfolio {
    let name = row.key.strategy.split(' ').next().unwrap_or_default();
    name.parse::<Strategy>().map_or_else(|_| all.clone(), Portfolio::only)
}

/// Returns each page with its sections written from the results.
fn pages(results: &Results) -> Result<BTreeMap<&'static str, String>, String> {
    let mut pages = BTreeMap::new();
    for Section { page, name, text } in &SECTIONS {
        if !pages.contains_key(page) {
            pages.insert(*page, read(page)?);
        }
        if let Some(old) = pages.get_mut(page) {
            *old = replaced(old, name, &text(results)).ok_or_else(|| {
                format!("{page} has no section `{name}`: put `{}` and `{}` into it", begin(name), end(name))
            })?;
        }
    }
    Ok(pages)
}

fn read(page: &str) -> Result<String, String> {
    let hint = "run this in the folder of the repository";
    std::fs::read_to_string(Path::new(page)).map_err(|error| format!("{page}: {error}; {hint}"))
}

fn begin(name: &str) -> String {
    format!("<!-- from the results: {name} -->\n")
}

fn end(name: &str) -> String {
    format!("<!-- end: {name} -->\n")
}

/// Returns the page with this text in the section; `None` if it has no such section.
fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&begin(name))?;
    let (_, after) = rest.split_once(&end(name))?;
    Some(format!("{before}{}\n{text}\n{}{after}", begin(name), end(name)))
}

#[cfg(test)]
mod tests {
    use super::super::results::Origin;
    use super::*;

    /// Results with a row for each exhibit.
    fn complete() -> Results {
        let mut results = Results::default();
        for mutant in Mutant::ALL {
            for system in mutant.systems() {
                let shares = identity::shares(&Portfolio::default());
                let origin = Origin { shares, program: "1".to_owned() };
                results.put(Row::new(Key::new(*mutant, system, DEFAULT), origin, 100));
            }
        }
        results
    }

    fn found(results: &Results) -> Vec<String> {
        problems(results, &Portfolio::default())
    }

    #[test]
    fn a_row_for_each_exhibit_is_right() {
        assert_eq!(found(&complete()), Vec::<String>::new());
    }

    #[test]
    fn an_exhibit_without_a_row_is_named_and_a_row_without_an_exhibit() {
        let mut results = complete();
        let mut row = results.rows.remove(0);
        assert_eq!(found(&results), ["setnx-then-pexpire on redis, default: no results; run its hunts"]);
        row.key.mutant = "no-such".to_owned();
        results.put(row);
        assert_eq!(found(&results)[1..], ["no-such on redis, default: no such exhibit"]);
    }

    #[test]
    fn a_row_of_another_program_or_other_shares_is_named() {
        let mut results = complete();
        results.rows[3].origin.program = "2".to_owned();
        assert_eq!(found(&results), Vec::<String>::new());
        let named = format!("which draws other options:\n`{}`.", results.rows[3].key.mutant);
        assert!(exhibits::hunts(&results).contains(&named), "{}", exhibits::hunts(&results));
        results.rows[3].key.strategy = "uniform".to_owned();
        let key = results.rows[3].key.to_string();
        let other = format!("{key}: measured by another program than the other rows");
        assert!(found(&results).contains(&other), "{:?}", found(&results));
        let mut results = complete();
        results.rows[3].origin.shares = "uniform 1".to_owned();
        let key = results.rows[3].key.to_string();
        let problem = &found(&results)[0];
        assert!(problem.starts_with(&format!("{key}: measured with the shares uniform 1,")), "{problem}");
    }

    #[test]
    fn a_twin_that_is_accused_is_named() {
        let mut results = complete();
        results.rows[0].accused.push("seed 5: leaked".to_owned());
        assert_eq!(found(&results), ["setnx-then-pexpire on redis, default: not acquitted: seed 5: leaked"]);
    }

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let page = format!("before\n{}old\n{}after\n", begin("x"), end("x"));
        let new = replaced(&page, "x", "new").unwrap();
        assert_eq!(new, format!("before\n{}\nnew\n{}after\n", begin("x"), end("x")));
        assert_eq!(replaced(&new, "x", "new").unwrap(), new);
        assert_eq!(replaced(&page, "y", "new"), None);
    }
}
