//! The events of a picture as a table of a page.

use maud::{Markup, html};

use crate::draw::anchor;
use crate::model::Picture;

/// Returns the table of the picture with this number.
pub(crate) fn table(number: usize, picture: &Picture) -> Markup {
    html! {
        table data-picture=(number) {
            caption { "Events of " (picture.title) }
            thead {
                tr {
                    th scope="col" { "No." }
                    th scope="col" { "Time in s" }
                    th scope="col" { "Process" }
                    th scope="col" { "Event" }
                    th scope="col" { "Change of state" }
                }
            }
            tbody { @for mark in 0..picture.marks.len() { (row(number, picture, mark)) } }
        }
        @if !picture.arrows.is_empty() { (messages(picture)) }
    }
}

fn row(number: usize, picture: &Picture, index: usize) -> Markup {
    let mark = &picture.marks[index];
    let link = anchor(number, mark.number);
    let wrong = picture.violations.iter().filter(|violation| violation.mark == Some(index));
    html! {
        tr id=(link) data-key=[mark.key] data-lane=(mark.lane) {
            td { a href=(format!("#{link}")) { (mark.number + 1) } }
            td.time { (mark.at) }
            td { (picture.lanes[mark.lane].name) }
            td {
                span.what { (mark.text) }
                @for violation in wrong { " " strong.wrong { "✖ " (violation.kind) } }
            }
            td {
                @for change in &mark.changes {
                    div { @if change.is_by_time { "before it, by time: " } (change.fact) ": " (change.before) " → " (change.after) }
                }
            }
        }
    }
}

fn messages(picture: &Picture) -> Markup {
    use history::Fate::{Arrived, Held, Lost};
    let name = |lane: usize| picture.lanes[lane].name.as_str();
    html! {
        table.messages {
            caption { "Messages of " (picture.title) }
            thead {
                tr {
                    th scope="col" { "Sent at, in s" }
                    th scope="col" { "From" }
                    th scope="col" { "To" }
                    th scope="col" { "Content" }
                    th scope="col" { "Fate" }
                }
            }
            tbody {
                @for arrow in &picture.arrows {
                    tr {
                        td.time { (arrow.sent) }
                        td { (name(arrow.from)) }
                        td { (name(arrow.to)) }
                        td { code { (arrow.words) } }
                        td {
                            @match arrow.fate {
                                Arrived { at, held: false } => { "arrived at " (at) }
                                Arrived { at, held: true } => { "held by a cut link, arrived at " (at) }
                                Held => "held by a cut link to the end",
                                Lost { at } => { "lost at " (at) }
                            }
                        }
                    }
                }
            }
        }
    }
}
