//! The drawing: SVG, for the page and as a file of its own.

mod arrows;
mod bars;
mod marks;
mod paper;
mod thumbnail;

pub(crate) use marks::symbol;
pub use thumbnail::thumbnail;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::layout::{Form, Label, Layout, Name};
use crate::model::{Lane, Picture};

/// The style of a drawing, without the style of the page around it.
pub(crate) const STYLE: &str = include_str!("drawing.css");

/// The width of a drawing in a file of its own, in pixels: the width of a page of text.
const FILE_WIDTH: f64 = 830.0;

pub(crate) struct Drawing<'a> {
    pub(crate) pictures: &'a [Picture],
    /// The number of the drawing's first picture among all pictures of the page.
    pub(crate) first: usize,
    pub(crate) layout: Layout,
}

/// Returns a drawing as an SVG document of its own. It is readable at its own size: 830 pixels wide, or wider
/// for pictures with many lanes.
pub fn svg(pictures: &[Picture]) -> String {
    let drawing = Drawing::of(pictures, Form::Wide, FILE_WIDTH, differs(pictures));
    let head = drawing.layout.head;
    let (width, height) = (drawing.layout.width(), drawing.layout.height + head);
    let sentences: Vec<&str> = pictures.iter().filter_map(|picture| headline(picture)).collect();
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="drawing file" role="img" width=(px(width))
            height=(px(height)) viewBox=(format!("0 0 {} {}", px(width), px(height))) {
            title { (titles(pictures)) }
            desc { (sentences.join(" ")) }
            style { (PreEscaped(STYLE)) }
            rect.paper width=(px(width)) height=(px(height)) {}
            (drawing.defs())
            (drawing.names())
            g transform=(format!("translate(0 {})", px(head))) { (drawing.body()) }
        }
    };
    markup.into_string() + "\n"
}

/// Returns the number of the first event that differs between two runs.
pub(crate) fn differs(pictures: &[Picture]) -> Option<usize> {
    let [one, other] = pictures else { return None };
    let pairs = one.marks.iter().zip(&other.marks);
    let equal = pairs.take_while(|(one, other)| (one.at, &one.text) == (other.at, &other.text)).count();
    (equal < one.marks.len() && equal < other.marks.len()).then_some(equal)
}

pub(crate) fn titles(pictures: &[Picture]) -> String {
    let titles: Vec<&str> = pictures.iter().map(|picture| picture.title.as_str()).collect();
    titles.join(" and ")
}

/// Returns the sentence on the most important violation.
pub(crate) fn headline(picture: &Picture) -> Option<&str> {
    picture.violations.first().map(|violation| violation.sentence.as_str())
}

/// Returns the link of an event, without the `#`: `e12`, and `f12` in a second picture.
pub(crate) fn anchor(picture: usize, number: usize) -> String {
    let letter = if picture == 0 { 'e' } else { 'f' };
    format!("{letter}{}", number + 1)
}

/// Formats a length in pixels, with one digit at most.
pub(crate) fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Returns a label. The baseline of its first line is at `y`.
fn text(label: &Label, class: &str, y: f64, line: f64) -> Markup {
    let anchor = label.is_left.then_some("end");
    html! {
        text class=(class) x=(px(label.x)) y=(px(y)) text-anchor=[anchor] {
            @if let [only] = &label.lines[..] { (only) } @else {
                @for (number, words) in label.lines.iter().enumerate() {
                    @let dy = (number > 0).then(|| px(line));
                    tspan x=(px(label.x)) dy=[dy] { (words) " " }
                }
            }
        }
    }
}

impl<'a> Drawing<'a> {
    pub(crate) fn of(pictures: &'a [Picture], form: Form, width: f64, differs: Option<usize>) -> Self {
        Self { pictures, first: 0, layout: Layout::of(pictures, form, width, differs) }
    }

    /// Returns the drawing as two parts of a page: the names of the lanes, and everything below them.
    pub(crate) fn inline(&self) -> Markup {
        let form = if self.is_wide() { "wide" } else { "narrow" };
        let (width, height, head) = (self.layout.width(), self.layout.height, self.layout.head);
        let size = |height: f64| format!("0 0 {} {}", px(width), px(height));
        html! {
            div.sheet data-form=(form) {
                svg.drawing.head width=(px(width)) height=(px(head)) viewBox=(size(head)) aria-hidden="true" {
                    g.drawing id=(self.id("head")) { (self.names()) }
                }
                svg.drawing.body width=(px(width)) height=(px(height)) viewBox=(size(height)) role="group"
                    aria-label=(format!("Drawing of {}", titles(self.pictures))) {
                    (self.defs())
                    g.drawing id=(self.id("body")) { (self.body()) }
                }
            }
        }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.layout.form == Form::Wide
    }

    /// Returns the x of the line of a lane's life.
    fn life(&self, picture: usize, lane: usize) -> f64 {
        self.layout.life(picture, lane)
    }

    /// Returns an id that no other drawing of the page has.
    fn id(&self, name: &str) -> String {
        format!("{name}-{}{}", if self.is_wide() { 'w' } else { 'n' }, self.first)
    }

    /// Returns a fill that is defined in [`Drawing::defs`].
    fn fill(&self, pattern: &str) -> String {
        format!("url(#{})", self.id(pattern))
    }

    fn defs(&self) -> Markup {
        html! {
            defs {
                pattern id=(self.id("hatch")) width="6" height="6" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)" { rect.hatch-line width="2.2" height="6" {} }
                pattern id=(self.id("cross")) width="6" height="6" patternUnits="userSpaceOnUse" {
                    path.cross-line d="M0 0L6 6M6 0L0 6" {}
                }
                pattern id=(self.id("dots")) width="4" height="4" patternUnits="userSpaceOnUse" {
                    circle.dots-dot cx="1.4" cy="1.4" r="1" {}
                }
                marker id=(self.id("tip")) viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7"
                    markerHeight="7" orient="auto-start-reverse" { path.tip d="M0 0.8L8 4L0 7.2z" {} }
            }
        }
    }

    fn names(&self) -> Markup {
        let is_several = self.pictures.len() > 1;
        let bottom = self.layout.head;
        html! {
            line.head-line x1="0" x2=(px(self.layout.width())) y1=(px(bottom - 0.5)) y2=(px(bottom - 0.5)) {}
            @for (number, picture) in self.pictures.iter().enumerate() {
                @for (lane, about) in picture.lanes.iter().enumerate() { (self.name(number, lane, about)) }
                @if is_several {
                    text.run x=(px(self.layout.x(number, 0) + 4.0)) y="14" { (picture.title) }
                }
            }
        }
    }

    fn name(&self, picture: usize, lane: usize, about: &Lane) -> Markup {
        let Name { x, row } = self.layout.names[picture][lane];
        let hue = about.hue.map_or("none".to_owned(), |hue| (hue % 6).to_string());
        let bottom = self.layout.head - 3.0;
        let y = bottom - row as f64 * self.layout.name_row();
        html! {
            g class=(format!("lane h{hue}")) data-lane=(lane) data-picture=(self.first + picture) {
                title { (about.name) ", " (about.role.as_str()) }
                @if row > 0 {
                    line.life x1=(px(x)) x2=(px(x)) y1=(px(y - 6.0)) y2=(px(bottom + 3.0)) {}
                }
                @if self.is_wide() {
                    rect.badge x=(px(x - 5.0)) y=(px(y - 25.0)) width="10" height="10" rx="2" {}
                    text.name x=(px(x + 12.0)) y=(px(y - 16.0)) { (about.name) }
                    text.role x=(px(x + 12.0)) y=(px(y - 2.0)) { (about.role.as_str()) }
                } @else {
                    rect.badge x=(px(x - 3.5)) y=(px(y - 11.0)) width="7" height="7" rx="1.5" {}
                    text.name.small x=(px(x + 6.0)) y=(px(y - 4.0)) { (about.name) }
                }
            }
        }
    }

    /// Returns everything below the names of the lanes.
    fn body(&self) -> Markup {
        html! {
            (self.ground())
            @for picture in 0..self.pictures.len() { (self.bars(picture)) }
            @for picture in 0..self.pictures.len() { (self.violation_lines(picture)) }
            (self.difference())
            @for picture in 0..self.pictures.len() { (self.messages(picture)) }
            @for picture in 0..self.pictures.len() { (self.events(picture)) }
        }
    }

    /// Returns the lines of the lanes, the times and the folds.
    fn ground(&self) -> Markup {
        let (height, right) = (self.layout.height, self.layout.width());
        html! {
            @for (number, picture) in self.pictures.iter().enumerate() {
                @for lane in 0..picture.lanes.len() {
                    @let x = px(self.life(number, lane));
                    @if self.is_wide() && lane % 2 == 1 {
                        rect.stripe x=(px(self.layout.x(number, lane))) width=(px(self.layout.lane))
                            height=(px(height)) {}
                    }
                    line.life x1=(x) x2=(x) y1="0" y2=(px(height)) {}
                }
            }
            @for (y, at) in &self.layout.ticks {
                text.time x=(px(self.layout.axis - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (at) }
            }
            @for (y, gap) in &self.layout.folds {
                rect.fold-band x="0" y=(px(y - 8.0)) width=(px(right)) height="16" {}
                path.fold d=(zigzag(self.layout.axis, right, *y)) {}
                text.fold-time x=(px(self.layout.axis - 8.0)) y=(px(y + 4.0)) text-anchor="end" {
                    (length(*gap))
                }
            }
        }
    }

    /// Returns the mark of the first difference between two runs.
    fn difference(&self) -> Markup {
        let right = px(self.layout.width());
        html! {
            @if let Some(y) = self.layout.difference {
                line.difference x1="0" x2=(right) y1=(px(y)) y2=(px(y)) {}
                text.difference-text x=(px(self.layout.width() - 4.0)) y=(px(y - 4.0)) text-anchor="end" {
                    "first difference"
                }
            }
        }
    }
}

/// Returns a torn line from `left` to `right`.
fn zigzag(left: f64, right: f64, y: f64) -> String {
    let steps = ((right - left) / 8.0) as usize;
    let point = |step: usize| {
        let dy = if step.is_multiple_of(2) { 2.5 } else { -2.5 };
        format!("L{} {}", px(left + step as f64 * 8.0), px(y + dy))
    };
    let points: String = (1..=steps).map(point).collect();
    format!("M{} {}{points}", px(left), px(y + 2.5))
}

/// Formats the length of a fold: `2.9 s`.
fn length(nanos: u64) -> String {
    match nanos {
        1_000_000_000.. => format!("{:.1} s", nanos as f64 / 1e9),
        _ => format!("{} ms", nanos / 1_000_000),
    }
}

/// The start of a page of HTML.
pub(crate) const HTML: PreEscaped<&str> = DOCTYPE;
