//! Bars: leases at servers and as holders trust them, critical sections, pauses and other faults.

use maud::{Markup, html};

use super::{Drawing, px, text};
use crate::layout::WORDS_LINE;
use crate::model::{Span, SpanKind};

/// The order in which bars are drawn: later ones are drawn over earlier ones.
const ORDER: [SpanKind; 10] = [
    SpanKind::Pause,
    SpanKind::Down,
    SpanKind::Clock,
    SpanKind::Wait,
    SpanKind::Stored,
    SpanKind::Lease,
    SpanKind::Belief,
    SpanKind::Margin,
    SpanKind::Section,
    SpanKind::Link,
];

impl SpanKind {
    /// Returns its class in a page's style.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Lease => "lease",
            Self::Belief => "belief",
            Self::Margin => "margin",
            Self::Section => "section",
            Self::Wait => "wait",
            Self::Pause => "pause",
            Self::Down => "down",
            Self::Clock => "clock",
            Self::Link => "link",
        }
    }
}

impl Drawing<'_> {
    pub(super) fn bars(&self, picture: usize) -> Markup {
        let spans = &self.pictures[picture].spans;
        html! {
            @for kind in ORDER {
                @for (number, span) in spans.iter().enumerate().filter(|(_, span)| span.kind == kind) {
                    (self.bar(picture, number, span))
                }
            }
        }
    }

    fn bar(&self, picture: usize, number: usize, span: &Span) -> Markup {
        let hue = span.hue.map_or("none".to_owned(), |hue| (hue % 6).to_string());
        let class = format!("bar {} h{hue}", span.kind.class());
        let (x, width) = self.place(picture, span);
        let (top, end) = (self.layout.y(picture, span.from), self.layout.y(picture, span.to));
        let height = (end - top).max(3.0);
        let about = format!("{}, {} to {}", span.label, span.from.at, span.to.at);
        let key = span.key.map(|key| key.to_string());
        let shape = |class: &str, fill: Option<String>| {
            html! {
                rect class=(class) x=(px(x)) y=(px(top)) width=(px(width)) height=(px(height)) rx="2"
                    fill=[fill] {}
            }
        };
        html! {
            g class=(class) data-key=[key] {
                title { (about) }
                @match span.kind {
                    SpanKind::Pause => {
                        (shape("tint", None)) (shape("pattern", Some(self.fill("hatch"))))
                    }
                    SpanKind::Down => {
                        (shape("tint", None)) (shape("pattern", Some(self.fill("cross"))))
                    }
                    SpanKind::Link => {
                        (shape("tint", None)) (shape("pattern", Some(self.fill("hatch"))))
                    }
                    SpanKind::Margin => (shape("pattern", Some(self.fill("dots")))),
                    SpanKind::Wait => {
                        line x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(top + height)) {}
                    }
                    SpanKind::Clock => {
                        line x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(top + height)) {}
                        @if let Some((y, label)) = self.layout.clocks.get(&(picture, number)) {
                            (text(label, "clock-text", y + 4.0, WORDS_LINE))
                        }
                    }
                    _ => (shape("solid", None)),
                }
            }
        }
    }

    /// Returns the left end and the width of a bar.
    fn place(&self, picture: usize, span: &Span) -> (f64, f64) {
        use SpanKind::{Belief, Clock, Down, Lease, Link, Margin, Pause, Section, Stored, Wait};
        let (life, slot) = (self.life(picture, span.lane), span.slot.min(3) as f64);
        let left = self.layout.x(picture, span.lane);
        if !self.is_wide() {
            return match span.kind {
                Pause | Down => (life - 12.0, 18.0),
                Lease => (life - 11.0, 3.5),
                Belief | Margin => (life - 6.5, 3.5),
                Wait => (life - 4.5, 0.0),
                Section => (life - 2.5, 5.0),
                Stored => (life - 8.0 + slot * 2.0, 6.0),
                Link => (life - 8.0 + slot * 5.0, 5.0),
                Clock => (left + 1.5, 0.0),
            };
        }
        match span.kind {
            Pause | Down => (left + 2.0, 41.0),
            Lease => (left + 6.0 + slot * 3.0, 7.0),
            Belief | Margin => (left + 17.0 + slot * 3.0, 8.0),
            Wait => (left + 21.0 + slot * 3.0, 0.0),
            Section => (life - 5.0 + slot * 3.0, 10.0),
            Stored => (left + 8.0 + slot * 5.0, 14.0),
            Link => (left + 4.0 + slot * 9.0, 8.0),
            Clock => (left + self.layout.lane - 4.0, 0.0),
        }
    }
}
