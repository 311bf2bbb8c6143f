//! Limits a picture to [`EVENTS_MAX`] events.

use super::{EVENTS_MAX, Edge, Picture};

/// Returns the picture with at most [`EVENTS_MAX`] events: those before the first violation, if there is one,
/// and some after it.
pub(super) fn clip(mut picture: Picture) -> Picture {
    let total = picture.marks.len();
    if total <= EVENTS_MAX {
        return picture;
    }
    let wrong = picture.violations.first().and_then(|violation| violation.mark).unwrap_or(0);
    let first = (wrong + EVENTS_MAX / 10).min(total).saturating_sub(EVENTS_MAX);
    let window = first..first + EVENTS_MAX;
    let kept = |mark: usize| window.contains(&mark).then(|| mark - first);
    let (begin, end) = (picture.marks[window.start].at, picture.marks[window.end - 1].at);
    let edge = |edge: Edge| Edge { at: edge.at.clamp(begin, end), mark: edge.mark.and_then(kept) };
    picture.spans.retain(|span| span.from.at <= end && span.to.at >= begin);
    for span in &mut picture.spans {
        (span.from, span.to) = (edge(span.from), edge(span.to));
    }
    picture.arrows.retain(|arrow| (begin..=end).contains(&arrow.sent));
    picture.arrows.truncate(EVENTS_MAX);
    let links = picture.links.iter();
    picture.links = links.filter_map(|(from, to)| Some((kept(*from)?, kept(*to)?))).collect();
    for violation in &mut picture.violations {
        violation.mark = violation.mark.and_then(kept);
        violation.because = violation.because.iter().filter_map(|mark| kept(*mark)).collect();
    }
    picture.marks.drain(window.end..);
    picture.marks.drain(..window.start);
    picture
}
