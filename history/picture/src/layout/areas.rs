//! Taken areas: nothing else may be placed there, so that no two labels overlap.

/// A rectangle, in pixels. `above` and `below` are relative to the line at which something is placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) above: f64,
    pub(super) below: f64,
}

/// Areas this far above the last line are forgotten: nothing is placed there any more.
const MEMORY: f64 = 400.0;

/// The taken areas, each with its line.
#[derive(Default)]
pub(super) struct Areas {
    taken: Vec<(f64, Area)>,
    lowest: f64,
}

impl Areas {
    /// Returns the first line from `y` on around which all `areas` are free.
    pub(super) fn free(&self, mut y: f64, areas: &[Area]) -> f64 {
        while let Some(next) = self.collision(y, areas) {
            y = next;
        }
        y
    }

    /// Returns a lower line, at which the first collision of `areas` around `y` has ended.
    fn collision(&self, y: f64, areas: &[Area]) -> Option<f64> {
        let pairs = self.taken.iter().flat_map(|taken| areas.iter().map(move |area| (taken, area)));
        let collides = |((at, taken), area): &(&(f64, Area), &Area)| {
            let is_beside = area.left >= taken.right || taken.left >= area.right;
            !is_beside && y - area.above < at + taken.below - 0.01 && at - taken.above < y + area.below - 0.01
        };
        pairs.filter(collides).map(|((at, taken), area)| at + taken.below + area.above).reduce(f64::min)
    }

    /// Takes the `areas` around the line `y`.
    pub(super) fn take(&mut self, y: f64, areas: &[Area]) {
        self.taken.retain(|(at, area)| at + area.below > y - MEMORY);
        self.taken.extend(areas.iter().map(|area| (y, *area)));
        self.lowest = areas.iter().map(|area| y + area.below).fold(self.lowest.max(y), f64::max);
    }

    /// Returns the bottom of all taken areas.
    pub(super) const fn lowest(&self) -> f64 {
        self.lowest
    }
}
