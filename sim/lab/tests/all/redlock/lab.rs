//! A laboratory for Redlock: Redis servers, each with a disk of its own, and clients in a simulated world.

use std::future::Future;
use std::time::Duration;

use dlock::Options;
use dlock::redis::TokenSource;
use dlock::redlock::{Redlock, RedlockOptions};
use futures_util::future::join_all;
use redis::{Cmd, FromRedisValue};
use sim::faults::{ClockStep, Crash, Cut, Delay};
use sim::servers::redis::{Persistence, RedisHost, Server};
use sim::world::runtime::SimRuntime;
use sim::{Control, Shift, Sim, Span, clients};

pub use crate::support::scripts::key;
use crate::support::scripts::{self, run_script};

/// The latency of every segment between two processes.
pub const LATENCY: Duration = Duration::from_millis(2);

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub control: Control,
    hosts: Vec<RedisHost>,
}

/// One client process and its lock.
pub type Member = scripts::Member<Redlock<SimRuntime>>;

/// Returns the name of the node numbered `number`, from 0.
pub fn node(number: usize) -> String {
    format!("redis-{}", number + 1)
}

fn address(number: usize) -> String {
    format!("{}:6379", node(number))
}

/// Runs `test` with `nodes` servers, `redis-1` and on, and `clients` processes, `client-0` and on.
pub fn in_lab<T: Send, F: Future<Output = T>>(
    nodes: usize,
    clients: usize,
    test: impl FnOnce(Lab) -> F + Send,
) -> T {
    let host = |_| RedisHost::new().persistence(Persistence::Always);
    let hosts: Vec<RedisHost> = (0..nodes).map(host).collect();
    let build = |sim: &mut Sim| {
        (0..clients).for_each(|number| _ = sim.empty_process(&format!("client-{number}")));
        sim.empty_process("observer");
        for (number, host) in hosts.iter().enumerate() {
            sim.host(&node(number), host.clone());
        }
    };
    let hosts = hosts.clone();
    let (_, result) = run_script(LATENCY, build, |control| async move {
        // Let the servers listen before any client connects.
        control.sleep(Duration::from_millis(1)).await;
        test(Lab { control, hosts }).await
    });
    result
}

impl Lab {
    /// Returns the client numbered `number`, with leases of `ttl` and connections of its own.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        self.member_with(number, ttl, TokenSource::Counter)
    }

    /// Like [`Self::member`], with fencing tokens from `tokens`.
    pub fn member_with(&self, number: usize, ttl: Duration, tokens: TokenSource) -> Member {
        let process = self.control.process(&format!("client-{number}"));
        let addresses: Vec<_> = (0..self.nodes()).map(address).collect();
        let mut redlock = RedlockOptions::default();
        redlock.tokens = tokens;
        let redlock = Redlock::new(process.runtime(), &addresses, redlock).unwrap();
        let mut options = Options::new(ttl);
        options.instance = Some(process.name().to_owned());
        Member::new(&process, redlock, options)
    }

    pub fn nodes(&self) -> usize {
        self.hosts.len()
    }

    /// Sleeps for `time` of true time.
    pub async fn sleep(&self, time: Duration) {
        self.control.sleep(time).await;
    }

    /// Cuts the client off from the node, in both directions.
    pub fn cut(&self, client: &Member, number: usize) {
        self.control.strike(Cut::between(client.name(), &node(number)));
    }

    pub fn heal(&self, client: &Member, number: usize) {
        self.control.heal(Cut::between(client.name(), &node(number)));
    }

    /// Delays all segments from `from` to `to` by `time`.
    pub fn delay(&self, from: &str, to: &str, time: Duration) {
        let by = Span::from_nanos(u64::try_from(time.as_nanos()).unwrap());
        self.control.strike(Delay::one_way(from, to, by));
    }

    /// Crashes a node, without a power loss.
    pub fn crash(&self, number: usize) {
        self.control.strike(Crash::of(&node(number)));
    }

    /// Restarts a crashed node with the contents of its append-only file.
    pub fn restart(&self, number: usize) {
        self.control.heal(Crash::of(&node(number)));
    }

    /// Steps the wall clock of a node back by a minute.
    pub fn step_back(&self, number: usize) {
        self.control.strike(ClockStep::of(&node(number), Shift::from_nanos(-60_000_000_000)));
    }

    /// Returns the server of a running node.
    pub fn server(&self, number: usize) -> Server {
        self.hosts[number].server().unwrap()
    }

    /// Sends a plain command to a node, as an operator would.
    pub async fn ask<T: FromRedisValue>(&self, node: usize, command: &Cmd) -> T {
        let observer = self.control.process("observer");
        let mut connection = clients::redis(&observer, &address(node)).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// Returns the owner token that each node stores for [`key`]. All nodes are queried at once; the answers
    /// show their state about three latencies later.
    pub async fn owners(&self) -> Vec<Option<String>> {
        let mut command = redis::cmd("GET");
        command.arg(key().owner_key());
        join_all((0..self.nodes()).map(|node| self.ask(node, &command))).await
    }

    /// Counts the nodes that store an owner for [`key`].
    pub async fn held(&self) -> usize {
        self.owners().await.iter().flatten().count()
    }

    /// Returns the fencing counter of each node, 0 if it has none.
    pub async fn counters(&self) -> Vec<u64> {
        let mut counters = Vec::new();
        for node in 0..self.nodes() {
            let count: Option<u64> = self.ask(node, redis::cmd("GET").arg(key().fence_key())).await;
            counters.push(count.unwrap_or_default());
        }
        counters
    }
}
