//! The comparison of the gallery: a table in which each number leads to a run that it counts.

use std::collections::BTreeMap;

use maud::html;
use picture::Link;
use sim::explore::pictured;
use sim::faults::Class;

use super::exhibit::title;
use super::{GalleryError, Plan, Site, site_links};
use crate::compare::{Comparison, Count, cells, compare, table};
use crate::{Lab, System, draw_class};

/// A number of the table.
type Cell = (System, &'static Class, Count);

/// Returns the number of schedules that the comparison runs.
pub(super) fn steps(schedules: u64) -> u64 {
    cells().count() as u64 * schedules
}

/// Runs the comparison, and writes its table and a page for each number that is not 0.
pub(super) fn write(
    plan: &Plan<'_>,
    site: &mut Site<'_>,
    done: &(impl Fn() + Sync),
) -> Result<(), GalleryError> {
    let failed =
        |source| GalleryError::Run { schedule: "the comparison".to_owned(), source: Box::new(source) };
    let comparison = compare(0, plan.schedules, plan.threads, || {
        done();
        true
    })
    .map_err(failed)?;
    let mut shown = BTreeMap::new();
    for ((system, class), cell) in &comparison {
        for (name, count) in table::columns() {
            let Some(seed) = cell.first.get(&count) else { continue };
            let address = format!("comparison/{system}-{class}-{name}.html").replace([' ', ','], "-");
            let words = format!("{class} on {system}: {name}");
            site.write(&address, &example(&words, (*system, *class, count), *seed)?)?;
            shown.insert((*system, *class, count), address);
        }
    }
    site.write("comparison.html", &page(&comparison, plan.schedules, &shown))
}

/// Draws the page of a schedule that a number counts.
fn example(words: &str, (system, class, count): Cell, seed: u64) -> Result<String, GalleryError> {
    let failed = |source| GalleryError::Run { schedule: words.to_owned(), source: Box::new(source) };
    let Some(schedule) = draw_class(system, class, seed) else { return Ok(String::new()) };
    let arm = count.arm();
    let drawn = pictured(&Lab::new(arm), &schedule, title(arm)).map_err(failed)?;
    let mut links: Vec<Link> = site_links("../");
    links.push(Link::new("../comparison.html", words));
    let text = picture::Schedule::new(words, &schedule.to_toml());
    Ok(picture::page_of_site(&[drawn], Some(&text), &links))
}

fn page(comparison: &Comparison, schedules: u64, shown: &BTreeMap<Cell, String>) -> String {
    let content = html! {
        p {
            (schedules) " random schedules in each row, with one fault of the class, each run with fencing off "
            "and on. A number leads to the first run that it counts."
        }
        div.scroll tabindex="0" role="region" aria-label="The comparison" {
            table {
                thead {
                    tr {
                        th scope="col" { "system" }
                        th scope="col" { "faults" }
                        @for (name, _) in table::columns() { th scope="col" { (name) } }
                    }
                }
                tbody {
                    @for ((system, class), cell) in comparison {
                        tr {
                            td { (system) }
                            td { (class) }
                            @for (_, count) in table::columns() {
                                td.number {
                                    @match shown.get(&(*system, *class, count)) {
                                        Some(address) => a href=(address) { (cell.of(count)) },
                                        None => (cell.of(count)),
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        p { (table::COUNTS.replace('`', "")) }
        ul {
            @for (column, meaning) in table::LEGEND {
                li { (column) ": " (meaning) }
            }
        }
    };
    picture::site("The comparison", &site_links(""), &content)
}
