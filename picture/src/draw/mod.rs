//! The drawing: SVG, for the page and as a file of its own.

mod arrows;
mod bars;
mod marks;
mod thumbnail;

pub(crate) use marks::symbol;
pub use thumbnail::thumbnail;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::layout::{Form, Layout};
use crate::model::Picture;

/// The style of a drawing, without that of the page around it.
pub(crate) const STYLE: &str = include_str!("drawing.css");

/// The height of the names of the lanes, in pixels.
const HEAD: f64 = 46.0;

/// A drawing that is being made.
pub(crate) struct Drawing<'a> {
    pub(crate) pictures: &'a [Picture],
    pub(crate) layout: Layout,
}

/// Returns a drawing as an SVG document of its own, 1200 pixels wide or wider.
pub fn svg(pictures: &[Picture]) -> String {
    let drawing = Drawing::of(pictures, Form::Wide, 1200.0);
    let (width, height) = (drawing.layout.width(), drawing.layout.height + HEAD);
    let sentences: Vec<&str> = pictures.iter().filter_map(|picture| headline(picture)).collect();
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="drawing file" role="img" width=(px(width))
            height=(px(height)) viewBox=(format!("0 0 {} {}", px(width), px(height))) {
            title { (titles(pictures)) }
            desc { (sentences.join(" ")) }
            style { (PreEscaped(STYLE)) }
            rect.paper width=(px(width)) height=(px(height)) {}
            (drawing.defs())
            (drawing.head())
            g transform=(format!("translate(0 {HEAD})")) { (drawing.body()) }
        }
    };
    markup.into_string() + "\n"
}

/// Returns the titles of the pictures.
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

/// Cuts a text to a number of characters.
pub(crate) fn cut(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let kept: String = text.chars().take(length.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}

impl<'a> Drawing<'a> {
    pub(crate) fn of(pictures: &'a [Picture], form: Form, width: f64) -> Self {
        Self { pictures, layout: Layout::of(pictures, form, width) }
    }

    /// Returns the drawing as two parts of a page: the names of the lanes, and all below them.
    pub(crate) fn inline(&self) -> Markup {
        let form = if self.is_wide() { "wide" } else { "narrow" };
        let (width, height) = (self.layout.width(), self.layout.height);
        let size = |height: f64| format!("0 0 {} {}", px(width), px(height));
        html! {
            div.sheet data-form=(form) {
                svg.drawing.head width=(px(width)) height=(px(HEAD)) viewBox=(size(HEAD)) aria-hidden="true" {
                    (self.head())
                }
                svg.drawing.body width=(px(width)) height=(px(height)) viewBox=(size(height)) role="group"
                    aria-label=(format!("Drawing of {}", titles(self.pictures))) {
                    (self.defs())
                    (self.body())
                }
            }
        }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.layout.form == Form::Wide
    }

    /// Returns the x of the line of a lane's life.
    fn life(&self, picture: usize, lane: usize) -> f64 {
        let x = self.layout.x(picture, lane);
        if self.is_wide() { x + 34.0 } else { x + (self.layout.lane / 2.0).min(18.0) }
    }

    /// Returns a fill that is defined in [`Drawing::defs`].
    fn fill(&self, pattern: &str) -> String {
        format!("url(#{pattern}-{})", if self.is_wide() { 'w' } else { 'n' })
    }

    fn defs(&self) -> Markup {
        let id = |name: &str| format!("{name}-{}", if self.is_wide() { 'w' } else { 'n' });
        html! {
            defs {
                pattern id=(id("hatch")) width="6" height="6" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)" { rect.hatch-line width="2.2" height="6" {} }
                pattern id=(id("cross")) width="6" height="6" patternUnits="userSpaceOnUse" {
                    path.cross-line d="M0 0L6 6M6 0L0 6" {}
                }
                pattern id=(id("dots")) width="4" height="4" patternUnits="userSpaceOnUse" {
                    circle.dots-dot cx="1.4" cy="1.4" r="1" {}
                }
                marker id=(id("tip")) viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7"
                    orient="auto-start-reverse" { path.tip d="M0 0.8L8 4L0 7.2z" {} }
            }
        }
    }

    /// Returns the names of the lanes.
    fn head(&self) -> Markup {
        let is_several = self.pictures.len() > 1;
        html! {
            @for (number, picture) in self.pictures.iter().enumerate() {
                @for (lane, about) in picture.lanes.iter().enumerate() {
                    @let room = (self.layout.lane / if self.is_wide() { 7.6 } else { 6.4 }) as usize;
                    @let middle = self.life(number, lane);
                    @let hue = about.hue.map_or("none".to_owned(), |hue| (hue % 6).to_string());
                    g class=(format!("lane h{hue}")) {
                        @if self.is_wide() {
                            rect.badge x=(px(middle - 5.0)) y="24" width="10" height="10" rx="2" {}
                            text.name x=(px(middle + 12.0)) y="33" { (cut(&about.name, room)) }
                            text.role x=(px(middle + 12.0)) y="44" { (about.role.as_str()) }
                        } @else {
                            @let name = short_name(&about.name, room.max(3));
                            text.name.small x=(px(middle)) y="36" text-anchor="middle" { (name) }
                            title { (about.name) ", " (about.role.as_str()) }
                        }
                    }
                }
                @if is_several {
                    text.run x=(px(self.layout.x(number, 0) + 4.0)) y="14" { (picture.title) }
                }
            }
        }
    }

    /// Returns all below the names of the lanes.
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
        let [one, other] = self.pictures else { return html! {} };
        let pairs = one.marks.iter().zip(&other.marks);
        let equal = pairs.take_while(|(one, other)| (one.at, &one.text) == (other.at, &other.text)).count();
        if equal >= one.marks.len() || equal >= other.marks.len() {
            return html! {};
        }
        let y = self.layout.marks[0][equal].min(self.layout.marks[1][equal]) - 9.0;
        let right = self.layout.width();
        html! {
            line.difference x1="0" x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            text.difference-text x=(px(right - 4.0)) y=(px(y - 3.0)) text-anchor="end" {
                "first difference"
            }
        }
    }
}

/// Shortens the name of a process: `redis-1` to `r-1`.
fn short_name(name: &str, room: usize) -> String {
    match name.rsplit_once('-') {
        _ if name.chars().count() <= room => name.to_owned(),
        Some((word, number)) => {
            format!("{}-{number}", cut(word, room.saturating_sub(number.len() + 1).max(1))).replace('…', "")
        }
        None => name.chars().take(room).collect(),
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

/// The begin of a page of HTML.
pub(crate) const HTML: PreEscaped<&str> = DOCTYPE;
