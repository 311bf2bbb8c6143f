//! Three simulated ZooKeeper servers and two clients' processes, for the tests.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{Instant, Runtime};
use dlock_zookeeper::{Client, ClientOptions};
use sim::entropy::Entropy;
use sim::servers::zookeeper::{Ensemble, EnsembleOptions, Observer, ServerWorld};
use sim::world::World;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

pub const MS: u64 = 1_000_000;
pub const SERVERS: [&str; 3] = ["zk-1", "zk-2", "zk-3"];
/// Sessions time out after 0.2 to 2 s, and expire at whole 0.1 s.
pub const TICK: Duration = Duration::from_millis(100);

type Cuts = Arc<Mutex<BTreeSet<(String, String)>>>;

#[derive(Clone)]
pub struct Zoo {
    pub world: World,
    pub ensemble: Ensemble<Machine>,
    cuts: Cuts,
}

/// What a simulated member needs of its machine.
pub struct Machine {
    runtime: SimRuntime,
    cuts: Cuts,
}

impl ServerWorld for Machine {
    fn monotonic_nanos(&self) -> u64 {
        self.runtime.now().as_nanos()
    }

    fn wall_millis(&self) -> u64 {
        self.runtime.wall_nanos() / MS
    }

    async fn sleep(&self, duration: Duration) {
        self.runtime.sleep_until(self.runtime.now() + duration).await;
    }

    fn reaches(&self, name: &str) -> bool {
        let world = self.runtime.world();
        let own = world.process(self.runtime.process()).name();
        let other = world.process(world.find(name).unwrap());
        let cuts = self.cuts.lock().unwrap();
        let whole = |from: &str, to: &str| !cuts.contains(&(from.to_owned(), to.to_owned()));
        other.is_alive() && !other.is_paused() && whole(own, name) && whole(name, own)
    }
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
        let zoo = Zoo { ensemble: Ensemble::new(options), cuts: Cuts::default(), world: world.clone() };
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
        let (world, process, name) = (self.world.clone(), self.id(name), name.to_owned());
        let (ensemble, cuts) = (self.ensemble.clone(), Arc::clone(&self.cuts));
        async move {
            let machine = Machine { runtime: SimRuntime::new(&world, process), cuts };
            let server = ensemble.member(&name, machine).unwrap();
            let member = server.clone();
            world.spawn(process, async move { member.run().await });
            let mut listener = world.listen(process, &format!("{name}:2181")).unwrap();
            loop {
                let (stream, client) = listener.accept().await;
                let server = server.clone();
                world.spawn(process, async move { server.serve_connection(stream, &client).await });
            }
        }
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
        self.cuts.lock().unwrap().insert((from.to_owned(), to.to_owned()));
        self.world.cut(self.id(from), self.id(to));
    }

    pub fn heal(&self, from: &str, to: &str) {
        self.cuts.lock().unwrap().remove(&(from.to_owned(), to.to_owned()));
        self.world.heal(self.id(from), self.id(to));
    }
}

/// The node's names, sorted.
pub fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
