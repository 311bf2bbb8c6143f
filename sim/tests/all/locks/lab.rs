//! A laboratory for the lock library: one Redis, one resource and some clients in a simulated world.

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

/// How long a segment takes from one process to another.
pub const LATENCY: Duration = Duration::from_millis(2);
/// A request and its answer.
pub const ROUND_TRIP: Duration = Duration::from_millis(4);

const REDIS: &str = "redis:6379";
const RESOURCE: &str = "resource:80";

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub control: Control,
    host: RedisHost,
    /// How the clients that are made from now on learn of a release.
    pub waiting: Waiting,
}

/// One client process and its lock.
pub type Member = scripts::Member<Redis<SimRuntime>>;

/// Runs `test` in a world with `clients` processes, `client-0` and on. Nothing has been sent before it
/// begins.
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
        // The servers listen before anybody connects.
        control.sleep(Duration::from_millis(1)).await;
        test(Lab { control, host, waiting: Waiting::Polled }).await
    });
    result
}

impl Lab {
    /// The client numbered `number`, with leases of `ttl` and a connection of its own.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        let process = self.control.process(&format!("client-{number}"));
        let mut redis = RedisOptions::default();
        redis.waiting = self.waiting;
        let redis = Redis::new(process.runtime(), REDIS, redis).unwrap();
        let mut options = Options::new(ttl);
        options.instance = Some(process.name().to_owned());
        Member::new(&process, redis, options)
    }

    /// The first two clients.
    pub fn pair(&self, ttl: Duration) -> (Member, Member) {
        (self.member(0, ttl), self.member(1, ttl))
    }

    /// A client of the resource in the process of `member`.
    pub fn resource(&self, member: &Member) -> Client<SimRuntime> {
        Client::new(member.runtime.clone(), RESOURCE)
    }

    /// Lets `time` pass, in true time.
    pub async fn sleep(&self, time: Duration) {
        self.control.sleep(time).await;
    }

    /// The commands that the lock server has executed since it started.
    pub fn executed(&self) -> u64 {
        self.server().executed()
    }

    /// The lock server in its present life.
    pub fn server(&self) -> Server {
        self.host.server().expect("the lock server is down")
    }

    /// Asks the lock server by a plain command, as an operator would.
    pub async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let observer = self.control.process("observer");
        let mut connection = clients::redis(&observer, REDIS).await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }

    /// The owner token that the lock server has for [`key`].
    pub async fn owner(&self) -> Option<String> {
        self.ask(redis::cmd("GET").arg(key().owner_key())).await
    }

    /// How often [`key`] was granted, as the lock server counts it.
    pub async fn counter(&self) -> Option<u64> {
        self.ask(redis::cmd("GET").arg(key().fence_key())).await
    }

    /// Kills the lock server and starts it again at once, with what its append-only file holds.
    pub async fn restart_redis(&self) {
        self.control.strike(Crash::of("redis")).heal();
        self.sleep(Duration::from_millis(1)).await;
    }
}
