//! A picture as one page of HTML that needs no network and no other file.

use history::rule;
use maud::{Markup, PreEscaped, html};

use crate::draw::{Drawing, HTML, anchor, differs, symbol, titles};
use crate::layout::Form;
use crate::model::{EVENTS_MAX, Mark, Picture, Shape, Violation};
use crate::run::Schedule;
use crate::site::{Link, head, navigation};
use crate::table::table;

const SCRIPT: &str = include_str!("page.js");

/// The width of the drawing beside the notes, in pixels.
const WIDE: f64 = 976.0;

/// The width of the drawing on a phone, in pixels.
const NARROW: f64 = 366.0;

/// Histories with more events have no drawing for phones.
const NARROW_EVENTS_MAX: usize = 2000;

/// Returns the page of one run, or of two runs side by side, with their common schedule.
pub fn page(pictures: &[Picture], schedule: Option<&Schedule>) -> String {
    page_of_site(pictures, schedule, &[])
}

/// Returns the same page as part of a site, with links to other pages.
pub fn page_of_site(pictures: &[Picture], schedule: Option<&Schedule>, links: &[Link]) -> String {
    let name = schedule.map_or_else(|| titles(pictures), |schedule| schedule.name.clone());
    let about = pictures.first().map_or("", |picture| picture.about.as_str());
    let markup = html! {
        (HTML)
        html lang="en" {
            (head(&format!("{} – {name}", heading(pictures))))
            body {
                (navigation(links))
                header {
                    h1 { (heading(pictures)) }
                    p.about { b { (name) } @if !about.is_empty() { ": " (about) } }
                    @for picture in pictures { (limit(picture)) }
                }
                main {
                    section.verdicts aria-label="Violations" {
                        @for (number, picture) in pictures.iter().enumerate() {
                            (violations(number, picture, pictures.len() > 1))
                        }
                    }
                    (controls(pictures))
                    div.columns {
                        div.canvas tabindex="0" role="region" aria-label="Drawing of the run" {
                            (drawings(pictures))
                        }
                        aside {
                            section #chosen aria-live="polite" aria-label="Chosen event" {
                                h2 { "Event" }
                                p.hint {
                                    "Point at an event, or choose one to keep it here: its state before and after appears."
                                }
                            }
                            (legend(pictures))
                            @if let Some(schedule) = schedule { (schedule_lines(schedule, pictures)) }
                        }
                    }
                    section.tables {
                        h2 { "The same as a table" }
                        @for (number, picture) in pictures.iter().enumerate() {
                            div.scroll tabindex="0" role="region" aria-label=(format!("Table of {}", picture.title)) {
                                (table(number, picture))
                            }
                        }
                    }
                }
                script type="application/json" id="data" { (PreEscaped(data(pictures))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string() + "\n"
}

/// Returns the heading of the page: the most important violation, or the titles of two runs.
fn heading(pictures: &[Picture]) -> String {
    let first = pictures.iter().find_map(|picture| picture.violations.first());
    match (first, pictures) {
        (_, [one, other]) => format!("{} and {}, side by side", one.title, other.title),
        (Some(violation), _) => format!("Violation: {}", violation.kind),
        (None, _) => "A run without a violation".to_owned(),
    }
}

/// Says which part of a long history is drawn.
fn limit(picture: &Picture) -> Markup {
    let (drawn, total) = (picture.marks.len(), picture.events_total);
    let ends = picture.marks.first().zip(picture.marks.last());
    html! {
        @if drawn < total && let Some((first, last)) = ends {
            p.limit {
                (picture.title) ": " (drawn) " of " (total) " events are drawn, at most " (EVENTS_MAX)
                ": those from " (first.at) " s to " (last.at) " s."
            }
        }
    }
}

fn violations(number: usize, picture: &Picture, is_named: bool) -> Markup {
    html! {
        div.run {
            h2 { @if is_named { (picture.title) } @else { "Verdicts" } }
            @if picture.violations.is_empty() {
                p.kept { "✔ No rule was broken." }
            }
            @for (index, violation) in picture.violations.iter().enumerate() {
                (card(number, picture, index, violation))
            }
        }
    }
}

fn card(number: usize, picture: &Picture, index: usize, violation: &Violation) -> Markup {
    let mark = violation.mark.map(|mark| &picture.marks[mark]);
    html! {
        article.violation id=(format!("violation-{number}-{index}")) {
            h3 {
                span.kind { "✖ " (violation.kind) }
                " at " (violation.at) " s"
                @if let Some(mark) = mark {
                    " " a href=(format!("#{}", anchor(number, mark.number))) { "event " (mark.number + 1) }
                }
            }
            p { (violation.sentence) }
            @if !violation.because.is_empty() {
                p.because {
                    b { "Led there: " }
                    @for (place, mark) in violation.because.iter().map(|mark| &picture.marks[*mark]).enumerate() {
                        @if place > 0 { " · " }
                        a href=(format!("#{}", anchor(number, mark.number))) {
                            (mark.at) " " (picture.lanes[mark.lane].name) " " (mark.label)
                        }
                    }
                }
            }
            p.rule { b { "Broken rule: " } (rule(violation.kind)) }
            @if violation.is_excused {
                p.excused { "The run itself explains it: its faults and its setting allow it." }
            }
        }
    }
}

fn controls(pictures: &[Picture]) -> Markup {
    let lanes = pictures.iter().flat_map(|picture| &picture.lanes);
    let mut names: Vec<&str> = lanes.map(|lane| lane.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let keys = &pictures.first().map_or(&[][..], |picture| &picture.keys);
    html! {
        form.controls role="search" {
            label { "Search " input #search type="search" placeholder="token=1" autocomplete="off"; }
            label {
                "Process "
                select #process { option value="" { "all" } @for name in names { option { (name) } } }
            }
            @if keys.len() > 1 {
                label {
                    "Key "
                    select #key {
                        option value="" { "all" }
                        @for (number, key) in keys.iter().enumerate() { option value=(number) { (key) } }
                    }
                }
            }
            span.zoom {
                button type="button" #smaller aria-label="Zoom out" { "−" }
                button type="button" #whole { "100 %" }
                button type="button" #larger aria-label="Zoom in" { "+" }
            }
            output #found role="status" {}
            span.keys { kbd { "↑" } kbd { "↓" } " events " kbd { "←" } kbd { "→" } " lanes " kbd { "/" } " search" }
        }
    }
}

/// Returns the drawing in its forms: for wide screens, phones and paper. A phone shows two runs one below the
/// other, since their labels would not fit side by side.
fn drawings(pictures: &[Picture]) -> Markup {
    let events: usize = pictures.iter().map(|picture| picture.marks.len()).sum();
    let differs = differs(pictures);
    let wide = Drawing::of(pictures, Form::Wide, WIDE, differs);
    let narrow = |(first, picture)| {
        let drawing = Drawing::of(std::slice::from_ref(picture), Form::Narrow, NARROW, differs);
        Drawing { first, ..drawing }
    };
    html! {
        div.wide[events <= NARROW_EVENTS_MAX] { (wide.inline()) }
        @if events <= NARROW_EVENTS_MAX {
            div.narrow {
                @for (first, picture) in pictures.iter().enumerate() {
                    @if pictures.len() > 1 { h2 { (picture.title) } }
                    (narrow((first, picture)).inline())
                }
            }
        }
        (wide.paper())
    }
}

fn schedule_lines(schedule: &Schedule, pictures: &[Picture]) -> Markup {
    let strikes = |fault: usize| {
        let all = pictures.iter().enumerate();
        all.filter_map(move |(number, picture)| {
            let mark = picture.marks.iter().find(|mark| mark.fault == Some(fault as u64))?;
            Some((anchor(number, mark.number), mark.at, picture.title.as_str()))
        })
    };
    let fault_at = |line: usize| schedule.fault_lines.iter().position(|at| *at == line + 1);
    html! {
        details.schedule open {
            summary { "Schedule" }
            pre tabindex="0" aria-label="Schedule in TOML" {
                @for (number, line) in schedule.text.lines().enumerate() {
                    @if let Some(fault) = fault_at(number) {
                        span.fault-line id=(format!("fault-{fault}")) {
                            (line)
                            @for (link, at, title) in strikes(fault) {
                                "  " a href=(format!("#{link}")) title=(title) { "strikes at " (at) " s" }
                            }
                        }
                    } @else { (line) }
                    "\n"
                }
            }
        }
    }
}

fn legend(pictures: &[Picture]) -> Markup {
    let has =
        |shape: Shape| pictures.iter().any(|picture| picture.marks.iter().any(|mark| mark.shape == shape));
    let has_bar = |class: &str| {
        pictures.iter().any(|picture| picture.spans.iter().any(|span| span.kind.class() == class))
    };
    let bars = [
        ("lease", "solid", "the worker's lease, as the lock server stores it"),
        ("belief", "solid", "the worker trusts its lease, by its own clock"),
        ("margin", "pattern", "margin: no longer trusted, still stored"),
        ("section", "solid", "the worker is in its critical section"),
        ("stored", "solid", "at a server: stored for the worker of this colour"),
        ("wait", "line", "the worker waits for the lock"),
        ("pause", "pattern", "paused (hatched)"),
        ("down", "pattern", "down (crossed)"),
        ("link", "pattern", "a fault of links is in force"),
        ("clock", "line", "its clock is wrong by as much as is written beside it"),
    ];
    let arrows = pictures.iter().any(|picture| !picture.arrows.is_empty());
    html! {
        details.legend open {
            summary { "Legend" }
            p {
                "Time runs downwards, in seconds, and is not to scale: a torn line folds a time in which nothing "
                "happens, with its length beside it."
            }
            ul {
                @for (class, part, meaning) in bars {
                    @if has_bar(class) { li { (sample(class, part)) (meaning) } }
                }
                @for &shape in Shape::ALL {
                    @if has(shape) {
                        li {
                            svg.drawing width="22" height="18" viewBox="0 0 22 18" aria-hidden="true" {
                                g class=(format!("mark {}", shape.as_str())) { (symbol(shape, 11.0, 9.0)) }
                            }
                            (shape.meaning())
                        }
                    }
                }
            }
            p {
                @if arrows { "Arrows are messages, dashed if they are replies; red ones were held, late or lost." }
                @else { "Dashed arrows lead from a request to its effect." }
            }
        }
    }
}

fn sample(class: &str, part: &str) -> Markup {
    let pattern = match class {
        "margin" => "url(#dots-w0)",
        "down" => "url(#cross-w0)",
        _ => "url(#hatch-w0)",
    };
    html! {
        svg.drawing width="22" height="18" viewBox="0 0 22 18" aria-hidden="true" {
            g class=(format!("bar {class} h0")) {
                @match part {
                    "line" => line x1="11" x2="11" y1="1" y2="17" {},
                    "pattern" => rect.pattern x="6" y="1" width="10" height="16" rx="2" fill=(pattern) {},
                    _ => rect.solid x="7" y="1.5" width="8" height="15" rx="2" {},
                }
            }
        }
    }
}

/// Returns the changes of state by event, as JSON for the script. The script shows changes by time as the
/// state before the event.
fn data(pictures: &[Picture]) -> String {
    let of = |picture: &Picture| -> Vec<Vec<(String, String, String, bool)>> {
        let of_mark = |mark: &Mark| {
            let changes = mark.changes.iter().cloned();
            changes.map(|change| (change.fact, change.before, change.after, change.is_by_time)).collect()
        };
        picture.marks.iter().map(of_mark).collect()
    };
    let all: Vec<_> = pictures.iter().map(of).collect();
    // A `<` could end the script element.
    serde_json::to_string(&all).unwrap_or_default().replace('<', "\\u003c")
}
