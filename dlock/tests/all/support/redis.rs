//! A lock on the server in memory, for the tests of the Redis backend.

use dlock::redis::{Redis, RedisOptions};
use dlock::{FencingToken, Handle, Lock, Options, Runtime};

use super::server::Server;
use super::{World, key, ms};

pub type RedisLock = Lock<Redis<World>>;

pub fn lock(world: &World) -> RedisLock {
    lock_by(world, RedisOptions::default())
}

fn lock_by(world: &World, redis: RedisOptions) -> RedisLock {
    let mut options = Options::new(ms(2000));
    options.instance = Some("a".into());
    let redis = Redis::new(world.clone(), "redis:6379", redis).unwrap();
    Lock::new(redis, options).unwrap()
}

/// As [`world`], with changed options of the client.
pub fn lock_with(change: impl FnOnce(&mut RedisOptions)) -> (World, Server, RedisLock) {
    let (world, server) = World::with_server();
    let mut options = RedisOptions::default();
    change(&mut options);
    let lock = lock_by(&world, options);
    (world, server, lock)
}

pub fn world() -> (World, Server, RedisLock) {
    let (world, server) = World::with_server();
    let lock = lock(&world);
    (world, server, lock)
}

pub fn acquire(world: &World, lock: &RedisLock) -> Handle<Redis<World>> {
    world.run(lock.acquire(&key(), world.now() + ms(10_000))).unwrap()
}

pub fn holder(server: &Server) -> Option<String> {
    server.value(&key().owner_key())
}

/// Returns the number of executed releases.
pub fn releases(server: &Server) -> usize {
    server.log().iter().filter(|line| line.contains(" release ")).count()
}

pub fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}
