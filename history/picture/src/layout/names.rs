//! The names of the lanes: each begins at its lane. If lanes are narrow, the names take several rows.

use crate::width::{Font, width};

/// The name of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Name {
    /// The line of its lane.
    pub(crate) x: f64,
    /// The row, from 0 at the bottom.
    pub(crate) row: usize,
}

/// Places the names of lanes, each given by the line of its lane and its width in pixels, from left to right.
///
/// A name reaches from its lane to the right, so the last one is placed first: a line from a name down to its
/// lane then crosses no other name.
pub(super) fn rows(lanes: &[(f64, f64)]) -> Vec<Name> {
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut names = Vec::new();
    for (x, width) in lanes.iter().rev() {
        let (left, right) = (x - 8.0, x + width);
        let is_free = |row: &Vec<(f64, f64)>| row.iter().all(|(from, to)| right <= *from || left >= *to);
        let row = taken.iter().position(is_free).unwrap_or(taken.len());
        if row == taken.len() {
            taken.push(Vec::new());
        }
        taken[row].push((left, right));
        // The line from the name down to its lane.
        taken[..row].iter_mut().for_each(|row| row.push((x - 3.0, x + 3.0)));
        names.push(Name { x: *x, row });
    }
    names.reverse();
    names
}

/// Returns the width of a name, of this size in pixels, and of the text below it.
pub(super) fn name_width(name: &str, size: f64, below: &str) -> f64 {
    width(name, Font::Bold, size).max(width(below, Font::Bold, 10.5) * 0.9)
}
