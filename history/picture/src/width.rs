//! The width of text in a drawing. Readers have different fonts; these are the widths of DejaVu, which is
//! wider than the other fonts of the style, so that a text always fits.

/// The style of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Font {
    /// Labels, which may be bold: all are measured as bold.
    Bold,
    /// The words of messages.
    Mono,
}

/// The widths of the characters from `' '` to `'~'` in DejaVu Sans Bold, in hundredths of the font size.
const BOLD: [u8; 95] = [
    35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70,
    40, 40, 84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85, 73, 85, 77, 72,
    68, 81, 77, 110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104,
    71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84,
];

/// The width of any other character: the width of the widest ones.
const OTHER: u8 = 104;

/// The width of a character of DejaVu Sans Mono.
const MONO: u8 = 61;

/// Returns the width of a text in pixels, at a font size in pixels.
pub(crate) fn width(text: &str, font: Font, size: f64) -> f64 {
    let of = |letter: char| match (font, letter.is_ascii()) {
        (Font::Mono, true) => MONO,
        (Font::Mono, false) | (Font::Bold, false) => OTHER,
        (Font::Bold, true) => {
            BOLD.get((letter as usize).saturating_sub(' ' as usize)).copied().unwrap_or(OTHER)
        }
    };
    text.chars().map(|letter| f64::from(of(letter))).sum::<f64>() / 100.0 * size
}

/// Breaks a text between words into lines that are at most `room` pixels wide. Also breaks a wider word.
pub(crate) fn wrapped(text: &str, font: Font, size: f64, room: f64) -> Vec<String> {
    let fits = |line: &str| width(line, font, size) <= room;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => {
                line.push(' ');
                line.push_str(word);
            }
            _ if fits(word) => lines.push(word.to_owned()),
            _ => {
                let mut piece = String::new();
                for letter in word.chars() {
                    if !piece.is_empty() && !fits(&format!("{piece}{letter}")) {
                        lines.push(std::mem::take(&mut piece));
                    }
                    piece.push(letter);
                }
                lines.push(piece);
            }
        }
    }
    lines
}
