//! Three simulated ZooKeeper servers and two client processes, for the tests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dlock::{Instant, Runtime};
use dlock_zookeeper::{Client, ClientOptions};
use sim::faults::{Cut, Reset};
use sim::servers::zookeeper::{Ensemble, EnsembleOptions, Observer};
use sim::world::runtime::SimRuntime;
use sim::{Control, Process, Report, Sim};

use crate::support::scripts::run_script;

pub const MS: u64 = 1_000_000;
pub const SERVERS: [&str; 3] = ["zk-1", "zk-2", "zk-3"];
/// The servers' tick. Session timeouts are 2 to 20 ticks (0.2 to 2 s); sessions expire at whole ticks.
pub const TICK: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct Zoo {
    pub control: Control,
    pub ensemble: Ensemble,
}

/// Runs `test` in a world in which each segment takes 1 ms.
pub fn in_zoo<T: Send, F: Future<Output = T>>(test: impl FnOnce(Zoo) -> F + Send) -> T {
    observed_zoo(Arc::new(()), test).1
}

/// Like [`in_zoo`], with `observer` on the servers. Returns the report of the run, too.
pub fn observed_zoo<T: Send, F: Future<Output = T>>(
    observer: Arc<dyn Observer>,
    test: impl FnOnce(Zoo) -> F + Send,
) -> (Report, T) {
    let mut options = EnsembleOptions::new(SERVERS);
    options.tick = TICK;
    options.observer = observer;
    let ensemble = Ensemble::new(options);
    let build = |sim: &mut Sim| {
        sim.empty_process("a").empty_process("b");
        for name in SERVERS {
            sim.host(name, ensemble.member(name).unwrap());
        }
    };
    let ensemble = ensemble.clone();
    run_script(Duration::from_millis(1), build, |control| test(Zoo { control, ensemble }))
}

impl Zoo {
    pub fn process(&self, name: &str) -> Process {
        self.control.process(name)
    }

    pub fn runtime(&self, name: &str) -> SimRuntime {
        self.process(name).runtime()
    }

    /// Returns a client in process `name`, with a session timeout of 1 s, at any server.
    pub fn client(&self, name: &str) -> Client<SimRuntime> {
        self.client_of(name, &SERVERS, Duration::from_secs(1))
    }

    pub fn client_of(&self, name: &str, servers: &[&str], timeout: Duration) -> Client<SimRuntime> {
        let servers = servers.iter().map(|server| format!("{server}:2181"));
        Client::new(self.runtime(name), ClientOptions::new(servers, timeout))
    }

    /// Returns the deadline `millis` milliseconds from now on the clock of `name`.
    pub fn within(&self, name: &str, millis: u64) -> Instant {
        self.runtime(name).now() + Duration::from_millis(millis)
    }

    /// True time, in nanoseconds.
    pub fn now(&self) -> u64 {
        u64::try_from(self.control.now().as_nanos()).unwrap()
    }

    pub async fn pass(&self, millis: u64) {
        self.control.sleep(Duration::from_millis(millis)).await;
    }

    /// Cuts the links between two processes, in both directions.
    pub fn part(&self, one: &str, other: &str) {
        self.control.strike(Cut::between(one, other));
    }

    pub fn join(&self, one: &str, other: &str) {
        self.control.heal(Cut::between(one, other));
    }

    pub fn cut(&self, from: &str, to: &str) {
        self.control.strike(Cut::one_way(from, to));
    }

    pub fn heal(&self, from: &str, to: &str) {
        self.control.heal(Cut::one_way(from, to));
    }

    /// Resets all connections of the process; data in flight on them is lost.
    pub fn reset_all(&self, name: &str) {
        SERVERS.iter().for_each(|server| _ = self.control.strike(Reset::between(name, server)));
    }
}
