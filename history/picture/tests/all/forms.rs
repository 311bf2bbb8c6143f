//! The page, the drawing and the terminal show the same picture.

use history::{Fate, Nanos, VerdictKind};
use picture::{Role, SpanKind};
use scraper::{Html, Selector};

use crate::{history, late_write, message, picture, picture_with};

fn attributes(page: &Html, selector: &str, name: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    let found = page.select(&selector);
    found.filter_map(|element| element.attr(name)).map(str::to_owned).collect()
}

#[test]
fn lanes_are_in_order_workers_servers_resource() {
    let drawn = picture("run", &late_write().events);
    let lanes: Vec<(&str, Role)> = drawn.lanes.iter().map(|lane| (lane.name.as_str(), lane.role)).collect();
    use Role::{Resource, Server, Worker};
    assert_eq!(lanes, [("a", Worker), ("b", Worker), ("redis-1", Server), ("resource", Resource)]);
}

#[test]
fn the_lease_and_the_belief_in_it_end_at_different_times() {
    let drawn = picture("run", &late_write().events);
    let span = |kind: SpanKind| drawn.spans.iter().find(|span| span.lane == 0 && span.kind == kind).unwrap();
    let ends = |kind: SpanKind| (span(kind).from.at.0 / 1_000_000, span(kind).to.at.0 / 1_000_000);
    assert_eq!(ends(SpanKind::Lease), (2, 2002));
    assert_eq!(ends(SpanKind::Belief), (3, 1953));
    assert_eq!(ends(SpanKind::Margin), (1953, 2003));
    assert_eq!(ends(SpanKind::Pause), (4, 5004));
}

#[test]
fn the_violation_is_at_the_write_that_broke_the_rule() {
    let drawn = picture("run", &late_write().events);
    let kinds: Vec<VerdictKind> = drawn.violations.iter().map(|violation| violation.kind).collect();
    assert!(kinds.contains(&VerdictKind::StaleWrite), "{kinds:?}");
    let stale = drawn.violations.iter().find(|violation| violation.kind == VerdictKind::StaleWrite).unwrap();
    assert_eq!(stale.mark, Some(11));
}

#[test]
fn each_event_of_the_drawing_is_in_the_table() {
    let page = picture::page(&[picture("run", &late_write().events)], None);
    let page = Html::parse_document(&page);
    let rows = attributes(&page, "table[data-picture] tbody tr", "id");
    assert_eq!(rows.len(), 12);
    for form in ["wide", "narrow"] {
        let marks = attributes(&page, &format!("[data-form={form}] .mark"), "data-id");
        assert_eq!(marks, rows, "{form}");
    }
}

#[test]
fn each_link_of_the_page_leads_to_an_element() {
    let page = picture::page(&[picture("run", &late_write().events)], None);
    let page = Html::parse_document(&page);
    let links = attributes(&page, "a[href]", "href");
    assert!(links.len() > 12, "{links:?}");
    let ids = attributes(&page, "[id]", "id");
    for link in links {
        assert!(ids.contains(&link.trim_start_matches('#').to_owned()), "{link} leads nowhere");
    }
}

#[test]
fn the_first_difference_of_two_runs_is_marked() {
    let (one, mut other) = (late_write(), late_write());
    let same = [picture("one", &one.events), picture("other", &other.events)];
    assert!(!picture::svg(&same).contains("first difference"));
    other.events[7].at.0 += 1_000_000;
    let different = [picture("one", &one.events), picture("other", &other.events)];
    assert!(picture::svg(&different).contains("first difference"));
}

#[test]
fn lost_and_held_messages_are_drawn_as_such() {
    let fates = [
        (Fate::Arrived { at: Nanos(9_000_000), held: false }, "message arrived"),
        (Fate::Arrived { at: Nanos(9_000_000), held: true }, "message late"),
        (Fate::Held, "message held"),
        (Fate::Lost { at: Nanos(9_000_000) }, "message lost"),
    ];
    let messages = fates.map(|(fate, _)| message("SET k", 5_000_000, fate));
    let drawn = picture_with("run", &late_write().events, &messages);
    let svg = picture::svg(&[drawn]);
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let drawn: Vec<&str> = svg.descendants().filter_map(|node| node.attribute("class")).collect();
    for (_, class) in fates {
        assert_eq!(drawn.iter().filter(|drawn| **drawn == class).count(), 1, "{class}");
    }
}

#[test]
fn the_terminal_has_at_most_100_columns_and_a_line_for_each_event() {
    let drawn = picture("run", &late_write().events);
    let text = picture::terminal(&drawn, false);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    assert!(picture::terminal(&drawn, true).contains('\u{1b}'));
    let times = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(times.count(), 12);
    assert!(text.contains("✖ stale_write"), "{text}");
}

#[test]
fn many_lanes_and_long_words_fit_into_100_columns() {
    for workers in [1, 6, 12, 25, 40, 62, 130] {
        let step = |number: usize| (number as u64, format!("worker-{number:03}"));
        let events: Vec<(u64, String)> = (0..workers).map(step).collect();
        let long = format!(r#""step":"{}""#, "a long step of the work ".repeat(8).trim());
        let events = events.iter().map(|(at, name)| (*at, name.as_str(), "worker_step", long.as_str()));
        let drawn = picture("run", &history(&events.collect::<Vec<_>>()).events);
        let text = picture::terminal(&drawn, false);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= 100), "{longest:?} columns for {workers} workers");
        let words = text.split_whitespace().filter(|word| *word == "long").count();
        assert_eq!(words, workers * 8, "no word of an event is missing");
        let times = text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
        assert!(times.count() >= workers);
    }
}

#[test]
fn no_label_of_the_drawing_is_cut() {
    let words = "PUT /r/orders:42 token 1 by a:1098 with a body that is far longer than a lane is wide";
    let name = "worker-with-a-name-that-is-longer-than-its-lane-is-wide";
    let mut events = late_write().events;
    events[0].process = history::Name::from(name);
    let arrived = Fate::Arrived { at: Nanos(9_000_000), held: false };
    let pair = ["one", "other"].map(|run| picture_with(run, &events, &[message(words, 5_000_000, arrived)]));
    let svg = picture::svg(&pair);
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let is_text = |node: &roxmltree::Node| node.has_tag_name("text");
    let text = |node: roxmltree::Node| {
        node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect::<String>()
    };
    let texts: Vec<String> = svg.descendants().filter(is_text).map(text).collect();
    assert!(texts.iter().all(|text| !text.contains('…')), "{texts:?}");
    for whole in [words, name, "stored for a, token 1", "accepts a, token 1"] {
        assert_eq!(texts.iter().filter(|text| text.trim() == whole).count(), 2, "{whole} in {texts:?}");
    }
}

#[test]
fn a_slow_message_and_its_delay_are_told() {
    let slow = message("PUT", 0, Fate::Arrived { at: Nanos(3_000_000_000), held: false });
    let drawn = picture_with("run", &late_write().events, &[slow]);
    assert!(drawn.arrows[0].is_late());
    assert_eq!(drawn.arrows[0].told(), "PUT (takes 3.000 s)");
}
