//! Three simulated ZooKeeper servers and two clients' processes, for the tests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dlock::{Instant, Runtime};
use dlock_zookeeper::{Client, ClientOptions};
use sim::entropy::Entropy;
use sim::servers::host::Host;
use sim::servers::zookeeper::{Ensemble, EnsembleOptions, Observer};
use sim::world::World;
use sim::world::machine::WorldMachine;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

pub const MS: u64 = 1_000_000;
pub const SERVERS: [&str; 3] = ["zk-1", "zk-2", "zk-3"];
/// Sessions time out after 0.2 to 2 s, and expire at whole 0.1 s.
pub const TICK: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct Zoo {
    pub world: World,
    pub ensemble: Ensemble,
}

/// Runs `test` in a world in which each segment takes 1 ms.
pub fn in_zoo<F: Future>(test: impl FnOnce(Zoo) -> F) -> F::Output {
    watched_zoo(Arc::new(()), test)
}

/// The same, with the servers watched.
pub fn watched_zoo<F: Future>(observer: Arc<dyn Observer>, test: impl FnOnce(Zoo) -> F) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let latency = Duration::from_millis(1);
        let names = ["a", "b", "zk-1", "zk-2", "zk-3"];
        let world = World::new(Entropy::new(1), &names, (latency, latency));
        let mut options = EnsembleOptions::new(SERVERS);
        options.tick = TICK;
        options.observer = observer;
        let zoo = Zoo { ensemble: Ensemble::new(options), world: world.clone() };
        for name in SERVERS {
            world.spawn(zoo.id(name), zoo.main(name));
        }
        let result = test(zoo).await;
        world.end().await;
        result
    })
}

impl Zoo {
    pub fn id(&self, name: &str) -> ProcessId {
        self.world.find(name).unwrap()
    }

    pub fn runtime(&self, name: &str) -> SimRuntime {
        SimRuntime::new(&self.world, self.id(name))
    }

    /// What a server's process runs.
    pub fn main(&self, name: &str) -> impl Future<Output = ()> + Send + 'static {
        self.ensemble.member(name).unwrap().start(WorldMachine::new(&self.world, self.id(name)))
    }

    /// A session of 1 s of the process `name` at any server.
    pub fn client(&self, name: &str) -> Client<SimRuntime> {
        self.client_of(name, &SERVERS, Duration::from_secs(1))
    }

    pub fn client_of(&self, name: &str, servers: &[&str], timeout: Duration) -> Client<SimRuntime> {
        let servers = servers.iter().map(|server| format!("{server}:2181"));
        Client::new(self.runtime(name), ClientOptions::new(servers, timeout))
    }

    /// The deadline in `millis` on the clock of `name`.
    pub fn within(&self, name: &str, millis: u64) -> Instant {
        self.runtime(name).now() + Duration::from_millis(millis)
    }

    pub async fn pass(&self, millis: u64) {
        self.world.sleep_until(self.world.now() + millis * MS).await;
    }

    /// Cuts both directions between two processes.
    pub fn part(&self, one: &str, other: &str) {
        self.cut(one, other);
        self.cut(other, one);
    }

    pub fn join(&self, one: &str, other: &str) {
        self.heal(one, other);
        self.heal(other, one);
    }

    pub fn cut(&self, from: &str, to: &str) {
        self.world.cut(self.id(from), self.id(to));
    }

    pub fn heal(&self, from: &str, to: &str) {
        self.world.heal(self.id(from), self.id(to));
    }
}
