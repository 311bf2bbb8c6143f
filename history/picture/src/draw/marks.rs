//! Events: a symbol and a few words each; and the violations among them.

use maud::{Markup, html};

use super::{Drawing, anchor, px, text};
use crate::layout::{LABEL_LINE, TAG, tag_width};
use crate::model::{Mark, Shape, Violation};

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
        let link = anchor(self.first + picture, mark.number);
        // The spoken name begins with the visible words, so that a user of voice control can say them.
        let spoken = format!("{}: {} {name}: {}", mark.label, mark.at, mark.text);
        html! {
            a class=(class) href=(format!("#{link}")) data-id=(link) data-lane=(mark.lane)
                data-key=[mark.key] aria-label=(spoken) {
                title { (mark.at) " " (name) ": " (mark.text) }
                (self.label(picture, number, y))
                (symbol(mark.shape, x, y))
            }
        }
    }

    /// Returns the words beside an event.
    fn label(&self, picture: usize, number: usize, y: f64) -> Markup {
        let label = &self.layout.labels[picture][number];
        let left = if label.is_left { label.x - label.width } else { label.x };
        let height = 16.0 + label.more(LABEL_LINE);
        html! {
            rect.hit x=(px(left - 3.0)) y=(px(y - 8.0)) width=(px(label.width + 6.0)) height=(px(height))
                rx="3" {}
            (text(label, "label", y + 4.0, LABEL_LINE))
        }
    }

    /// Returns a line below the event of each violation.
    pub(super) fn violation_lines(&self, picture: usize) -> Markup {
        let (left, right) = self.layout.ends(picture);
        html! {
            @for number in 0..self.pictures[picture].violations.len() {
                @let y = px(self.layout.violation_y(self.pictures, picture, number));
                line.violation-line x1=(px(left)) x2=(px(right)) y1=(y) y2=(y) {}
            }
        }
    }

    fn violation_tags(&self, picture: usize) -> Markup {
        let violations = &self.pictures[picture].violations;
        html! {
            @for (number, violation) in violations.iter().enumerate() {
                @let same = |other: &&Violation| violation.mark.is_some() && other.mark == violation.mark;
                @let above = violations[..number].iter().filter(same).count();
                @let y = self.layout.violation_y(self.pictures, picture, number) + 3.0 + above as f64 * TAG;
                @let width = tag_width(violation.kind.name());
                @let x = self.layout.tag_x(self.pictures, picture, number, width);
                a class=(if number == 0 { "tag first" } else { "tag" })
                    href=(format!("#violation-{}-{number}", self.first + picture))
                    aria-label=(format!("✖ {}: {}", violation.kind, violation.sentence)) {
                    title { (violation.sentence) }
                    rect x=(px(x)) y=(px(y)) width=(px(width)) height="17" rx="3" {}
                    text x=(px(x + 6.0)) y=(px(y + 12.5)) { "✖ " (violation.kind) }
                }
            }
        }
    }
}

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
