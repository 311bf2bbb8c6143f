//! The drawing on paper: in parts, each with the names of its lanes, on sheets large enough to be read.

use maud::{Markup, html};

use super::{Drawing, px};
use crate::layout::Layout;

/// The sheets across, from A4 to A0: the class of the page that has it, and the width between its margins in
/// pixels.
const SHEETS: [(&str, f64); 5] =
    [("a4", 1047.0), ("a3", 1512.0), ("a2", 2172.0), ("a1", 3103.0), ("a0", 4422.0)];

/// The least size of the drawing on paper, as a part of its size on a screen: its text is then 5 points high.
const LEAST: f64 = 0.6;

/// The height of the sheets between their margins, less some space, as a part of the width.
const HEIGHT: f64 = 0.64;

impl Drawing<'_> {
    /// Returns the drawing for paper. Two runs that are too wide for the largest sheet come one after the
    /// other.
    pub(crate) fn paper(&self) -> Markup {
        let whole = self.layout.width();
        let is_split = self.pictures.len() > 1 && whole * LEAST > SHEETS[SHEETS.len() - 1].1;
        let columns: Vec<Vec<(f64, f64)>> = if is_split {
            let of = |picture| vec![(0.0, self.layout.axis), self.layout.ends(picture)];
            (0..self.pictures.len()).map(of).collect()
        } else {
            vec![vec![(0.0, whole)]]
        };
        let width = columns.iter().map(|columns| width(columns)).fold(0.0, f64::max);
        let sheet = SHEETS.iter().find(|(_, sheet)| width * LEAST <= *sheet);
        let (class, _) = sheet.unwrap_or(&SHEETS[SHEETS.len() - 1]);
        html! {
            div class=(format!("paper {class}")) {
                @for columns in &columns {
                    @for (top, bottom) in parts(&self.layout, width) {
                        div.part aria-hidden="true" {
                            (self.part("head", columns, 0.0, self.layout.head))
                            (self.part("body", columns, top, bottom - top))
                        }
                    }
                }
            }
        }
    }

    /// Returns columns of the drawing beside each other, each from its left to its right end.
    fn part(&self, name: &str, columns: &[(f64, f64)], top: f64, height: f64) -> Markup {
        let places = columns.iter().scan(0.0, |sum, (left, right)| {
            let place = *sum;
            *sum += right - left;
            Some((place, *left, right - left))
        });
        let all = width(columns);
        html! {
            svg class=(format!("drawing {name}")) width=(px(all)) height=(px(height))
                viewBox=(format!("0 0 {} {}", px(all), px(height))) {
                @for (x, left, width) in places {
                    svg x=(px(x)) width=(px(width)) height=(px(height))
                        viewBox=(format!("{} {} {} {}", px(left), px(top), px(width), px(height))) {
                        use href=(format!("#{}", self.id(name))) {}
                    }
                }
            }
        }
    }
}

fn width(columns: &[(f64, f64)]) -> f64 {
    columns.iter().map(|(left, right)| right - left).sum()
}

/// Returns the parts of a drawing, from top to bottom, that are short enough for a sheet on which `width`
/// pixels of it fit.
fn parts(layout: &Layout, width: f64) -> Vec<(f64, f64)> {
    let most = (width * HEIGHT - layout.head).max(200.0);
    let mut parts = Vec::new();
    let mut top = 0.0;
    while layout.height - top > most {
        let fits = layout.cuts.iter().copied().filter(|cut| *cut > top + 40.0 && *cut <= top + most);
        let bottom = fits.fold(f64::NAN, f64::max);
        let bottom = if bottom.is_nan() { top + most } else { bottom };
        parts.push((top, bottom));
        top = bottom;
    }
    parts.push((top, layout.height));
    parts
}
