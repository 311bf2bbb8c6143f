//! Experiment 12: the wall clocks of servers are set while a lease lives.
//!
//! Redis ends a lease by the time of day of its machine. A clock that is set forward ends it early, and the
//! holder, whose own clock is right, does not know; one that is set back keeps it for longer. A majority of
//! several servers tolerates the clocks of a minority. The leases of etcd and ZooKeeper end by clocks that
//! nobody sets.
//!
//! Sources: the lab text, section 10; Kleppmann, "How to do distributed locking" (2016).

use std::error::Error;
use std::time::Duration;

use dlock::redis::Waiting;
use dlock::{
    AnyBackend, Backend, Backoff, Instant, Lock, LockKey, Options, Runtime, TokioRuntime, timeout_at,
};
use history::Span;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};

use super::{Experiment, ExperimentError};
use crate::faults::WallClock;
use crate::lab::parallel::in_parallel;
use crate::lab::statistics::median;
use crate::place::Place;
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::servers::{Persistence, Redis, Stage};
use crate::systems::System;

/// The servers of Redlock, of which three are a majority.
const NODES: usize = 5;

/// Experiment 12.
#[derive(Debug)]
pub struct Skew;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    ttl: Span,
    steps: Vec<f64>,
    clocks: Vec<usize>,
    rounds: u32,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    runs: Vec<Run>,
}

/// One holder, and the next.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    system: System,
    /// The number of servers whose clocks were set.
    clocks: usize,
    /// The step of those clocks, in TTLs.
    step: f64,
    /// From the first grant to the second, in milliseconds.
    next_after_ms: f64,
    /// For how long both relied on their leases, in milliseconds.
    both_ms: f64,
    /// True if the second token was above the first.
    tokens_rise: bool,
}

impl Experiment for Skew {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 12;
    const TITLE: &'static str = "Clocks of servers that are set";
    const QUESTION: &'static str =
        "By how much may the clock of a server be wrong before two clients rely on the same lock?";
    const COMMITTED: &'static str = include_str!("../../experiments/12.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { ttl, steps, clocks, rounds } = configuration;
        let too_many = clocks.iter().any(|clocks| !(1..=NODES).contains(clocks));
        if ttl.0.is_zero() || steps.len() < 2 || clocks.is_empty() || too_many || *rounds == 0 {
            return Err(ExperimentError::Pointless(format!(
                "set a TTL, at least two steps, one round, and clocks of 1 to {NODES} servers"
            )));
        }
        let redlock = clocks.iter().map(|clocks| (System::Redlock, *clocks));
        let arms: Vec<_> = [(System::Redis, 1)].into_iter().chain(redlock).collect();
        let runs = in_parallel(&arms, arms.len(), |(system, clocks)| configuration.arm(*system, *clocks))?;
        Ok(Findings { runs: runs.into_iter().flatten().collect() })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: vec![table(configuration, findings)],
            figures: vec![figure(configuration, findings)],
            ..Section::default()
        };
        let all = |of: &dyn Fn(&Run) -> bool, holds: &dyn Fn(&Run) -> bool| {
            let mut runs = findings.runs.iter().filter(|run| of(run)).peekable();
            runs.peek().is_some() && runs.all(holds)
        };
        let at_once = |run: &Run| run.both_ms > 0.0;
        section.expect(
            "no two clients relied on the lock at once where clocks were right or set back",
            all(&|run| run.step <= 0.0, &|run| !at_once(run)),
        );
        section.expect(
            "nor where the clocks of a minority were set forward, by however much",
            all(&|run| run.is_minority(), &|run| !at_once(run)),
        );
        section.expect(
            "where those of the only server, or of a majority, were set forward by a quarter of the TTL or \
             more, two clients did",
            all(&|run| !run.is_minority() && run.step >= 0.25, &at_once),
        );
        section.expect(
            "the later holder always had the higher token: a resource that checks it refuses the earlier one",
            all(&|_| true, &|run| run.tokens_rise),
        );
        section.remarks.extend(longest(configuration, findings));
        section.remarks.extend(barred(configuration, findings));
        section.remarks.push(
            "etcd and ZooKeeper end leases by clocks that run since the machine's start, which nobody sets. \
             Clocks that run at a wrong rate are simulated: [the comparison](comparison.md), fault `clock rate`."
                .to_owned(),
        );
        section
    }
}

impl Run {
    fn is_minority(&self) -> bool {
        self.system == System::Redlock && self.clocks <= NODES / 2
    }
}

impl Configuration {
    fn arm(&self, system: System, clocks: usize) -> Result<Vec<Run>, ExperimentError> {
        let stage = Stage::new()?;
        let nodes = if system == System::Redlock { NODES } else { 1 };
        let failed = |error: String| ExperimentError::Failed(format!("{}: {error}", system.as_str()));
        let mut servers = Vec::new();
        for node in 0..nodes {
            let name = format!("redis-{node}");
            let clock = WallClock::new(&stage, &name).map_err(|error| failed(error.to_string()))?;
            let server = Redis::start_with(&stage, &name, Persistence::None, &clock.environment())?;
            servers.push((server, clock));
        }
        let place = Place::new(system, servers.iter().map(|(server, _)| server.address()).collect());
        let set: Vec<_> = servers.iter().take(clocks).map(|(_, clock)| clock).collect();
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            for (number, &step) in self.steps.iter().enumerate() {
                let key = format!("{round}-{number}");
                let run = executor.block_on(self.once(&place, &set, step, &key));
                let (next_after_ms, both_ms, tokens_rise) = run.map_err(|error| failed(error.to_string()))?;
                runs.push(Run { system, clocks, step, next_after_ms, both_ms, tokens_rise });
            }
        }
        Ok(runs)
    }

    /// Returns the time between the grants and that for which both were held, in milliseconds, and whether
    /// the second token was above the first.
    async fn once(
        &self,
        place: &Place,
        set: &[&WallClock],
        step: f64,
        key: &str,
    ) -> Result<(f64, f64, bool), Box<dyn Error + Send + Sync>> {
        let key = LockKey::new("skew", key)?;
        let step_ms = (step * self.ttl.0.as_secs_f64() * 1e3) as i64;
        let (first, second) = (self.lock(place)?, self.lock(place)?);
        let runtime = first.backend().runtime();
        // Longer than a lease on a clock that is set back.
        let deadline = |now: Instant| now + self.ttl.0 * 10;
        let servers = connect(place).await?;
        let holder = first.acquire(&key, deadline(runtime.now())).await?;
        let granted = runtime.now();
        let everywhere = timeout_at(runtime, deadline(granted), reached(servers, &key.owner_key())).await;
        everywhere.map_err(|_| "a server did not get the lock's key: the machine is too busy")??;
        set.iter().try_for_each(|clock| clock.step(step_ms))?;
        let next = second.acquire(&key, deadline(runtime.now())).await;
        let now = runtime.now();
        set.iter().try_for_each(|clock| clock.step(-step_ms))?;
        let next = next?;
        let both = holder.valid_until().saturating_since(now);
        let tokens_rise = next.fence() > holder.fence();
        holder.leave();
        next.leave();
        Ok((now.saturating_since(granted).as_secs_f64() * 1e3, both.as_secs_f64() * 1e3, tokens_rise))
    }

    /// Returns a client of its own, which asks often.
    fn lock(&self, place: &Place) -> Result<Lock<AnyBackend<TokioRuntime>>, Box<dyn Error + Send + Sync>> {
        let runtime = TokioRuntime::new(Handle::current());
        let mut options = Options::new(self.ttl.0);
        options.backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_millis(10) };
        Ok(Lock::new(place.backend(self.ttl.0, Waiting::Polled, runtime)?, options)?)
    }
}

/// Connects to each server.
async fn connect(place: &Place) -> redis::RedisResult<Vec<MultiplexedConnection>> {
    let mut servers = Vec::new();
    for address in &place.addresses {
        let client = redis::Client::open(format!("redis://{address}/"))?;
        servers.push(client.get_multiplexed_async_connection().await?);
    }
    Ok(servers)
}

/// Waits until each server has `owner_key`. A majority grants; a request that comes to another server after
/// its clock was set would begin its lease by the new time, and not end it early.
async fn reached(servers: Vec<MultiplexedConnection>, owner_key: &str) -> redis::RedisResult<()> {
    for mut server in servers {
        while !redis::cmd("EXISTS").arg(owner_key).query_async::<bool>(&mut server).await? {}
    }
    Ok(())
}

impl Findings {
    /// Returns the medians of the time between grants and of that for which both were held.
    fn medians(&self, system: System, clocks: usize, step: f64) -> Option<(f64, f64)> {
        let is_one =
            |run: &&Run| (run.system, run.clocks) == (system, clocks) && run.step.total_cmp(&step).is_eq();
        let of =
            |value: fn(&Run) -> f64| median(&self.runs.iter().filter(is_one).map(value).collect::<Vec<_>>());
        of(|run| run.next_after_ms).zip(of(|run| run.both_ms))
    }

    /// Returns the systems and numbers of clocks, in the order of the runs.
    fn arms(&self) -> Vec<(System, usize)> {
        let mut arms = Vec::new();
        for run in &self.runs {
            if !arms.contains(&(run.system, run.clocks)) {
                arms.push((run.system, run.clocks));
            }
        }
        arms
    }
}

fn longest(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let both = |run: &&Run| run.both_ms > 0.0;
    let most = findings.runs.iter().filter(both).max_by(|one, next| one.both_ms.total_cmp(&next.both_ms))?;
    Some(format!(
        "At most, both relied on the lock for {:.0} ms of a TTL of {}: {}, set forward by {} TTLs.",
        most.both_ms,
        configuration.ttl,
        name((most.system, most.clocks)),
        most.step,
    ))
}

/// Says for how long nobody was served although the lease had ended, where clocks were set back by most.
fn barred(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let back = findings.runs.iter().min_by(|one, next| one.step.total_cmp(&next.step))?;
    let after_ms = findings.medians(back.system, back.clocks, back.step)?.0;
    let ttl_ms = configuration.ttl.0.as_secs_f64() * 1e3;
    (back.step < 0.0).then(|| {
        format!(
            "With the clock set back by the TTL times {}, {} served the next client {:.0} ms after the lease \
             had ended.",
            -back.step,
            name((back.system, back.clocks)),
            after_ms - ttl_ms,
        )
    })
}

fn name((system, clocks): (System, usize)) -> String {
    match system {
        System::Redlock => format!("redlock, {clocks} of {NODES} clocks"),
        other => other.as_str().to_owned(),
    }
}

fn table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "A lease of {}, and clocks that are set right after its grant, by so many TTLs: from the first grant \
         to the next, and how long both clients relied on the lock; medians of {} runs in ms.",
        configuration.ttl, configuration.rounds
    );
    let mut table = Table::new(caption, &["clocks", "set by", "next grant after", "both held"]);
    for arm in findings.arms() {
        for &step in &configuration.steps {
            let Some((next, both)) = findings.medians(arm.0, arm.1, step) else { continue };
            table.row([name(arm), format!("{step}"), format!("{next:.0}"), format!("{both:.0}")]);
        }
    }
    table
}

fn figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let line = |arm: (System, usize)| Line {
        name: name(arm),
        points: configuration
            .steps
            .iter()
            .filter_map(|&step| Some((step, findings.medians(arm.0, arm.1, step)?.1)))
            .collect(),
    };
    Figure {
        name: "experiment-12-skew".to_owned(),
        caption: "For how long two clients relied on the lock, by how far clocks were set forward."
            .to_owned(),
        x: axis("clocks set by, in TTLs"),
        y: axis("both held, in ms"),
        lines: findings.arms().into_iter().map(line).collect(),
    }
}
