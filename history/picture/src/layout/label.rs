//! Labels: on the side that has room, in several lines if neither side has.

use super::areas::Area;
use crate::width::{Font, width, wrapped};

/// The height of a line of a label, in pixels.
pub(crate) const LABEL_LINE: f64 = 15.0;

/// The height of a line of a message's words, in pixels.
pub(crate) const WORDS_LINE: f64 = 12.5;

/// The sizes of the fonts of labels and of words, in pixels. `drawing.css` has the same.
const LABEL_SIZE: f64 = 12.0;
const WORDS_SIZE: f64 = 10.5;

/// A text beside a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    pub(crate) lines: Vec<String>,
    /// The x at which the text begins, or ends if `is_left`.
    pub(crate) x: f64,
    /// True if it is to the left of its place.
    pub(crate) is_left: bool,
    /// The width of the longest line, or more.
    pub(crate) width: f64,
}

/// The space beside a place, on each side: where a text may begin and where it must end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub(super) right: (f64, f64),
    pub(super) left: (f64, f64),
    /// True if the left side is better.
    pub(super) prefers_left: bool,
}

impl Label {
    pub(super) fn event(text: &str, space: Space) -> Self {
        Self::of(text, Font::Bold, LABEL_SIZE, space)
    }

    pub(super) fn words(text: &str, space: Space) -> Self {
        Self::of(text, Font::Mono, WORDS_SIZE, space)
    }

    fn of(text: &str, font: Font, size: f64, space: Space) -> Self {
        let (right, left) = (space.right.1 - space.right.0, space.left.0 - space.left.1);
        let whole = width(text, font, size);
        let is_left = match (whole <= right, whole <= left) {
            (true, true) => space.prefers_left,
            (false, false) => left > right,
            (_, is_left) => is_left,
        };
        let room = if is_left { left } else { right };
        let lines = if whole <= room { vec![text.to_owned()] } else { wrapped(text, font, size, room) };
        let longest = lines.iter().map(|line| width(line, font, size)).fold(0.0, f64::max);
        Self { lines, x: if is_left { space.left.0 } else { space.right.0 }, is_left, width: longest }
    }

    /// Returns the area that the label takes, from `above` its line to `below` it.
    pub(super) fn area(&self, above: f64, below: f64) -> Area {
        let (left, right) =
            if self.is_left { (self.x - self.width, self.x) } else { (self.x, self.x + self.width) };
        Area { left: left - 3.0, right: right + 3.0, above, below }
    }

    /// Returns the height of the lines after the first, in pixels.
    pub(crate) fn more(&self, line: f64) -> f64 {
        self.lines.len().saturating_sub(1) as f64 * line
    }
}
