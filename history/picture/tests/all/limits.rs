//! A long history: a part of it is drawn, and the page says which.

use history::{Event, Nanos, VerdictKind};
use picture::EVENTS_MAX;

use crate::{late_write, picture};

/// Returns the late write after `before` other events.
fn late_write_after(before: usize) -> Vec<Event> {
    let story = late_write().events;
    let first = &story[0];
    let mut events = vec![first.clone(); before];
    let later = |event: &Event| Event { at: Nanos(event.at.0 + 1), ..event.clone() };
    events.extend(story.iter().map(later));
    events
}

#[test]
fn the_drawn_part_has_the_violation() {
    let drawn = picture("long", &late_write_after(EVENTS_MAX + 5000));
    assert_eq!(drawn.marks.len(), EVENTS_MAX);
    assert_eq!(drawn.events_total, EVENTS_MAX + 5000 + 12);
    let mut violations = drawn.violations.iter();
    let stale = violations.find(|violation| violation.kind == VerdictKind::StaleWrite).unwrap();
    let mark = stale.mark.expect("the violation is drawn");
    assert!(drawn.marks[mark].text.contains("token=1"), "{}", drawn.marks[mark].text);
    let page = picture::page(&[drawn], None);
    let said = format!("{EVENTS_MAX} of {} events are drawn", EVENTS_MAX + 5012);
    assert!(page.contains(&said), "the page doesn't say that a part is missing");
}

#[test]
fn a_short_history_is_drawn_whole() {
    let drawn = picture("short", &late_write().events);
    assert_eq!(drawn.marks.len(), 12);
    assert!(!picture::page(&[drawn], None).contains("events are drawn"));
}
