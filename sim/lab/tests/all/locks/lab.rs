//! A world for tests of the lock library: one Redis, one resource and some clients.

use std::time::Duration;

use dlock::Options;
use dlock::redis::{Redis, RedisOptions, Waiting};
use redis::{Cmd, FromRedisValue};
use resource::client::Client;
use resource::http::Config;
use sim::faults::Crash;
use sim::servers::redis::{Persistence, RedisHost, Server};
use sim::servers::resource::ResourceHost;
use sim::world::runtime::SimRuntime;
use sim::{Control, Sim, clients};

pub use crate::support::scripts::key;
use crate::support::scripts::{self, run_script};

/// The latency of a segment from one process to another.
pub const LATENCY: Duration = Duration::from_millis(2);
/// The latency of a request and its answer.
pub const ROUND_TRIP: Duration = Duration::from_millis(4);

const REDIS: &str = "redis:6379";
const RESOURCE: &str = "resource:80";

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub control: Control,
    host: RedisHost,
    /// The option `waiting` of later clients.
    pub waiting: Waiting,
}

/// One client process and its lock.
pub type Member = scripts::Member<Redis<SimRuntime>>;

/// Runs `test` in a world with `clients` processes, from `client-0` on. Nothing is sent before it begins.
/// Returns its output.
pub fn in_lab<T: Send, F: Future<Output = T>>(clients: usize, test: impl FnOnce(Lab) -> F + Send) -> T {
    let host = RedisHost::new().persistence(Persistence::Always);
    let build = |sim: &mut Sim| {
        (0..clients).for_each(|number| _ = sim.empty_process(&format!("client-{number}")));
        sim.host("redis", host.clone());
        sim.host("resource", ResourceHost::in_memory(Config::default()));
        sim.empty_process("observer");
    };
    let host = host.clone();
    let (_, result) = run_script(LATENCY, build, |control| async move {
        // Time for the servers to listen before a client connects.
        control.sleep(Duration::from_millis(1)).await;
        test(Lab { control, host, waiting: Waiting::Polled }).await
    });
    result
}

impl Lab {
    /// Returns the client `number`, with leases of `ttl` and its own connection.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        let process = self.control.process(&format!("client-{number}"));
        let mut redis = RedisOptions::default();
        redis.waiting = self.waiting;
        let redis = Redis::new(process.runtime(), REDIS, redis).unwrap();
        let mut options = Options::new(ttl);
        options.instance = Some(process.name().to_owned());
        Member::new(&process, redis, options)
    }

    /// Returns the first two clients.
    pub fn pair(&self, ttl: Duration) -> (Member, Member) {
        (self.member(0, ttl), self.member(1, ttl))
    }

    /// Returns a client of the resource in the process of `member`.
    pub fn resource(&self, member: &Member) -> Client<SimRuntime> {
        Client::new(member.runtime.clone(), RESOURCE)
    }

    /// Waits for `time` of true time.
    pub async fn sleep(&self, time: Duration) {
        self.control.sleep(time).await;
    }

    /// Returns the number of commands that the lock server has executed in its present life.
    pub fn executed(&self) -> u64 {
        self.server().executed()
    }

    /// Returns the lock server in its present life.
    pub fn server(&self) -> Server {
        self.host.server().expect("the lock server is down")
    }

    /// Sends a command to the lock server, as an operator would; returns the answer.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let observer = self.control.process("observer");
        let mut connection = clients::redis(&observer, REDIS).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// Returns the owner token that the lock server stores for [`key`].
    pub async fn owner(&self) -> Option<String> {
        self.ask(redis::cmd("GET").arg(key().owner_key())).await
    }

    /// Returns the lock server's counter for [`key`]: the number of grants.
    pub async fn counter(&self) -> Option<u64> {
        self.ask(redis::cmd("GET").arg(key().fence_key())).await
    }

    /// Kills the lock server and restarts it at once, with the contents of its append-only file.
    pub async fn restart_redis(&self) {
        self.control.strike(Crash::of("redis")).heal();
        self.sleep(Duration::from_millis(1)).await;
    }
}
