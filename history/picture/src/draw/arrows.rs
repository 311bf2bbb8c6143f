//! Arrows: messages between lanes, or requests and their answers.

use history::Fate;
use maud::{Markup, html};

use super::{Drawing, px, text};
use crate::layout::{LOST_WAY, WORDS_LINE};
use crate::model::{Arrow, Mark};

impl Drawing<'_> {
    pub(super) fn messages(&self, picture: usize) -> Markup {
        let drawn = &self.pictures[picture];
        html! {
            g.messages {
                @for (number, arrow) in drawn.arrows.iter().enumerate() {
                    (self.arrow(picture, number, arrow))
                }
                @for (from, to) in &drawn.links {
                    (self.link(picture, &drawn.marks[*from], &drawn.marks[*to], [*from, *to]))
                }
            }
        }
    }

    fn arrow(&self, picture: usize, number: usize, arrow: &Arrow) -> Markup {
        let (sent, arrived) = self.layout.arrows[picture][number];
        let (from, to) = (self.life(picture, arrow.from), self.life(picture, arrow.to));
        let names = &self.pictures[picture].lanes;
        let (fate, way) = match arrow.fate {
            Fate::Arrived { .. } if arrow.is_late() => ("late", 1.0),
            Fate::Arrived { .. } => ("arrived", 1.0),
            Fate::Held => ("held", LOST_WAY),
            Fate::Lost { .. } => ("lost", LOST_WAY),
        };
        let y = if arrow.is_long() { arrived } else { sent + 14.0 };
        let x = from + (to - from) * way;
        let reply = if arrow.is_reply { " reply" } else { "" };
        let about = format!("{} → {}: {}", names[arrow.from].name, names[arrow.to].name, arrow.told());
        let tip = (way >= 1.0).then(|| self.fill("tip"));
        let (words, above) = (&self.layout.words[picture][number], 3.0);
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
                (text(words, "words", sent - above - words.more(WORDS_LINE), WORDS_LINE))
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
