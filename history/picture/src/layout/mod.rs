//! Places a picture: time runs downwards, lanes are columns. Time is not to scale: an item that would overlap
//! another is moved down, and a long time in which nothing happens is folded.

mod areas;
mod items;
mod label;
mod names;

use std::collections::BTreeMap;

use history::{Fate, Nanos};

use self::areas::{Area, Areas};
use self::items::{Item, items};
use self::label::Space;
pub(crate) use self::label::{LABEL_LINE, Label, WORDS_LINE};
pub(crate) use self::names::Name;
use crate::model::{Arrow, Edge, Picture};

/// The form of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For wide screens and paper.
    Wide,
    /// For phones: narrow lanes, and events far enough apart for a finger.
    Narrow,
}

/// Gaps longer than this are folded.
const FOLD_NANOS: u64 = 150_000_000;

/// The least distance between two times beside the drawing, in pixels.
const LINE: f64 = 17.0;

/// The height of a fold, in pixels.
const FOLD: f64 = 34.0;

/// The space above the first line, in pixels.
const TOP: f64 = 14.0;

/// The space between the line of an event and the line that marks its violations, in pixels.
pub(crate) const VIOLATION: f64 = 11.0;

/// The height of the name of a violation, in pixels.
pub(crate) const TAG: f64 = 20.0;

/// The part of its way after which a message ends that is lost, or held to the end.
pub(crate) const LOST_WAY: f64 = 0.6;

/// The place of everything in a drawing. Lengths are in pixels.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) form: Form,
    /// The left end of the first lane: the times stand before it.
    pub(crate) axis: f64,
    pub(crate) lane: f64,
    /// The number of lanes of all pictures together.
    lanes: usize,
    first_lanes: Vec<usize>,
    /// The space after the last lane of a picture, for the lane's name and for labels.
    between: f64,
    /// The names of the lanes, by picture.
    pub(crate) names: Vec<Vec<Name>>,
    /// The height of the names of the lanes.
    pub(crate) head: f64,
    /// Additional space on the right, for names that need it.
    margin: f64,
    /// The lines of events, by picture.
    pub(crate) marks: Vec<Vec<f64>>,
    /// The labels of events, by picture.
    pub(crate) labels: Vec<Vec<Label>>,
    /// The lines of times at which something other than an event happens.
    times: BTreeMap<Nanos, f64>,
    /// The lines of violations without an event, by their picture and number.
    loose: BTreeMap<(usize, usize), f64>,
    /// The lines of messages, by picture: the line of the sending, and that of the arrival or loss.
    pub(crate) arrows: Vec<Vec<(f64, f64)>>,
    /// The words of messages, by picture.
    pub(crate) words: Vec<Vec<Label>>,
    /// The texts of wrong clocks, by picture and bar.
    pub(crate) clocks: BTreeMap<(usize, usize), (f64, Label)>,
    /// The line before the first difference between two pictures.
    pub(crate) difference: Option<f64>,
    /// Folded gaps: their middles and lengths.
    pub(crate) folds: Vec<(f64, u64)>,
    /// The times that the axis shows.
    pub(crate) ticks: Vec<(f64, Nanos)>,
    /// Lines at which a page may end: no label is there.
    pub(crate) cuts: Vec<f64>,
    pub(crate) height: f64,
}

impl Layout {
    /// Places the pictures beside each other, with a common axis of time. `differs` is the number of the
    /// first event that differs between two runs.
    pub(crate) fn of(pictures: &[Picture], form: Form, width: f64, differs: Option<usize>) -> Self {
        let counts: Vec<usize> = pictures.iter().map(|picture| picture.lanes.len()).collect();
        let lanes: usize = counts.iter().sum();
        let (axis, between) = if form == Form::Wide { (58.0, 28.0) } else { (50.0, 60.0) };
        let free = width - axis - between * counts.len() as f64;
        let (least, most) = if form == Form::Wide { (80.0, 250.0) } else { (20.0, 76.0) };
        let lane = (free / lanes.max(1) as f64).clamp(least, most);
        let first_lanes = counts.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)));
        let mut layout = Self {
            form,
            axis,
            lane,
            lanes,
            first_lanes: first_lanes.collect(),
            between,
            names: Vec::new(),
            head: 0.0,
            margin: 0.0,
            marks: pictures.iter().map(|picture| vec![0.0; picture.marks.len()]).collect(),
            labels: pictures.iter().map(|picture| vec![Label::default(); picture.marks.len()]).collect(),
            times: BTreeMap::new(),
            loose: BTreeMap::new(),
            arrows: pictures.iter().map(|picture| vec![(0.0, 0.0); picture.arrows.len()]).collect(),
            words: pictures.iter().map(|picture| vec![Label::default(); picture.arrows.len()]).collect(),
            clocks: BTreeMap::new(),
            difference: None,
            folds: Vec::new(),
            ticks: Vec::new(),
            cuts: Vec::new(),
            height: 0.0,
        };
        if form == Form::Narrow {
            // A few lanes don't fill the width of a phone, so their labels get the rest.
            layout.between += (width - layout.width()).max(0.0);
        }
        layout.place_names(pictures);
        layout.place(pictures, &items(pictures), differs);
        layout
    }

    pub(crate) fn width(&self) -> f64 {
        let pictures = self.first_lanes.len() as f64;
        self.axis + self.lane * self.lanes as f64 + pictures * self.between + self.margin
    }

    /// Returns the left end of a lane.
    pub(crate) fn x(&self, picture: usize, lane: usize) -> f64 {
        let number = self.first_lanes[picture] + lane;
        self.axis + self.lane * number as f64 + self.between * picture as f64
    }

    /// Returns the x of the line of a lane's life.
    pub(crate) fn life(&self, picture: usize, lane: usize) -> f64 {
        let x = self.x(picture, lane);
        if self.is_wide() { x + 34.0 } else { x + (self.lane / 2.0).min(18.0) }
    }

    /// Returns the left and the right end of a picture.
    pub(crate) fn ends(&self, picture: usize) -> (f64, f64) {
        let next = self.first_lanes.get(picture + 1).copied().unwrap_or(self.lanes);
        let lanes = next - self.first_lanes[picture];
        (self.x(picture, 0), self.x(picture, lanes) + self.between - 8.0)
    }

    /// Returns the line of the end of a bar.
    pub(crate) fn y(&self, picture: usize, edge: Edge) -> f64 {
        match edge.mark {
            Some(mark) => self.marks[picture][mark],
            None => self.times.get(&edge.at).copied().unwrap_or(self.height - LINE),
        }
    }

    /// Returns the line through a violation.
    pub(crate) fn violation_y(&self, pictures: &[Picture], picture: usize, number: usize) -> f64 {
        match pictures[picture].violations[number].mark {
            Some(mark) => self.marks[picture][mark] + self.labels[picture][mark].more(LABEL_LINE) + VIOLATION,
            None => self.loose.get(&(picture, number)).copied().unwrap_or(self.height - LINE),
        }
    }

    /// Returns the left end of the name of a violation that is `width` wide.
    pub(crate) fn tag_x(&self, pictures: &[Picture], picture: usize, number: usize, width: f64) -> f64 {
        let drawn = &pictures[picture];
        let (left, right) = self.ends(picture);
        let lane = drawn.violations[number].mark.map(|mark| drawn.marks[mark].lane);
        let x = lane.map_or(left + 4.0, |lane| self.life(picture, lane) + 11.0);
        x.min(right - width - 2.0)
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.form == Form::Wide
    }

    fn place_names(&mut self, pictures: &[Picture]) {
        let size = if self.is_wide() { 14.0 } else { 11.0 };
        let mut lanes = Vec::new();
        for (number, picture) in pictures.iter().enumerate() {
            for (lane, about) in picture.lanes.iter().enumerate() {
                let below = if self.is_wide() { about.role.as_str() } else { "" };
                let width = names::name_width(&about.name, size, below) + 18.0;
                lanes.push((self.life(number, lane), width));
            }
        }
        let (right, ends) = (self.width(), lanes.iter().map(|(x, width)| x + width));
        self.margin = ends.fold(0.0, |margin, end| f64::max(margin, end - right));
        let mut placed = names::rows(&lanes);
        let rows = placed.iter().map(|name| name.row + 1).max().unwrap_or(1);
        let (row, title) = (self.name_row(), if pictures.len() > 1 { 20.0 } else { 4.0 });
        self.head = title + row * rows as f64 + 3.0;
        self.names = pictures.iter().map(|picture| placed.drain(..picture.lanes.len()).collect()).collect();
    }

    /// Returns the height of a row of names.
    pub(crate) fn name_row(&self) -> f64 {
        if self.is_wide() { 31.0 } else { 16.0 }
    }

    fn place(&mut self, pictures: &[Picture], items: &[(Nanos, Item)], differs: Option<usize>) {
        let mut areas = Areas::default();
        let (mut y, mut before) = (TOP, items.first().map_or(Nanos(0), |(at, _)| *at));
        for (at, item) in items {
            let gap = at.0.saturating_sub(before.0);
            if gap > FOLD_NANOS {
                let middle = areas.lowest().max(y) + FOLD / 2.0;
                areas.take(middle, &[Area { left: 0.0, right: f64::MAX, above: 9.0, below: 9.0 }]);
                self.folds.push((middle, gap));
                y = middle + FOLD / 2.0 + 8.0;
            } else if gap > 0 {
                // 4 pixels for some microseconds, 14 for 100 ms.
                y += 4.0 + (gap as f64 / 1e6 + 1.0).log10() * 5.0;
            }
            before = *at;
            y = self.before_difference(*item, differs, &mut areas, y);
            let wanted = self.areas(pictures, *item);
            y = areas.free(y, &wanted);
            let above = wanted.iter().map(|area| area.above).fold(0.0, f64::max);
            if !wanted.is_empty() && areas.lowest() < y - above {
                self.cuts.push(f64::midpoint(areas.lowest(), y - above));
            }
            areas.take(y, &wanted);
            self.put(*item, *at, y);
        }
        self.height = areas.lowest().max(y) + LINE;
    }

    /// Places the line before the first difference, if `item` is the first event that differs.
    fn before_difference(&mut self, item: Item, differs: Option<usize>, areas: &mut Areas, y: f64) -> f64 {
        let is_first = matches!(item, Item::Mark { mark, .. } if Some(mark) == differs);
        if !is_first || self.difference.is_some() {
            return y;
        }
        let whole = [Area { left: 0.0, right: self.width(), above: 16.0, below: 3.0 }];
        let y = areas.free(y, &whole);
        areas.take(y, &whole);
        self.difference = Some(y);
        y
    }

    /// Returns the areas that an item takes around its line, and keeps its label.
    fn areas(&mut self, pictures: &[Picture], item: Item) -> Vec<Area> {
        match item {
            Item::Time => Vec::new(),
            Item::Mark { picture, mark } => self.mark_areas(pictures, picture, mark),
            Item::Violation { picture, violation } => {
                let mut areas = Vec::new();
                self.violation_areas(pictures, picture, violation, 0.0, &mut areas);
                areas
            }
            Item::Sending { picture, arrow } => {
                self.sending_areas(picture, arrow, &pictures[picture].arrows[arrow])
            }
            Item::Arrival { picture, arrow } => self.arrival_areas(picture, &pictures[picture].arrows[arrow]),
            Item::Clock { picture, span } => {
                let bar = &pictures[picture].spans[span];
                let x = self.x(picture, bar.lane);
                let (left, right) = self.ends(picture);
                let space = Space {
                    right: (x + 8.0, right),
                    left: (x + self.lane - 8.0, left),
                    prefers_left: self.is_wide(),
                };
                let label = Label::words(&bar.label, space);
                let area = label.area(8.0, 8.0 + label.more(WORDS_LINE));
                self.clocks.insert((picture, span), (0.0, label));
                vec![area]
            }
        }
    }

    fn mark_areas(&mut self, pictures: &[Picture], picture: usize, number: usize) -> Vec<Area> {
        let drawn = &pictures[picture];
        let mark = &drawn.marks[number];
        let (x, (left, right)) = (self.life(picture, mark.lane), self.ends(picture));
        let (gap, half) = if self.is_wide() { (36.0, 8.5) } else { (14.0, 12.0) };
        let space = Space { right: (x + 13.0, right), left: (x - gap, left), prefers_left: false };
        let label = Label::event(&mark.label, space);
        let more = label.more(LABEL_LINE);
        let symbol = Area { left: x - 7.0, right: x + 7.0, above: half, below: half };
        let mut areas = vec![symbol, label.area(half, half + more)];
        self.labels[picture][number] = label;
        let here =
            drawn.violations.iter().enumerate().filter(|(_, violation)| violation.mark == Some(number));
        for (nth, (violation, _)) in here.enumerate() {
            let down = more + VIOLATION + nth as f64 * TAG;
            self.violation_areas(pictures, picture, violation, down, &mut areas);
        }
        areas
    }

    /// Adds the areas of the line of a violation and of its name, `down` below the line of its event.
    fn violation_areas(
        &self,
        pictures: &[Picture],
        picture: usize,
        number: usize,
        down: f64,
        areas: &mut Vec<Area>,
    ) {
        let (left, right) = self.ends(picture);
        areas.push(Area { left, right, above: 1.5 - down, below: down + 1.5 });
        let width = tag_width(&pictures[picture].violations[number].kind.to_string());
        let x = self.tag_x(pictures, picture, number, width);
        areas.push(Area { left: x, right: x + width, above: -down, below: down + TAG });
    }

    fn sending_areas(&mut self, picture: usize, number: usize, arrow: &Arrow) -> Vec<Area> {
        let (x, to) = (self.life(picture, arrow.from), self.life(picture, arrow.to));
        let (left, right) = self.ends(picture);
        // The words are above the line, which leads to the receiver.
        let space = Space { right: (x + 12.0, right), left: (x - 12.0, left), prefers_left: to < x };
        let label = Label::words(&arrow.told(), space);
        let mut areas = vec![label.area(13.5 + label.more(WORDS_LINE), 2.0)];
        self.words[picture][number] = label;
        if matches!(arrow.fate, Fate::Held | Fate::Lost { .. }) && !arrow.is_long() {
            let end = x + (to - x) * LOST_WAY;
            areas.push(Area { left: end - 6.0, right: end + 6.0, above: 2.0, below: 20.0 });
        }
        areas
    }

    /// Returns the area of the tip of an arrow, where the line would cross a label.
    fn arrival_areas(&self, picture: usize, arrow: &Arrow) -> Vec<Area> {
        let (from, to) = (self.life(picture, arrow.from), self.life(picture, arrow.to));
        let (left, right) = match arrow.fate {
            Fate::Arrived { .. } if from > to => (to + 9.0, to + 50.0),
            Fate::Arrived { .. } => (to - 50.0, to - 9.0),
            Fate::Lost { .. } if arrow.is_long() => {
                let end = from + (to - from) * LOST_WAY;
                (end - 6.0, end + 6.0)
            }
            Fate::Held | Fate::Lost { .. } => return Vec::new(),
        };
        vec![Area { left, right, above: 2.0, below: 2.0 }]
    }

    fn put(&mut self, item: Item, at: Nanos, y: f64) {
        match item {
            Item::Time => {
                self.times.insert(at, y);
            }
            Item::Mark { picture, mark } => self.marks[picture][mark] = y,
            Item::Arrival { picture, arrow } => self.arrows[picture][arrow].1 = y,
            Item::Sending { picture, arrow } => self.arrows[picture][arrow].0 = y,
            Item::Violation { picture, violation } => {
                self.loose.insert((picture, violation), y);
            }
            Item::Clock { picture, span } => {
                if let Some(clock) = self.clocks.get_mut(&(picture, span)) {
                    clock.0 = y;
                }
            }
        }
        let is_free = self.ticks.last().is_none_or(|(last, _)| y - last >= LINE - 1.0);
        if is_free {
            self.ticks.push((y, at));
        }
    }
}

/// Returns the width of the name of a violation with its frame, in pixels.
pub(crate) fn tag_width(kind: &str) -> f64 {
    crate::width::width(&format!("✖ {kind}"), crate::width::Font::Bold, 12.0) + 12.0
}
