//! Measures the peers slice by slice, in turns, and combines the slices.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::PeerError;
use super::arms::{arms, title};
use super::cores::Cores;
use super::entries::{Entry, OPTIONAL};
use super::results::{Configuration, Results, Row};
use super::slice::{Job, KEYS, Scenario, Slice};
use crate::lab::{Machine, Software};
use crate::servers::ask;

/// The number of parts of each slice in which single requests are timed, in turns with the other peers': a
/// slow moment of the machine then affects all alike, also in the 99th percentile.
pub const PARTS: u64 = 10;
/// The repetitions of a slice of acquires alone, in turns: it is compared with a peer that sends the same
/// requests to the same server. The two differ by hundredths, the machine by tenths from one second to the
/// next.
pub const TAKES: u64 = 4;
/// The TTL of all peers.
const TTL_MS: u64 = 10_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// The longest latency recorded: ten minutes.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// Measures all entries for `command` on `machine`, with the Redis on this port and these cores. Calls
/// `on_round` for each round.
pub(super) fn measure(
    (command, machine): (String, Machine),
    configuration: Configuration,
    mut entries: Vec<Entry>,
    (redis, cores): (u16, Cores),
    on_round: impl Fn(&str),
) -> Result<Results, PeerError> {
    // Before the run: the checkout may change meanwhile.
    let software = Software::this();
    let mut tallies = Vec::new();
    let mut missing = Vec::new();
    for round in 0..configuration.rounds {
        for (scenario, contenders) in arms(&configuration) {
            on_round(&format!(
                "round {} of {}: {}",
                round + 1,
                configuration.rounds,
                title(scenario, contenders)
            ));
            let parts = match scenario {
                single if single.is_single() => PARTS,
                Scenario::Take => TAKES,
                _ => 1,
            };
            for part in 0..parts {
                let slices = Turn {
                    configuration: &configuration,
                    scenario,
                    contenders,
                    parts,
                    number: round * parts + part,
                    redis,
                    cores: &cores,
                };
                slices.all(&mut entries, &mut tallies, &mut missing)?;
                // Reverse the order, since the first peer may find the machine in another state than the
                // last.
                entries.reverse();
            }
        }
    }
    tallies.sort_by_key(|tally: &Tally| tally.place);
    let rows = tallies.into_iter().map(Tally::row).collect();
    Ok(Results { command, machine, software, configuration, rows, missing, without: Vec::new() })
}

/// A slice, or a part of one, of every peer in an arm.
struct Turn<'a> {
    configuration: &'a Configuration,
    scenario: Scenario,
    contenders: u64,
    /// The number of turns that share a slice's operations.
    parts: u64,
    /// The number of this turn within the arm.
    number: u64,
    redis: u16,
    cores: &'a Cores,
}

impl Turn<'_> {
    fn all(
        &self,
        entries: &mut Vec<Entry>,
        tallies: &mut Vec<Tally>,
        missing: &mut Vec<(Cow<'static, str>, String)>,
    ) -> Result<(), PeerError> {
        let mut failure = None;
        entries.retain_mut(|entry| {
            if failure.is_some() || !entry.scenarios.contains(&self.scenario) {
                return true;
            }
            match self.one(entry, tallies) {
                Ok(()) => true,
                Err(PeerError::Failed { name, what }) if OPTIONAL.contains(&name) => {
                    missing.push((name.into(), what));
                    false
                }
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn one(&self, entry: &mut Entry, tallies: &mut Vec<Tally>) -> Result<(), PeerError> {
        let place = (self.scenario as u64, self.contenders, entry.place);
        let Configuration { operations, work_ms, hot_ms, space_ms, permits, .. } = *self.configuration;
        let job = Job {
            scenario: self.scenario,
            name: format!("peers-{}-{}-{}-{}", place.0, place.1, place.2, self.number),
            operations: operations.div_ceil(self.parts),
            contenders: self.contenders,
            keys: KEYS,
            permits,
            work_ms,
            ttl_ms: TTL_MS,
            millis: if self.scenario.is_timed() { hot_ms } else { space_ms },
        };
        let slice = self.placed(entry, &job)?;
        if matches!(self.scenario, Scenario::Space | Scenario::Take) {
            // Otherwise later slices would find a full server.
            ask(self.redis, "FLUSHALL\r\n", |answer| answer.ends_with("\r\n"))?;
        }
        if let Some(tally) = tallies.iter_mut().find(|tally| tally.place == place) {
            tally.add(&slice);
            return Ok(());
        }
        let mut tally = Tally::new(place, self.scenario, self.contenders, entry.peer.name());
        tally.add(&slice);
        tallies.push(tally);
        Ok(())
    }

    /// Runs the job; where single requests are timed, on a core apart from the server's.
    fn placed(&self, entry: &mut Entry, job: &Job) -> Result<Slice, PeerError> {
        if !self.scenario.is_single() {
            return entry.peer.run(job);
        }
        let process = entry.peer.process();
        self.cores.part(process)?;
        let slice = entry.peer.run(job);
        // If the peer has died, the slice's error says so.
        let shared = self.cores.share(process.filter(|_| slice.is_ok()));
        shared.map_err(PeerError::from).and(slice)
    }
}

/// Returns the lower and the upper quartile; zeros if there are none.
fn quartiles(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| values.get((values.len().saturating_sub(1) * part + 2) / 4).copied();
    [at(1).unwrap_or_default(), at(3).unwrap_or_default()]
}

/// Returns the median; 0 if there is none.
fn median(values: &[u64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default() as f64
}

/// The sums of one peer in one arm.
struct Tally {
    /// The order of its row: the arm, its contenders, and the peer's place.
    place: (u64, u64, usize),
    row: Row,
    elapsed_ns: u64,
    acquire: Histogram<u64>,
    release: Histogram<u64>,
    /// Locks a second, of each slice.
    rates: Vec<f64>,
    /// The median of the acquires, of each slice.
    medians: Vec<f64>,
}

impl Tally {
    fn new(place: (u64, u64, usize), scenario: Scenario, contenders: u64, peer: &'static str) -> Self {
        let row = Row {
            scenario,
            contenders,
            peer: peer.into(),
            acquire_p50_ns: 0,
            acquire_p99_ns: 0,
            release_p50_ns: 0,
            release_p99_ns: 0,
            per_second: 0.0,
            per_second_quartiles: [0.0; 2],
            acquire_p50_quartiles_ns: [0.0; 2],
            completed: 0,
        };
        let (rates, medians) = (Vec::new(), Vec::new());
        Self { place, row, elapsed_ns: 0, acquire: histogram(), release: histogram(), rates, medians }
    }

    fn add(&mut self, slice: &Slice) {
        for (histogram, latencies) in
            [(&mut self.acquire, &slice.acquire_ns), (&mut self.release, &slice.release_ns)]
        {
            latencies.iter().for_each(|latency| histogram.saturating_record(*latency));
        }
        self.row.completed += slice.completed;
        self.elapsed_ns += slice.elapsed_ns;
        self.rates.push(slice.completed as f64 / (slice.elapsed_ns.max(1) as f64 / 1e9));
        self.medians.push(median(&slice.acquire_ns));
    }

    fn row(self) -> Row {
        let Self { mut row, acquire, release, elapsed_ns, rates, medians, .. } = self;
        row.per_second_quartiles = quartiles(rates);
        row.acquire_p50_quartiles_ns = quartiles(medians);
        row.acquire_p50_ns = acquire.value_at_quantile(0.5);
        row.acquire_p99_ns = acquire.value_at_quantile(0.99);
        row.release_p50_ns = release.value_at_quantile(0.5);
        row.release_p99_ns = release.value_at_quantile(0.99);
        row.per_second = row.completed as f64 / (elapsed_ns.max(1) as f64 / 1e9);
        row
    }
}

fn histogram() -> Histogram<u64> {
    #[allow(clippy::expect_used, reason = "the bounds are constants that are in order")]
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).expect("bounds in order")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slices_of_a_peer_become_one_row() {
        let mut tally = Tally::new((0, 1, 0), Scenario::Uncontended, 1, "it");
        for acquire_ns in [vec![100, 100], vec![100, 900]] {
            let release_ns = vec![50; 2];
            tally.add(&Slice { acquire_ns, release_ns, completed: 2, elapsed_ns: 1_000_000, error: None });
        }
        let row = tally.row();
        assert_eq!((row.completed, row.acquire_p50_ns, row.release_p99_ns), (4, 100, 50));
        assert!((900..=901).contains(&row.acquire_p99_ns), "{row:?}");
        assert!((row.per_second - 2000.0).abs() < 1e-6, "{row:?}");
        assert_eq!(row.acquire_p50_quartiles_ns, [100.0, 900.0]);
    }

    #[test]
    fn quartiles_leave_out_the_extremes() {
        assert_eq!(quartiles(vec![9.0, 1.0, 3.0, 2.0, 4.0]), [2.0, 4.0]);
        assert_eq!(quartiles(Vec::new()), [0.0, 0.0]);
    }
}
