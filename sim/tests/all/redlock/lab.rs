//! A laboratory for Redlock: some Redis servers, each with a disk of its own, and some clients in a simulated
//! world.

use std::future::Future;
use std::time::Duration;

use dlock::Options;
use dlock::redis::TokenSource;
use dlock::redlock::{Redlock, RedlockOptions};
use futures_util::future::join_all;
use redis::{Cmd, FromRedisValue};
use sim::faults::{Crash, Cut, Delay, Step};
use sim::servers::redis::{Persistence, RedisHost, Server};
use sim::world::runtime::SimRuntime;
use sim::{Control, Shift, Sim, Span, clients};

pub use crate::support::scripts::key;
use crate::support::scripts::{self, run_script};

/// How long a segment takes from one process to another.
pub const LATENCY: Duration = Duration::from_millis(2);

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub control: Control,
    hosts: Vec<RedisHost>,
}

/// One client process and its lock.
pub type Member = scripts::Member<Redlock<SimRuntime>>;

/// The name of the node numbered `number`, from 0.
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
        // The servers listen before anybody connects.
        control.sleep(Duration::from_millis(1)).await;
        test(Lab { control, hosts }).await
    });
    result
}

impl Lab {
    /// The client numbered `number`, with leases of `ttl` and connections of its own.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        self.member_with(number, ttl, TokenSource::Counter)
    }

    /// The same with tokens from `tokens`.
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

    /// Lets `time` pass, in true time.
    pub async fn sleep(&self, time: Duration) {
        self.control.sleep(time).await;
    }

    /// Cuts the client from the node, in both directions.
    pub fn cut(&self, client: &Member, number: usize) {
        self.control.strike(Cut::between(client.name(), &node(number)));
    }

    pub fn heal(&self, client: &Member, number: usize) {
        self.control.heal(Cut::between(client.name(), &node(number)));
    }

    /// Has all that `from` sends to `to` take longer by `time`.
    pub fn delay(&self, from: &str, to: &str, time: Duration) {
        let by = Span::from_nanos(u64::try_from(time.as_nanos()).unwrap());
        self.control.strike(Delay::one_way(from, to, by));
    }

    /// Kills a node, without a loss of power.
    pub fn crash(&self, number: usize) {
        self.control.strike(Crash::of(&node(number)));
    }

    /// Starts a dead node with what its append-only file holds.
    pub fn restart(&self, number: usize) {
        self.control.heal(Crash::of(&node(number)));
    }

    /// The wall clock of a node steps back by a minute.
    pub fn step_back(&self, number: usize) {
        self.control.strike(Step::of(&node(number), Shift::from_nanos(-60_000_000_000)));
    }

    /// The server of a node that runs.
    pub fn server(&self, number: usize) -> Server {
        self.hosts[number].server().unwrap()
    }

    /// Asks a node by a plain command, as an operator would.
    pub async fn ask<T: FromRedisValue>(&self, node: usize, command: &Cmd) -> T {
        let observer = self.control.process("observer");
        let mut connection = clients::redis(&observer, &address(node)).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// The owner token that each node has for [`key`], all asked at once: the answers are of about three
    /// latencies later.
    pub async fn owners(&self) -> Vec<Option<String>> {
        let mut command = redis::cmd("GET");
        command.arg(key().owner_key());
        join_all((0..self.nodes()).map(|node| self.ask(node, &command))).await
    }

    /// How many nodes hold [`key`] for somebody.
    pub async fn held(&self) -> usize {
        self.owners().await.iter().flatten().count()
    }

    /// The counter of each node.
    pub async fn counters(&self) -> Vec<u64> {
        let mut counters = Vec::new();
        for node in 0..self.nodes() {
            let count: Option<u64> = self.ask(node, redis::cmd("GET").arg(key().fence_key())).await;
            counters.push(count.unwrap_or_default());
        }
        counters
    }
}
