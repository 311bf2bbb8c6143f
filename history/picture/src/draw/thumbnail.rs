//! A small picture of a run, for an index: bars and violations without words.

use maud::{Markup, html};

use super::{Drawing, px};
use crate::layout::Form;
use crate::model::{Picture, SpanKind};

/// The size of a small picture, in pixels.
const WIDTH: f64 = 168.0;
const HEIGHT: f64 = 104.0;

/// The bars of a small picture: stored keys, trusted leases, critical sections and faults.
const KINDS: [SpanKind; 6] =
    [SpanKind::Pause, SpanKind::Down, SpanKind::Stored, SpanKind::Belief, SpanKind::Section, SpanKind::Link];

/// Returns a small picture of a run, as SVG for a page of [`site`](crate::site). Each lane is a column, time
/// runs downwards, and a red line marks a violation.
pub fn thumbnail(picture: &Picture) -> Markup {
    let pictures = std::slice::from_ref(picture);
    let drawing = Drawing::of(pictures, Form::Narrow, WIDTH, None);
    let scale = HEIGHT / drawing.layout.height.max(1.0);
    let lane = WIDTH / picture.lanes.len().max(1) as f64;
    let about = picture.violations.first().map_or("no violation", |violation| violation.kind.name());
    html! {
        svg.drawing.thumbnail width=(WIDTH) height=(HEIGHT) viewBox=(format!("0 0 {WIDTH} {HEIGHT}"))
            role="img" aria-label=(format!("Small picture of the run, {}: {about}", picture.title)) {
            @for number in 0..picture.lanes.len() {
                @let x = px(lane * (number as f64 + 0.5));
                line.life x1=(x) x2=(x) y1="0" y2=(HEIGHT) {}
            }
            @for kind in KINDS {
                @for span in picture.spans.iter().filter(|span| span.kind == kind) {
                    @let top = drawing.layout.y(0, span.from) * scale;
                    @let height = (drawing.layout.y(0, span.to) * scale - top).max(1.5);
                    @let width = if kind == SpanKind::Belief { 4.0 } else { 9.0 };
                    @let x = lane * (span.lane as f64 + 0.5) - width / 2.0;
                    @let hue = span.hue.map_or("none".to_owned(), |hue| (hue % 6).to_string());
                    @let class = if is_fault(kind) { "tint" } else { "solid" };
                    g class=(format!("bar {} h{hue}", kind.class())) {
                        rect class=(class) x=(px(x)) y=(px(top)) width=(px(width)) height=(px(height)) {}
                    }
                }
            }
            @for mark in 0..picture.marks.len() {
                @let x = lane * (picture.marks[mark].lane as f64 + 0.5);
                @let y = drawing.layout.marks[0][mark] * scale;
                line.tick x1=(px(x - 3.0)) x2=(px(x + 3.0)) y1=(px(y)) y2=(px(y)) {}
            }
            @for number in 0..picture.violations.len() {
                @let y = drawing.layout.violation_y(pictures, 0, number) * scale;
                line.wrong x1="0" x2=(WIDTH) y1=(px(y)) y2=(px(y)) {}
            }
        }
    }
}

const fn is_fault(kind: SpanKind) -> bool {
    matches!(kind, SpanKind::Pause | SpanKind::Down | SpanKind::Link)
}
