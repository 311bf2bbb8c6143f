//! A laboratory for Redlock: some Redis servers, each with a disk of its own, and some clients in a simulated
//! world.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dlock::redis::TokenSource;
use dlock::redlock::{Redlock, RedlockOptions};
use dlock::{Instant, Lock, LockKey, Options, Runtime};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisConnectionInfo};
use sim::entropy::Entropy;
use sim::servers::redis::{Persistence, RedisHost, Server};
use sim::world::World;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

use crate::support::hosts;

/// How long a segment takes from one process to another.
pub const LATENCY: Duration = Duration::from_millis(2);

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub world: World,
    nodes: Arc<[Node]>,
}

/// One server and its process.
struct Node {
    id: ProcessId,
    address: String,
    host: RedisHost,
}

/// One client process and its lock.
pub struct Member {
    pub id: ProcessId,
    pub runtime: SimRuntime,
    pub lock: Lock<Redlock<SimRuntime>>,
}

/// Runs `test` with `nodes` servers, `redis-1` and on, and `clients` processes, `client-0` and on.
pub fn in_lab<F: Future>(nodes: usize, clients: usize, test: impl FnOnce(Lab) -> F) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let mut names: Vec<String> = (0..clients).map(|number| format!("client-{number}")).collect();
        names.push("observer".into());
        names.extend((1..=nodes).map(|number| format!("redis-{number}")));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let world = World::new(Entropy::new(1), &names, (LATENCY, LATENCY));
        let lab = Lab::new(world.clone(), nodes);
        // The servers listen before anybody connects.
        lab.sleep(Duration::from_millis(1)).await;
        let result = test(lab.clone()).await;
        world.end().await;
        result
    })
}

/// The key that all tests lock.
pub fn key() -> LockKey {
    LockKey::new("orders", "42").unwrap()
}

impl Lab {
    fn new(world: World, nodes: usize) -> Self {
        let node = |number: usize| Node {
            id: world.find(&format!("redis-{number}")).unwrap(),
            address: format!("redis-{number}:6379"),
            host: RedisHost::new().persistence(Persistence::Always),
        };
        let lab = Self { nodes: (1..=nodes).map(node).collect(), world };
        lab.nodes.iter().for_each(|node| hosts::start(&lab.world, node.id, &node.host));
        lab
    }

    /// The client numbered `number`, with leases of `ttl` and connections of its own.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        self.member_with(number, ttl, TokenSource::Counter)
    }

    /// The same with tokens from `tokens`.
    pub fn member_with(&self, number: usize, ttl: Duration, tokens: TokenSource) -> Member {
        let id = self.world.find(&format!("client-{number}")).unwrap();
        let runtime = SimRuntime::new(&self.world, id);
        let addresses: Vec<_> = self.nodes.iter().map(|node| &node.address).collect();
        let mut redlock = RedlockOptions::default();
        redlock.tokens = tokens;
        let redlock = Redlock::new(runtime.clone(), &addresses, redlock).unwrap();
        let mut options = Options::new(ttl);
        options.instance = Some(format!("client-{number}"));
        Member { id, lock: Lock::new(redlock, options).unwrap(), runtime }
    }

    /// The process of the node numbered `number`, from 0.
    pub fn node(&self, number: usize) -> ProcessId {
        self.nodes[number].id
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Lets `time` pass, in true time.
    pub async fn sleep(&self, time: Duration) {
        self.world.sleep_until(self.world.now() + u64::try_from(time.as_nanos()).unwrap()).await;
    }

    /// Does `act` once `time` has passed, whatever the test does meanwhile.
    pub fn after(&self, time: Duration, act: impl FnOnce(&Lab) + Send + 'static) {
        let lab = self.clone();
        self.world.spawn_harness(async move {
            lab.sleep(time).await;
            act(&lab);
        });
    }

    /// Cuts the client from the node, in both directions.
    pub fn cut(&self, client: ProcessId, node: usize) {
        self.world.cut(client, self.node(node));
        self.world.cut(self.node(node), client);
    }

    pub fn heal(&self, client: ProcessId, node: usize) {
        self.world.heal(client, self.node(node));
        self.world.heal(self.node(node), client);
    }

    /// Kills a node, without a loss of power.
    pub fn crash(&self, node: usize) {
        hosts::crash(&self.world, self.node(node), &self.nodes[node].host);
    }

    /// Starts a dead node with what its append-only file holds.
    pub fn restart(&self, node: usize) {
        hosts::restart(&self.world, self.node(node), &self.nodes[node].host);
    }

    /// The server of a node that runs.
    pub fn server(&self, node: usize) -> Server {
        self.nodes[node].host.server().unwrap()
    }

    /// Asks a node by a plain command, as an operator would.
    pub async fn ask<T: FromRedisValue>(&self, node: usize, command: &Cmd) -> T {
        let runtime = SimRuntime::new(&self.world, self.world.find("observer").unwrap());
        let stream = runtime.connect(&self.nodes[node].address).await.unwrap();
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let info = RedisConnectionInfo::default();
        let (mut connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await.unwrap();
        runtime.spawn(driver);
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

impl Member {
    pub fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// The deadline of an acquire that may wait for `time`.
    pub fn within(&self, time: Duration) -> Instant {
        self.now() + time
    }
}
