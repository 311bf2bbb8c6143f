//! The waits that a queue with one server, random arrivals and a fixed service (M/D/1) predicts.

use super::Point;

/// The factor by which the mean wait may differ from that of the model.
const MODEL: f64 = 2.0;
/// A load is compared with the model if the lock is busy for a share of the time between these: below, there
/// is hardly a wait; above, a mean over one run says little.
const COMPARED: (f64, f64) = (0.3, 0.85);
/// A difference of this many milliseconds is none: a timer counts whole milliseconds.
const GRAIN_MS: f64 = 3.0;
/// A mean of fewer attempts says little.
const FEW: u64 = 100;

/// Returns the time of a section and of the change to the next, in seconds: the shortest of the loads beyond
/// the capacity.
pub(super) fn cycle_of(points: &[&Point]) -> Option<f64> {
    points.iter().filter_map(|point| point.cycle()).min_by(f64::total_cmp)
}

/// A load whose mean latency is compared with that of the model, in milliseconds.
pub(super) struct Compared<'a> {
    pub(super) point: &'a Point,
    pub(super) model_ms: f64,
}

impl Compared<'_> {
    pub(super) fn is_as_modelled(&self) -> bool {
        let waited_ms = self.point.mean_ms;
        waited_ms <= self.model_ms * MODEL + GRAIN_MS && waited_ms >= self.model_ms / MODEL - GRAIN_MS
    }
}

/// Returns the loads that are compared with the model: those of enough attempts for a mean.
pub(super) fn compared<'a>(points: &[&'a Point]) -> Vec<Compared<'a>> {
    let cycle = cycle_of(points);
    let compared = |point: &&'a Point| {
        let model_ms = modelled_ms(point, cycle).filter(|_| point.attempts >= FEW)?;
        Some(Compared { point, model_ms })
    };
    points.iter().filter_map(compared).collect()
}

/// Returns the mean latency that the model predicts, for a load that keeps the lock busy enough.
pub(super) fn modelled_ms(point: &Point, cycle: Option<f64>) -> Option<f64> {
    let cycle = cycle.filter(|_| !point.is_full())?;
    let busy = point.offered_per_second * cycle;
    point.predicted_wait_ms(cycle).filter(|_| busy > COMPARED.0 && busy < COMPARED.1)
}
