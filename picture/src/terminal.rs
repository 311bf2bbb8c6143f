//! A picture for a terminal: lanes as columns, in at most 100 columns of text.

use std::fmt::Write;

use crate::model::{Mark, Picture, Shape, SpanKind};

/// The width of the output, in columns.
const WIDTH: usize = 100;

/// The part of it that the lanes share, if they are few.
const LANES_WIDTH: usize = 44;

/// Returns the picture as text. `has_colours` adds the escape sequences of colours; a caller leaves them out
/// where the output is no terminal, or where the user has set `NO_COLOR`.
pub fn terminal(picture: &Picture, has_colours: bool) -> String {
    let lanes = picture.lanes.len().max(1);
    let lane = (LANES_WIDTH / lanes).saturating_sub(1).clamp(3, 8);
    let mut text = format!("{:>8}  ", "");
    for about in &picture.lanes {
        let _ = write!(text, "{:<lane$} ", shortened(&about.name, lane));
    }
    text = text.trim_end().to_owned() + "\n";
    let mut before = None;
    for (number, mark) in picture.marks.iter().enumerate() {
        if before.is_some_and(|before: u64| mark.at.0 - before > 150_000_000) {
            let _ = writeln!(text, "{:>8}  {}", "⋮", vec!["⋮"; lanes].join(&" ".repeat(lane)));
        }
        before = Some(mark.at.0);
        text += &line(picture, number, mark, lane, has_colours);
        for violation in picture.violations.iter().filter(|violation| violation.mark == Some(number)) {
            let said = format!("✖ {}", violation.kind);
            let _ = writeln!(text, "{:>8}  {}", "", coloured(&said, 31, has_colours));
        }
    }
    text
}

/// Shortens a name in its middle, so that `redis-1` and `redis-2` stay different.
fn shortened(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() {
        length if length <= width => name.to_owned(),
        length => letters[..width - 2].iter().chain(&letters[length - 2..]).collect(),
    }
}

fn line(picture: &Picture, number: usize, mark: &Mark, lane: usize, has_colours: bool) -> String {
    let mut graph = String::new();
    for (index, about) in picture.lanes.iter().enumerate() {
        let sign = if index == mark.lane { sign(mark.shape) } else { state(picture, index, mark.at.0) };
        let colour = about.hue.map_or(37, |hue| [34, 33, 35, 36][hue % 4]);
        graph += &coloured(sign, colour, has_colours && about.hue.is_some());
        graph += &" ".repeat(lane);
    }
    let used = 10 + picture.lanes.len() * (lane + 1);
    let name = &picture.lanes[mark.lane].name;
    let room = WIDTH.saturating_sub(used).max(8);
    let words: String = format!("{name}: {}", mark.label).chars().take(room).collect();
    let is_wrong = picture.violations.iter().any(|violation| violation.mark == Some(number));
    let words = if is_wrong { coloured(&words, 31, has_colours) } else { words };
    format!("{:>8}  {graph}{words}\n", mark.at.to_string())
}

/// Returns the sign of what a lane is in at a time: the most important of its bars.
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
