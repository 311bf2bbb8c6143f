//! Places a picture: time runs downwards, lanes are columns. Time is not to scale: each event has a line of
//! its lane, and a long time in which nothing happens is folded.

use std::collections::BTreeMap;

use resource::audit::Nanos;

use crate::model::{Edge, Picture};
use crate::run::Fate;

/// The form of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For wide screens and paper: labels stay in the columns of their lanes.
    Wide,
    /// For phones: narrow lanes, and labels that run over other lanes. No two events share a line.
    Narrow,
}

/// Gaps longer than this are folded.
const FOLD_NANOS: u64 = 150_000_000;

/// The height of a line of text, in pixels.
const LINE: f64 = 17.0;

/// The height of a fold, in pixels.
const FOLD: f64 = 34.0;

/// The space above the first line, in pixels.
const TOP: f64 = 14.0;

/// The place of everything in a drawing. Lengths are in pixels.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) form: Form,
    /// The left end of the first lane: the times stand before it.
    pub(crate) axis: f64,
    /// The width of a lane.
    pub(crate) lane: f64,
    /// The number of lanes, of all pictures.
    pub(crate) lanes: usize,
    /// The first lane of each picture.
    pub(crate) first_lanes: Vec<usize>,
    /// The space between two pictures.
    pub(crate) between: f64,
    /// The lines of events, by picture.
    pub(crate) marks: Vec<Vec<f64>>,
    /// The places of times at which something other than an event happens.
    times: BTreeMap<Nanos, f64>,
    /// The lines of messages, by picture: of sending and of arrival or loss.
    pub(crate) arrows: Vec<Vec<(f64, f64)>>,
    /// Folded gaps: their middles and lengths.
    pub(crate) folds: Vec<(f64, u64)>,
    /// The times that the axis shows.
    pub(crate) ticks: Vec<(f64, Nanos)>,
    pub(crate) height: f64,
}

/// Something to place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Time,
    Arrival { picture: usize, arrow: usize },
    Mark { picture: usize, mark: usize },
    Sending { picture: usize, arrow: usize },
}

impl Layout {
    /// Places the pictures beside each other, with a common axis of time.
    pub(crate) fn of(pictures: &[Picture], form: Form, width: f64) -> Self {
        let counts: Vec<usize> = pictures.iter().map(|picture| picture.lanes.len()).collect();
        let lanes: usize = counts.iter().sum();
        let (axis, between) = if form == Form::Wide { (58.0, 28.0) } else { (44.0, 8.0) };
        let free = width - axis - between * counts.len().saturating_sub(1) as f64;
        let (least, most) = if form == Form::Wide { (150.0, 250.0) } else { (20.0, 76.0) };
        let lane = (free / lanes.max(1) as f64).clamp(least, most);
        let first_lanes = counts.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)));
        let mut layout = Self {
            form,
            axis,
            lane,
            lanes,
            first_lanes: first_lanes.collect(),
            between,
            marks: pictures.iter().map(|picture| vec![0.0; picture.marks.len()]).collect(),
            times: BTreeMap::new(),
            arrows: pictures.iter().map(|picture| vec![(0.0, 0.0); picture.arrows.len()]).collect(),
            folds: Vec::new(),
            ticks: Vec::new(),
            height: 0.0,
        };
        layout.place(pictures, &items(pictures));
        layout
    }

    pub(crate) fn width(&self) -> f64 {
        let gaps = self.first_lanes.len().saturating_sub(1) as f64;
        self.axis + self.lane * self.lanes as f64 + gaps * self.between
    }

    /// Returns the left end of a lane.
    pub(crate) fn x(&self, picture: usize, lane: usize) -> f64 {
        let number = self.first_lanes[picture] + lane;
        self.axis + self.lane * number as f64 + self.between * picture as f64
    }

    /// Returns the line of the end of a bar.
    pub(crate) fn y(&self, picture: usize, edge: Edge) -> f64 {
        match edge.mark {
            Some(mark) => self.marks[picture][mark],
            None => self.times.get(&edge.at).copied().unwrap_or(self.height - LINE),
        }
    }

    fn place(&mut self, pictures: &[Picture], items: &[(Nanos, Item)]) {
        let mut lines: BTreeMap<usize, f64> = BTreeMap::new();
        let (mut y, mut before) = (TOP, items.first().map_or(Nanos(0), |(at, _)| *at));
        for (at, item) in items {
            let gap = at.0.saturating_sub(before.0);
            if gap > FOLD_NANOS {
                let lowest = lines.values().copied().fold(y, f64::max);
                self.folds.push((lowest + FOLD / 2.0 + 4.0, gap));
                y = lowest + FOLD + 8.0;
            } else if gap > 0 {
                // From 4 pixels for some microseconds to 14 for 100 ms.
                y += 4.0 + (gap as f64 / 1e6 + 1.0).log10() * 5.0;
            }
            before = *at;
            let lane = match *item {
                Item::Time | Item::Arrival { .. } => None,
                Item::Mark { picture, mark } => Some((picture, pictures[picture].marks[mark].lane)),
                Item::Sending { picture, arrow } => Some((picture, pictures[picture].arrows[arrow].from)),
            };
            if let Some((picture, lane)) = lane {
                // Side by side, equal events of both runs stand in one line.
                let line = match self.form {
                    Form::Wide => self.first_lanes[picture] + lane,
                    Form::Narrow => picture,
                };
                let free = lines.get(&line).map_or(y, |last| last + LINE);
                y = y.max(free);
                lines.insert(line, y + self.extra(pictures, *item));
            }
            self.put(*item, *at, y);
        }
        self.height = lines.values().copied().fold(y, f64::max) + LINE * 1.5;
    }

    /// Returns the space that an event needs below its line: for the names of the violations.
    fn extra(&self, pictures: &[Picture], item: Item) -> f64 {
        let Item::Mark { picture, mark } = item else { return 0.0 };
        let violations = &pictures[picture].violations;
        let here = violations.iter().filter(|violation| violation.mark == Some(mark)).count();
        here as f64 * 20.0 + if here > 0 { 4.0 } else { 0.0 }
    }

    fn put(&mut self, item: Item, at: Nanos, y: f64) {
        match item {
            Item::Time => {
                self.times.insert(at, y);
            }
            Item::Mark { picture, mark } => self.marks[picture][mark] = y,
            Item::Arrival { picture, arrow } => self.arrows[picture][arrow].1 = y,
            Item::Sending { picture, arrow } => self.arrows[picture][arrow].0 = y,
        }
        let is_free = self.ticks.last().is_none_or(|(last, _)| y - last >= LINE - 1.0);
        if is_free {
            self.ticks.push((y, at));
        }
    }
}

/// Returns everything to place, in the order of time: what arrives comes before the events that it causes,
/// what is sent after those that cause it.
fn items(pictures: &[Picture]) -> Vec<(Nanos, Item)> {
    let mut items = Vec::new();
    for (number, picture) in pictures.iter().enumerate() {
        let marks = picture.marks.iter().enumerate();
        items.extend(marks.map(|(mark, event)| (event.at, Item::Mark { picture: number, mark })));
        for span in &picture.spans {
            let loose = [span.from, span.to].into_iter().filter(|edge| edge.mark.is_none());
            items.extend(loose.map(|edge| (edge.at, Item::Time)));
        }
        let loose = picture.violations.iter().filter(|violation| violation.mark.is_none());
        items.extend(loose.map(|violation| (violation.at, Item::Time)));
        for (arrow, message) in picture.arrows.iter().enumerate() {
            items.push((message.sent, Item::Sending { picture: number, arrow }));
            let to = match message.fate {
                Fate::Arrived { at, .. } | Fate::Lost { at } => Nanos(at),
                Fate::Held => message.sent,
            };
            items.push((to, Item::Arrival { picture: number, arrow }));
        }
    }
    items.sort_by_key(|(at, item)| (*at, order(*item)));
    items.dedup();
    items
}

/// Returns the order of items of one time. Events keep their order; those of two runs alternate.
const fn order(item: Item) -> (usize, usize, usize) {
    match item {
        Item::Time => (0, 0, 0),
        Item::Arrival { picture, arrow } => (1, arrow, picture),
        Item::Mark { picture, mark } => (2, mark, picture),
        Item::Sending { picture, arrow } => (3, arrow, picture),
    }
}
