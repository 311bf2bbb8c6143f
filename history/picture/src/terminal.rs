//! A picture for a terminal: lanes as columns, in at most 100 columns of text.

use std::fmt::Write;

use crate::model::{Mark, Picture, Shape, SpanKind};

/// The width of the output, in columns.
const WIDTH: usize = 100;

/// The columns before the lanes, for the time.
const AXIS: usize = 10;

/// The width that the lanes share if they are few, in columns.
const LANES_WIDTH: usize = 44;

/// The largest width of the lanes, in columns: the words of the events need the rest.
const LANES_WIDTH_MAX: usize = 60;

/// The columns of a name in a lane that is wide enough for one.
const NAME_MIN: usize = 3;

/// The columns of the lanes.
#[derive(Clone, Copy)]
struct Columns {
    /// The width of a lane, with the space after it.
    lane: usize,
    /// The number of lanes that have a column. The others are named in their events.
    lanes: usize,
}

/// Returns the picture as text. `has_colours` adds the escape sequences of colours; leave them out if the
/// output is no terminal, or if the user has set `NO_COLOR`.
pub fn terminal(picture: &Picture, has_colours: bool) -> String {
    let columns = Columns::of(picture.lanes.len());
    let mut text = columns.head(picture);
    let mut before = None;
    for (number, mark) in picture.marks.iter().enumerate() {
        if before.is_some_and(|before: u64| mark.at.0 - before > 150_000_000) {
            let folded = format!("⋮{}", " ".repeat(columns.lane - 1)).repeat(columns.lanes);
            let _ = writeln!(text, "{:>8}  {}", "⋮", folded.trim_end());
        }
        before = Some(mark.at.0);
        text += &line(picture, number, mark, columns, has_colours);
        for violation in picture.violations.iter().filter(|violation| violation.mark == Some(number)) {
            let said = format!("✖ {}", violation.kind);
            let _ = writeln!(text, "{:>8}  {}", "", coloured(&said, 31, has_colours));
        }
    }
    text
}

impl Columns {
    fn of(lanes: usize) -> Self {
        let lane = (LANES_WIDTH / lanes.max(1)).clamp(NAME_MIN + 1, 9);
        // Many lanes are narrow; very many have no space between them.
        let lane = [lane, 2, 1].into_iter().find(|lane| lane * lanes <= LANES_WIDTH_MAX).unwrap_or(1);
        Self { lane, lanes: lanes.min(LANES_WIDTH_MAX) }
    }

    /// Returns the names of the lanes: in a line, or from top to bottom if the lanes are too narrow.
    fn head(self, picture: &Picture) -> String {
        let names: Vec<&str> = picture.lanes[..self.lanes].iter().map(|lane| lane.name.as_str()).collect();
        let room = self.lane - 1;
        let rows: Vec<Vec<String>> = if room >= NAME_MIN {
            vec![names.iter().map(|name| shortened(name, room)).collect()]
        } else {
            let length = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            let letter = |name: &&str, row| name.chars().nth(row).unwrap_or(' ').to_string();
            (0..length).map(|row| names.iter().map(|name| letter(name, row)).collect()).collect()
        };
        let mut text = String::new();
        for row in rows {
            let cells: String = row.iter().map(|cell| format!("{cell:<width$}", width = self.lane)).collect();
            text += (" ".repeat(AXIS) + &cells).trim_end();
            text.push('\n');
        }
        let left_out = &picture.lanes[self.lanes..];
        if !left_out.is_empty() {
            let _ = writeln!(text, "{}and {} more lanes, without a column", " ".repeat(AXIS), left_out.len());
        }
        text
    }
}

/// Shortens a name in its middle, so that `redis-1` and `redis-2` stay different.
fn shortened(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() {
        length if length <= width => name.to_owned(),
        length => letters[..width - 2].iter().chain(&letters[length - 2..]).collect(),
    }
}

/// Returns an event in one line, or in several if its words are too long for one.
fn line(picture: &Picture, number: usize, mark: &Mark, columns: Columns, has_colours: bool) -> String {
    let name = &picture.lanes[mark.lane].name;
    let room = WIDTH - AXIS - columns.lane * columns.lanes - 1;
    let is_wrong = picture.violations.iter().any(|violation| violation.mark == Some(number));
    let mut text = String::new();
    for (row, words) in wrapped(&format!("{name}: {}", mark.label), room).iter().enumerate() {
        let at = if row == 0 { mark.at.to_string() } else { String::new() };
        let graph = graph(picture, mark, row == 0, columns, has_colours);
        let words = if is_wrong { coloured(words, 31, has_colours) } else { words.clone() };
        let _ = writeln!(text, "{at:>8}  {graph} {words}");
    }
    text
}

/// Returns the lanes at the time of an event, with its symbol if `has_sign`.
fn graph(picture: &Picture, mark: &Mark, has_sign: bool, columns: Columns, has_colours: bool) -> String {
    let mut graph = String::new();
    for (index, about) in picture.lanes[..columns.lanes].iter().enumerate() {
        let is_here = has_sign && index == mark.lane;
        let sign = if is_here { sign(mark.shape) } else { state(picture, index, mark.at.0) };
        let colour = about.hue.map_or(37, |hue| [34, 33, 35, 36][hue % 4]);
        graph += &coloured(sign, colour, has_colours && about.hue.is_some());
        graph += &" ".repeat(columns.lane - 1);
    }
    graph
}

/// Breaks a text between words into lines of at most `room` characters; a longer word is broken, too.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let letters: Vec<char> = word.chars().collect();
        let mut pieces = letters.chunks(room).map(|piece| piece.iter().collect::<String>());
        let first = pieces.next().unwrap_or_default();
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length == 0 {
            lines[last] = first;
        } else if length + 1 + first.chars().count() <= room {
            lines[last] += &format!(" {first}");
        } else {
            lines.push(first);
        }
        lines.extend(pieces);
    }
    lines
}
/// Returns the sign of the state of a lane at a time: that of its most important bar.
fn state(picture: &Picture, lane: usize, at: u64) -> &'static str {
    let bars = picture.spans.iter();
    let here = bars.filter(|span| span.lane == lane && span.from.at.0 <= at && at < span.to.at.0);
    let most = here.map(|span| match span.kind {
        SpanKind::Down => (6, " "),
        SpanKind::Pause => (5, "▒"),
        SpanKind::Section => (4, "█"),
        SpanKind::Belief => (3, "▌"),
        SpanKind::Stored | SpanKind::Link => (2, "▐"),
        SpanKind::Lease | SpanKind::Margin => (1, "░"),
        SpanKind::Wait | SpanKind::Clock => (0, "┊"),
    });
    most.max().map_or("│", |(_, sign)| sign)
}

const fn sign(shape: Shape) -> &'static str {
    match shape {
        Shape::Dot => "●",
        Shape::Step => "·",
        Shape::Request => "▶",
        Shape::Grant => "◆",
        Shape::End => "○",
        Shape::Accepted => "✔",
        Shape::Refused => "✘",
        Shape::Down => "‖",
        Shape::Up => "▷",
        Shape::Fault => "ϟ",
    }
}

fn coloured(text: &str, colour: u8, is_on: bool) -> String {
    if is_on { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
}
