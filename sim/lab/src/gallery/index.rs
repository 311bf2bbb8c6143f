//! The index of the gallery: a card for each schedule.

use maud::{Markup, PreEscaped, html};

use super::exhibit::Exhibit;
use super::site_links;
use crate::System;

/// Hides the cards that lack a word of the search.
const SCRIPT: &str = include_str!("index.js");

pub(super) fn page(exhibits: &[Exhibit]) -> String {
    let (museum, corpus): (Vec<&Exhibit>, Vec<&Exhibit>) =
        exhibits.iter().partition(|exhibit| exhibit.folder == "museum");
    let content = html! {
        p {
            "Each card is a failure schedule: pauses, crashes, partitions and clocks that strike real lock "
            "clients in a simulation. Its small pictures show a run with the resource's check of fencing "
            "tokens off, and one with it on: lanes are processes, time runs downwards, a red line is a "
            "verdict. Open one to see every event and message of it."
        }
        p {
            a href="tour.html" { "The debate on Redlock" } " walks through the arguments of Kleppmann and "
            "antirez, one run each. " a href="comparison.html" { "The comparison" } " counts what happens on "
            "each lock system under each class of faults."
        }
        form.controls role="search" {
            label { "Search " input #search type="search" placeholder="redlock stale_write" autocomplete="off"; }
            output #found role="status" {}
        }
        @for system in System::all() {
            @let shown: Vec<&&Exhibit> =
                corpus.iter().filter(|exhibit| exhibit.system == system.name()).collect();
            @if !shown.is_empty() {
                section {
                    h2 { "Schedules on " (system) }
                    ul.cards { @for exhibit in shown { (card(exhibit)) } }
                }
            }
        }
        section {
            h2 { "The museum: mistakes of lock libraries, and a schedule that shows each" }
            ul.cards { @for exhibit in &museum { (card(exhibit)) } }
        }
        script { (PreEscaped(SCRIPT)) }
    };
    picture::site("Distributed locks, put to the test", &site_links(""), &content)
}

fn card(exhibit: &Exhibit) -> Markup {
    html! {
        li {
            a href=(exhibit.address()) { (exhibit.name) }
            " " span.system {
                (exhibit.system)
                @if let Some(mutant) = &exhibit.mutant { ", mistake " (mutant) }
            }
            p { (exhibit.about) }
            (exhibit.small_pictures())
        }
    }
}
