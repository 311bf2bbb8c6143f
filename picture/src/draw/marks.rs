//! Events: a symbol and a few words each; and the violations among them.

use maud::{Markup, html};

use super::{Drawing, anchor, cut, px};
use crate::model::{Edge, Mark, Shape, Violation};

impl Drawing<'_> {
    pub(super) fn events(&self, picture: usize) -> Markup {
        let marks = self.pictures[picture].marks.iter().enumerate();
        html! {
            g.events { @for (number, mark) in marks { (self.event(picture, number, mark)) } }
            g.tags { (self.violation_tags(picture)) }
        }
    }

    fn event(&self, picture: usize, number: usize, mark: &Mark) -> Markup {
        let drawn = &self.pictures[picture];
        let (x, y) = (self.life(picture, mark.lane), self.layout.marks[picture][number]);
        let name = &drawn.lanes[mark.lane].name;
        let is_wrong = drawn.violations.iter().any(|violation| violation.mark == Some(number));
        let class = format!("mark {}{}", mark.shape.as_str(), if is_wrong { " wrong" } else { "" });
        let link = anchor(picture, mark.number);
        let (shown, label) = self.label(x, y, mark);
        // Whoever speaks to the page says the words that he sees, so the name begins with them.
        let spoken = format!("{shown}: {} {name}: {}", mark.at, mark.text);
        html! {
            a class=(class) href=(format!("#{link}")) data-id=(link) data-lane=(mark.lane)
                data-key=[mark.key] aria-label=(spoken) {
                title { (mark.at) " " (name) ": " (mark.text) }
                (label)
                (symbol(mark.shape, x, y))
            }
        }
    }

    /// Returns the words beside an event, on the side that has room for them: as text, and drawn.
    fn label(&self, x: f64, y: f64, mark: &Mark) -> (String, Markup) {
        if self.is_wide() {
            let room = ((self.layout.lane - 52.0) / 5.9) as usize;
            let text = cut(&mark.label, room);
            let width = text.chars().count() as f64 * 6.4 + 4.0;
            let markup = html! {
                rect.hit x=(px(x + 10.0)) y=(px(y - 8.0)) width=(px(width)) height="16" rx="3" {}
                text x=(px(x + 13.0)) y=(px(y + 4.0)) { (text) }
            };
            return (text, markup);
        }
        let width = self.layout.width();
        let (right, left) = (width - x - 12.0, x - self.layout.axis - 14.0);
        let is_right = right >= left || right >= mark.label.chars().count() as f64 * 6.0;
        let text = cut(&mark.label, (right.max(left) / 5.7) as usize);
        let (at, anchor) = if is_right { (x + 10.0, "start") } else { (x - 14.0, "end") };
        let markup = html! { text x=(px(at)) y=(px(y + 4.0)) text-anchor=(anchor) { (text) } };
        (text, markup)
    }

    /// Returns a line through each violation.
    pub(super) fn violation_lines(&self, picture: usize) -> Markup {
        let drawn = &self.pictures[picture];
        let (left, right) = (self.left(picture), self.right(picture));
        html! {
            @for violation in &drawn.violations {
                @let y = px(self.violation_y(picture, violation));
                line.violation-line x1=(px(left)) x2=(px(right)) y1=(y) y2=(y) {}
            }
        }
    }

    fn violation_tags(&self, picture: usize) -> Markup {
        let violations = &self.pictures[picture].violations;
        html! {
            @for (number, violation) in violations.iter().enumerate() {
                @let above = violations[..number].iter().filter(|other| other.mark == violation.mark).count();
                @let y = self.violation_y(picture, violation) + 10.0 + above as f64 * 20.0;
                @let text = format!("✖ {}", violation.kind);
                @let width = text.chars().count() as f64 * 7.3 + 12.0;
                @let x = self.tag_x(picture, violation, width);
                a class=(if number == 0 { "tag first" } else { "tag" })
                    href=(format!("#violation-{picture}-{number}"))
                    aria-label=(format!("{}: {}", violation.kind, violation.sentence)) {
                    title { (violation.sentence) }
                    rect x=(px(x)) y=(px(y)) width=(px(width)) height="17" rx="3" {}
                    text x=(px(x + 6.0)) y=(px(y + 12.5)) { (text) }
                }
            }
        }
    }

    fn tag_x(&self, picture: usize, violation: &Violation, width: f64) -> f64 {
        let lane = violation.mark.map(|mark| self.pictures[picture].marks[mark].lane);
        let x = lane.map_or(self.left(picture) + 4.0, |lane| self.life(picture, lane) + 11.0);
        x.min(self.right(picture) - width - 2.0)
    }

    pub(super) fn violation_y(&self, picture: usize, violation: &Violation) -> f64 {
        self.layout.y(picture, Edge { at: violation.at, mark: violation.mark })
    }

    fn left(&self, picture: usize) -> f64 {
        self.layout.x(picture, 0)
    }

    fn right(&self, picture: usize) -> f64 {
        let last = self.pictures[picture].lanes.len().saturating_sub(1);
        self.layout.x(picture, last) + self.layout.lane
    }
}

/// Returns the symbol of an event.
pub(crate) fn symbol(shape: Shape, x: f64, y: f64) -> Markup {
    let at = |dx: f64, dy: f64| format!("M{} {}", px(x + dx), px(y + dy));
    let path = |class: &str, d: String| html! { path class=(class) d=(d) {} };
    let disc = |r: &str| html! { circle.body cx=(px(x)) cy=(px(y)) r=(r) {} };
    match shape {
        Shape::Step => disc("2.2"),
        Shape::Dot => disc("3.5"),
        Shape::Request => path("body", at(-3.5, -4.5) + "l8 4.5l-8 4.5z"),
        Shape::Grant => path("body", at(0.0, -6.0) + "l6 6l-6 6l-6 -6z"),
        Shape::End => html! { circle.open cx=(px(x)) cy=(px(y)) r="4" {} },
        Shape::Accepted => html! {
            rect.body x=(px(x - 6.0)) y=(px(y - 6.0)) width="12" height="12" rx="2" {}
            (path("sign", at(-3.2, 0.2) + "l2.4 2.6l4.2 -5.2"))
        },
        Shape::Refused => html! {
            rect.body x=(px(x - 6.0)) y=(px(y - 6.0)) width="12" height="12" rx="2" {}
            (path("sign", at(-2.8, -2.8) + "l5.6 5.6m0 -5.6l-5.6 5.6"))
        },
        Shape::Down => html! {
            (disc("6"))
            (path("sign", at(-1.9, -2.8) + "v5.6m3.8 -5.6v5.6"))
        },
        Shape::Up => html! {
            (disc("6"))
            (path("sign fill", at(-1.8, -3.0) + "l5 3l-5 3z"))
        },
        Shape::Fault => path("body", at(1.5, -6.5) + "l-6 7.2h3.6l-1.6 5.8l6.2 -7.6h-3.6z"),
    }
}
