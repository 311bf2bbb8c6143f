//! The targets, each with its measurement.

use std::fmt::Write as _;

use super::entries::{SECURED, UNFENCED};
use super::redisson;
use super::results::{Results, Row};
use super::slice::Scenario;

/// Our locks, by the names of their rows.
pub(super) const REDIS: &str = "dlock, Redis";
const SLEEPY: &str = "dlock, Redis, never polling";
const ETCD: &str = "dlock, etcd";
/// Peers of single targets.
const RSLOCK: &str = "rslock";
const LOCK_SERVICE: &str = "etcd's Lock service";
/// The yardsticks, which are not locks.
const RAW_EVALSHA: &str = "raw EVALSHA, redis crate";
const RAW_SET: &str = "raw SET, redis crate";
const RAW_SOCKET: &str = "raw EVALSHA, bare socket";
const RAW_TXN: &str = "raw etcd transaction";
const BENCHMARK: &str = "redis-benchmark -P 64";

/// A target, and its measurement.
#[derive(Debug)]
pub struct Target {
    /// The demand.
    pub demand: String,
    /// The measured value.
    pub measured: String,
    /// True if it is met; `None` if a measurement is missing.
    pub holds: Option<bool>,
    /// True if the measurements do not tell the two apart: the middle halves of their slices overlap.
    pub is_tie: bool,
}

impl Results {
    /// Returns all targets.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = self.uncontended();
        targets.extend(self.secured());
        let rates = |scenario, ours, peer| (self.row(scenario, ours), self.row(scenario, peer));
        targets.push(at_least_rate(
            format!("acquires a second over a key space: at least the EVALSHA calls of {BENCHMARK}"),
            rates(Scenario::Take, REDIS, BENCHMARK),
            1.0,
        ));
        let rslock = rates(Scenario::Space, UNFENCED, RSLOCK);
        // It may be left out.
        targets.extend(rslock.1.is_some().then(|| {
            let demand = format!(
                "acquires and releases a second over a key space, without a token as {RSLOCK}'s: at least \
                 those of {RSLOCK} / 1.15"
            );
            at_least_rate(demand, rslock, 1.15)
        }));
        targets.push(at_least_rate(
            format!(
                "etcd, acquires and releases a second over a key space: at least those of {LOCK_SERVICE}"
            ),
            rates(Scenario::Space, ETCD, LOCK_SERVICE),
            1.0,
        ));
        targets.extend(self.hot());
        targets.push(self.permit());
        targets.push(at_most(
            format!("etcd, acquire p50: at most 1.3 times the {RAW_TXN}"),
            self.row(Scenario::Uncontended, ETCD).map(|row| row.acquire_p50_ns as f64 / 1000.0),
            self.row(Scenario::Uncontended, RAW_TXN).map(|row| row.acquire_p50_ns as f64 / 1000.0),
            1.3,
        ));
        targets
    }

    fn uncontended(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for is_median in [true, false] {
            let name = if is_median { "p50" } else { "p99" };
            let of =
                |row: &Row| (if is_median { row.acquire_p50_ns } else { row.acquire_p99_ns }) as f64 / 1000.0;
            let ours = self.row(Scenario::Uncontended, REDIS).map(of);
            let raw = self.row(Scenario::Uncontended, RAW_EVALSHA).map(of);
            let socket = self.row(Scenario::Uncontended, RAW_SOCKET).map(of);
            let sleepy = self.row(Scenario::Uncontended, SLEEPY).map(of);
            // The peer that sets the bound: a tie with another says nothing.
            let peer =
                self.others(Scenario::Uncontended, 1).min_by(|one, other| of(one).total_cmp(&of(other)));
            let is_tie =
                is_median && self.row(Scenario::Uncontended, REDIS).zip(peer).is_some_and(is_p50_tie);
            let demand = |what: &str| format!("Redis, acquire {name}, nobody contends: {what}");
            // The raw call sleeps until its answer arrives; the row "never polling" shows what the lock adds
            // to it.
            for (ours, how) in [(ours, ""), (sleepy, ", never polling")] {
                let bound = "at most 1.15 times the raw EVALSHA through the redis crate";
                let mut by_crate = at_most(demand(&format!("{bound}{how}")), ours, raw, 1.15);
                if let (Some(_), Some(ours), Some(socket)) = (by_crate.holds, ours, socket) {
                    let ratio = ours / socket;
                    // Writing to a String can't fail.
                    let _ = write!(by_crate.measured, " ({ratio:.2} of a bare socket's {socket:.0} µs)");
                }
                targets.push(by_crate);
            }
            let ahead = at_most(demand("ahead of every peer"), ours, peer.map(of), 1.0);
            targets.push(Target { is_tie, ..ahead });
        }
        let p99 = self.row(Scenario::Uncontended, REDIS).map(|row| row.acquire_p99_ns as f64 / 1000.0);
        targets.push(at_most(
            "Redis, acquire p99, nobody contends: under 3 ms".to_owned(),
            p99,
            Some(3000.0),
            1.0,
        ));
        targets
    }

    /// Targets for TLS: at most 1.3 times the cost of plain connections.
    fn secured(&self) -> Vec<Target> {
        let p50 = |peer| self.row(Scenario::Uncontended, peer).map(|row| row.acquire_p50_ns as f64 / 1000.0);
        let space = |scenario| (self.row(scenario, SECURED), self.row(scenario, REDIS));
        vec![
            at_most(
                "Redis over TLS, acquire p50, nobody contends: at most 1.3 times that without".to_owned(),
                p50(SECURED),
                p50(REDIS),
                1.3,
            ),
            at_least_rate(
                "Redis over TLS, acquires and releases a second over a key space: at least those without / 1.3"
                    .to_owned(),
                space(Scenario::Space),
                1.3,
            ),
        ]
    }

    /// Targets for the largest number of contenders: a lock's rate is limited by its work and the two calls.
    fn hot(&self) -> Vec<Target> {
        let Some(contenders) = self.configuration.contenders.iter().max() else { return Vec::new() };
        let row = |peer| {
            self.rows.iter().find(|row| {
                row.peer == peer && row.scenario == Scenario::Hot && row.contenders == *contenders
            })
        };
        let ceiling = self.row(Scenario::Uncontended, REDIS).map(|free| {
            let calls = (free.acquire_p50_ns + free.release_p50_ns) as f64 / 1e9;
            1.0 / (self.configuration.work_ms as f64 / 1000.0 + calls)
        });
        let ours = row(REDIS).map(|row| row.per_second);
        let peer = self
            .others(Scenario::Hot, *contenders)
            .max_by(|one, other| one.per_second.total_cmp(&other.per_second));
        let demand = |what| format!("Redis, {contenders} contenders on one key, locks a second: {what}");
        vec![
            at_least(
                demand("at least 0.9 of 1 / (work + acquire + release)"),
                ours,
                ceiling.map(|most| most * 0.9),
            ),
            Target {
                is_tie: row(REDIS).zip(peer).is_some_and(|(ours, peer)| is_rate_tie(ours, peer)),
                ..at_least(demand("ahead of every peer"), ours, peer.map(|row| row.per_second))
            },
        ]
    }

    /// A semaphore's target: a token, and the permits beside it, cost little.
    fn permit(&self) -> Target {
        let p50 = |peer| self.row(Scenario::Permit, peer).map(|row| row.acquire_p50_ns as f64 / 1000.0);
        let demand = format!(
            "Redis, a permit of a semaphore, acquire p50, nobody contends: at most 1.15 times {}, never \
             polling",
            redisson::NAME
        );
        at_most(demand, p50(SLEEPY), p50(redisson::NAME), 1.15)
    }

    fn row(&self, scenario: Scenario, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer && row.scenario == scenario)
    }

    /// Returns the rows that are neither ours nor a yardstick.
    fn others(&self, scenario: Scenario, contenders: u64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            let is_other = !row.peer.starts_with("dlock")
                && ![RAW_EVALSHA, RAW_SET, RAW_SOCKET, RAW_TXN, BENCHMARK].contains(&&*row.peer);
            is_other && row.scenario == scenario && row.contenders == contenders
        })
    }
}

fn at_most(demand: String, ours: Option<f64>, bound: Option<f64>, factor: f64) -> Target {
    let (Some(ours), Some(bound)) = (ours, bound) else { return unmeasured(demand) };
    let measured = format!("{ours:.0} µs against {bound:.0} µs: {:.2}", ours / bound);
    Target { demand, measured, holds: Some(ours <= bound * factor), is_tie: false }
}

/// The rate of ours against that of another row, which may be `factor` times as high.
fn at_least_rate(demand: String, rows: (Option<&Row>, Option<&Row>), factor: f64) -> Target {
    let (Some(ours), Some(other)) = rows else { return unmeasured(demand) };
    let (rate, bound) = (ours.per_second, other.per_second);
    let measured = format!("{rate:.0} against {bound:.0}: {:.2}", rate / bound);
    let is_tie = factor <= 1.0 && is_rate_tie(ours, other);
    Target { demand, measured, holds: Some(rate * factor >= bound), is_tie }
}

pub(super) fn is_rate_tie(one: &Row, other: &Row) -> bool {
    overlap(one.per_second_quartiles, other.per_second_quartiles)
}

pub(super) fn is_p50_tie((one, other): (&Row, &Row)) -> bool {
    overlap(one.acquire_p50_quartiles_ns, other.acquire_p50_quartiles_ns)
}

/// Returns whether two ranges have a value in common.
fn overlap(one: [f64; 2], other: [f64; 2]) -> bool {
    one[0] <= other[1] && other[0] <= one[1]
}

fn at_least(demand: String, ours: Option<f64>, bound: Option<f64>) -> Target {
    let (Some(ours), Some(bound)) = (ours, bound) else { return unmeasured(demand) };
    let digits = if bound < 1000.0 { 2 } else { 0 };
    let measured = format!("{ours:.digits$} against {bound:.digits$}: {:.2}", ours / bound);
    Target { demand, measured, holds: Some(ours >= bound), is_tie: false }
}

fn unmeasured(demand: String) -> Target {
    Target { demand, measured: String::new(), holds: None, is_tie: false }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::results::Configuration;
    use super::*;
    use crate::lab::{Machine, Software};

    pub(crate) fn row(
        scenario: Scenario,
        contenders: u64,
        peer: &'static str,
        micros: u64,
        per_second: f64,
    ) -> Row {
        let nanos = micros * 1000;
        Row {
            scenario,
            contenders,
            peer: peer.into(),
            acquire_p50_ns: nanos,
            acquire_p99_ns: 2 * nanos,
            release_p50_ns: nanos,
            release_p99_ns: 2 * nanos,
            per_second,
            per_second_quartiles: [per_second * 0.99, per_second * 1.01],
            acquire_p50_quartiles_ns: [nanos as f64 * 0.99, nanos as f64 * 1.01],
            completed: 1,
        }
    }

    pub(crate) fn results(hot: f64) -> Results {
        let configuration = Configuration {
            rounds: 1,
            operations: 1,
            contenders: vec![200],
            work_ms: 50,
            hot_ms: 1,
            tasks: 1,
            takers: 1,
            space_ms: 1,
            permits: 1,
        };
        let rows = vec![
            row(Scenario::Uncontended, 1, RAW_SOCKET, 80, 1.0),
            row(Scenario::Uncontended, 1, RAW_EVALSHA, 100, 1.0),
            row(Scenario::Uncontended, 1, RAW_SET, 90, 1.0),
            row(Scenario::Uncontended, 1, REDIS, 114, 1.0),
            row(Scenario::Uncontended, 1, SLEEPY, 116, 1.0),
            row(Scenario::Uncontended, 1, "redis-py", 130, 1.0),
            row(Scenario::Hot, 200, REDIS, 1, hot),
            row(Scenario::Hot, 200, "redis-py", 1, 15.0),
            row(Scenario::Take, 1, REDIS, 0, 150_000.0),
            row(Scenario::Take, 1, BENCHMARK, 0, 160_000.0),
            row(Scenario::Permit, 1, SLEEPY, 58, 1.0),
            row(Scenario::Permit, 1, redisson::NAME, 50, 1.0),
        ];
        let (machine, software) = (Machine::this(), Software::this());
        let (missing, without) = (Vec::new(), Vec::new());
        Results { command: String::new(), machine, software, configuration, rows, missing, without }
    }

    fn verdicts(results: &Results) -> Vec<Option<bool>> {
        results.targets().iter().map(|target| target.holds).collect()
    }

    #[test]
    fn each_target_is_judged_by_its_own_limit() {
        // 1 / (50 ms + 2 · 114 µs) is 19.9, nine tenths of it 17.9.
        let ahead = [Some(true), Some(false), Some(true)];
        let good = [&ahead[..], &ahead, &[Some(true)]].concat();
        // No row is over TLS, and none of etcd's is over a key space.
        let expected = |hot| {
            [&good[..], &[None, None, Some(false), None, Some(hot), Some(true), Some(false), None]].concat()
        };
        assert_eq!(verdicts(&results(18.0)), expected(true));
        assert_eq!(verdicts(&results(17.8)), expected(false));
    }

    #[test]
    fn a_faster_peer_fails_the_target() {
        let mut results = results(19.0);
        results.rows[5].acquire_p50_ns = 113_000;
        assert_eq!(verdicts(&results)[2], Some(false));
    }

    #[test]
    fn only_the_peer_that_sets_the_bound_ties() {
        let ties = |rows: &[Row]| {
            let mut results = results(19.0);
            results.rows.extend_from_slice(rows);
            let targets = results.targets();
            let every = targets.iter().filter(|target| target.demand.contains("ahead of every peer"));
            every.map(|target| target.is_tie).collect::<Vec<_>>()
        };
        let (free, hot) = ((Scenario::Uncontended, 1), (Scenario::Hot, 200));
        let peer = |(scenario, contenders), micros, rate| row(scenario, contenders, "rslock", micros, rate);
        assert_eq!(ties(&[]), [false, false, false]);
        assert_eq!(ties(&[peer(free, 113, 1.0), peer(hot, 1, 19.1)]), [true, false, true]);
        // One ties, and another is ahead.
        let ahead = [peer(free, 113, 1.0), peer(free, 90, 1.0), peer(hot, 1, 19.1), peer(hot, 1, 30.0)];
        assert_eq!(ties(&ahead), [false, false, false]);
    }
}
