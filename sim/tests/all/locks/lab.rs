//! A laboratory for the lock library: one Redis, one resource and some clients in a simulated world. A test
//! does by hand what a schedule would do, and looks at the answers themselves.

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions, Waiting};
use dlock::{Instant, Lock, LockKey, Options, Runtime};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisConnectionInfo};
use resource::client::Client;
use resource::http::Config;
use sim::entropy::Entropy;
use sim::servers::redis::{Persistence, RedisHost, Server};
use sim::servers::resource::ResourceHost;
use sim::world::World;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;

use crate::support::hosts;

/// How long a segment takes from one process to another.
pub const LATENCY: Duration = Duration::from_millis(2);
/// A request and its answer.
pub const ROUND_TRIP: Duration = Duration::from_millis(4);

const REDIS: &str = "redis:6379";
const RESOURCE: &str = "resource:80";

/// The world of one test. Clones are the same world.
#[derive(Clone)]
pub struct Lab {
    pub world: World,
    pub redis: ProcessId,
    host: RedisHost,
    /// How the clients that are made from now on learn of a release.
    pub waiting: Waiting,
}

/// One client process and its lock.
pub struct Member {
    pub id: ProcessId,
    pub runtime: SimRuntime,
    pub lock: Lock<Redis<SimRuntime>>,
}

/// Runs `test` in a world with `clients` processes, `client-0` and on. Nothing has been sent before it
/// begins.
pub fn in_lab<F: Future>(clients: usize, test: impl FnOnce(Lab) -> F) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let mut names: Vec<String> = (0..clients).map(|number| format!("client-{number}")).collect();
        names.extend(["redis", "resource", "observer"].map(str::to_owned));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let world = World::new(Entropy::new(1), &names, (LATENCY, LATENCY));
        let lab = Lab::new(world.clone());
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
    fn new(world: World) -> Self {
        let redis = world.find("redis").unwrap();
        let waiting = Waiting::Polled;
        let host = RedisHost::new().persistence(Persistence::Always);
        hosts::start(&world, redis, &host);
        hosts::start(&world, world.find("resource").unwrap(), &ResourceHost::in_memory(Config::default()));
        Self { redis, host, world, waiting }
    }

    /// The client numbered `number`, with leases of `ttl` and a connection of its own.
    pub fn member(&self, number: usize, ttl: Duration) -> Member {
        let id = self.world.find(&format!("client-{number}")).unwrap();
        let runtime = SimRuntime::new(&self.world, id);
        let mut redis = RedisOptions::default();
        redis.waiting = self.waiting;
        let redis = Redis::new(runtime.clone(), REDIS, redis).unwrap();
        let mut options = Options::new(ttl);
        options.instance = Some(format!("client-{number}"));
        Member { id, lock: Lock::new(redis, options).unwrap(), runtime }
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
        let observer = self.world.find("observer").unwrap();
        let runtime = SimRuntime::new(&self.world, observer);
        let stream = runtime.connect(REDIS).await.unwrap();
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let info = RedisConnectionInfo::default();
        let (mut connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await.unwrap();
        runtime.spawn(driver);
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
        hosts::crash(&self.world, self.redis, &self.host);
        hosts::restart(&self.world, self.redis, &self.host);
        self.sleep(Duration::from_millis(1)).await;
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
