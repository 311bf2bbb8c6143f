//! Lists the items of a drawing, in the order of time.

use history::{Fate, Nanos};

use crate::model::{Picture, SpanKind};

/// An item to place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    Time,
    Arrival {
        picture: usize,
        arrow: usize,
    },
    Mark {
        picture: usize,
        mark: usize,
    },
    Sending {
        picture: usize,
        arrow: usize,
    },
    /// The text beside a wrong clock.
    Clock {
        picture: usize,
        span: usize,
    },
    /// A violation that no event shows.
    Violation {
        picture: usize,
        violation: usize,
    },
}

/// Returns all items, in the order of time: an arrival comes before the events that it causes, a sending
/// after those that cause it.
pub(super) fn items(pictures: &[Picture]) -> Vec<(Nanos, Item)> {
    let mut items = Vec::new();
    for (number, picture) in pictures.iter().enumerate() {
        let marks = picture.marks.iter().enumerate();
        items.extend(marks.map(|(mark, event)| (event.at, Item::Mark { picture: number, mark })));
        for (index, span) in picture.spans.iter().enumerate() {
            let loose = [span.from, span.to].into_iter().filter(|edge| edge.mark.is_none());
            items.extend(loose.map(|edge| (edge.at, Item::Time)));
            if span.kind == SpanKind::Clock {
                items.push((span.from.at, Item::Clock { picture: number, span: index }));
            }
        }
        let loose = picture.violations.iter().enumerate().filter(|(_, violation)| violation.mark.is_none());
        items.extend(
            loose.map(|(violation, found)| (found.at, Item::Violation { picture: number, violation })),
        );
        for (arrow, message) in picture.arrows.iter().enumerate() {
            items.push((message.sent, Item::Sending { picture: number, arrow }));
            let to = match message.fate {
                Fate::Arrived { at, .. } | Fate::Lost { at } => at,
                Fate::Held => message.sent,
            };
            items.push((to, Item::Arrival { picture: number, arrow }));
        }
    }
    items.sort_by_key(|(at, item)| (*at, order(*item)));
    items.dedup();
    items
}

/// Returns the order of items of one time. Events keep their order; events of two runs alternate.
const fn order(item: Item) -> (usize, usize, usize) {
    match item {
        Item::Time => (0, 0, 0),
        Item::Arrival { picture, arrow } => (1, arrow, picture),
        Item::Mark { picture, mark } => (2, mark, picture),
        Item::Sending { picture, arrow } => (3, arrow, picture),
        Item::Clock { picture, span } => (4, span, picture),
        Item::Violation { picture, violation } => (5, violation, picture),
    }
}
