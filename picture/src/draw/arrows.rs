//! Arrows: messages between lanes, or requests and their answers.

use maud::{Markup, html};

use super::{Drawing, cut, px};
use crate::model::{Arrow, Mark};
use crate::run::Fate;

impl Drawing<'_> {
    pub(super) fn messages(&self, picture: usize) -> Markup {
        let drawn = &self.pictures[picture];
        html! {
            g.messages {
                @for (number, arrow) in drawn.arrows.iter().enumerate() {
                    (self.arrow(picture, arrow, self.layout.arrows[picture][number]))
                }
                @for (from, to) in &drawn.links {
                    (self.link(picture, &drawn.marks[*from], &drawn.marks[*to], [*from, *to]))
                }
            }
        }
    }

    fn arrow(&self, picture: usize, arrow: &Arrow, (sent, arrived): (f64, f64)) -> Markup {
        let (from, to) = (self.life(picture, arrow.from), self.life(picture, arrow.to));
        let names = &self.pictures[picture].lanes;
        let (fate, way) = match arrow.fate {
            Fate::Arrived { held: false, .. } => ("arrived", 1.0),
            Fate::Arrived { held: true, .. } => ("late", 1.0),
            Fate::Held => ("held", 0.4),
            Fate::Lost { .. } => ("lost", 0.6),
        };
        let (x, y) = (from + (to - from) * way, if way < 1.0 { sent + 14.0 } else { arrived });
        let reply = if arrow.is_reply { " reply" } else { "" };
        let told = match arrow.fate {
            Fate::Arrived { held: true, .. } => " (held by a cut link)",
            Fate::Held => " (held by a cut link to the end)",
            Fate::Lost { .. } => " (lost)",
            Fate::Arrived { .. } => "",
        };
        let about = format!("{} → {}: {}{told}", names[arrow.from].name, names[arrow.to].name, arrow.words);
        let room = if self.is_wide() { (self.layout.lane - 52.0) / 5.4 } else { 40.0 };
        let tip = (way >= 1.0).then(|| self.fill("tip"));
        html! {
            g class=(format!("message {fate}{reply}")) data-bytes=(hex(&arrow.bytes)) data-words=(about) {
                title { (about) }
                line x1=(px(from)) y1=(px(sent)) x2=(px(x)) y2=(px(y)) marker-end=[tip] {}
                @match arrow.fate {
                    Fate::Lost { .. } => {
                        path.cross d=(format!("M{} {}l8 8m0 -8l-8 8", px(x - 4.0), px(y - 4.0))) {}
                    }
                    Fate::Held => path.stop d=(format!("M{} {}v10", px(x), px(y - 5.0))) {},
                    Fate::Arrived { .. } => {}
                }
                // The words stand above the line, on the sender's side of the lane.
                text.words x=(px(from + 12.0)) y=(px(sent - 2.0)) {
                    (cut(&format!("{}{told}", arrow.words), room as usize))
                }
            }
        }
    }

    fn link(&self, picture: usize, from: &Mark, to: &Mark, [first, second]: [usize; 2]) -> Markup {
        let (x1, x2) = (self.life(picture, from.lane), self.life(picture, to.lane));
        let (y1, y2) = (self.layout.marks[picture][first], self.layout.marks[picture][second]);
        // The arrow ends at the edge of the symbol.
        let stop = if x2 > x1 { -6.0 } else { 6.0 };
        html! {
            line.request x1=(px(x1)) y1=(px(y1)) x2=(px(x2 + stop)) y2=(px(y2))
                marker-end=(self.fill("tip")) data-from=(from.number + 1) data-to=(to.number + 1) {}
        }
    }
}

/// Formats the first bytes of a message.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
    let rest = if bytes.len() > 64 { format!(" … {} bytes", bytes.len()) } else { String::new() };
    shown.join(" ") + &rest
}
