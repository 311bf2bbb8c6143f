//! The simulated Redis against a live one.

mod blocking;
mod bodies;
mod channels;
mod collections;
mod command;
mod events;
mod fields;
mod libraries;
mod lua;
mod monitor;
mod near;
mod script;
mod templates;
mod wire;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use real::servers::{Persistence, Redis, Stage};
use sim::servers::redis::Version;

use self::script::{Servers, run, scripts, valkey_scripts};
use self::wire::Connection;
use crate::harness::{Tally, compare_all};

#[test]
fn redis_answers_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "redis",
        700,
        scripts,
        |script| run(script, servers, &tally),
        (&tally, templates::kinds().chain(lua::kinds())),
    );
}

/// Only the commands that Redis 7 lacks: in the rest the simulated Valkey is Redis 7.
#[test]
fn valkey_answers_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis_of(Version::Valkey9).unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    let commands = ["DELIFEQ", "SET", "EXEC"].into_iter().chain(lua::ASKING).chain(fields::names());
    let kinds = commands.filter(|name| *name != "OBJECT").map(str::to_owned);
    compare_all("valkey", 500, valkey_scripts, |script| run(script, servers, &tally), (&tally, kinds));
}

/// A command added to the simulated Valkey must be compared, too.
#[test]
fn valkey_compares_every_command_that_redis_lacks() {
    let known = |version| {
        let simulated = lab::serve::host_redis_of(version).unwrap();
        let mut connection = Connection::open(simulated.address()).unwrap();
        let count = connection.say(b"COMMAND COUNT\r\n").unwrap().to_string();
        count.trim_start_matches(':').parse::<usize>().unwrap()
    };
    let of_redis: BTreeSet<_> = templates::names().collect();
    let compared: BTreeSet<_> = fields::names().chain(["DELIFEQ"]).collect();
    let newer: Vec<_> = compared.difference(&of_redis).collect();
    assert_eq!(known(Version::Valkey9) - known(Version::Redis7), newer.len(), "{newer:?}");
}

/// The events of the commands that Redis 7 lacks.
#[test]
fn valkey_events_come_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start_valkey(&stage, "valkey", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis_of(Version::Valkey9).unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "valkey_events",
        500,
        events::valkey_scripts,
        |script| events::run(script, servers, &tally),
        (&tally, events::valkey_kinds()),
    );
}

#[test]
fn redis_channels_answer_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "redis_channels",
        500,
        channels::scripts,
        |script| channels::run(script, servers, &tally),
        (&tally, channels::KINDS.map(str::to_owned)),
    );
}

#[test]
fn redis_events_come_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "redis_events",
        500,
        events::scripts,
        |script| events::run(script, servers, &tally),
        (&tally, events::kinds()),
    );
    let [theirs, ours] = [servers.live, servers.simulated].map(events::of_expiry);
    assert_eq!(theirs, ours);
}

#[test]
fn redis_monitors_see_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "redis_monitors",
        500,
        monitor::scripts,
        |script| monitor::run(script, servers, &tally),
        (&tally, monitor::KINDS.map(str::to_owned)),
    );
}

/// Clients that wait for elements of lists and sorted sets.
#[test]
fn redis_serves_waiting_clients_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let servers = Servers { live: live.address().parse().unwrap(), simulated: simulated.address() };
    let tally = Tally::default();
    compare_all(
        "redis_serves",
        150,
        blocking::scripts,
        |script| blocking::run(script, servers, &tally),
        (&tally, blocking::kinds()),
    );
}

/// The comparison above must bear a machine so busy that timeouts come before the next request.
#[test]
fn redis_answers_after_a_timeout_alike() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let expected = ("to 1: *-1".to_owned(), BTreeSet::from([1]));
    for server in [live.address().parse().unwrap(), simulated.address()] {
        assert_eq!(blocking::ask_after_a_timeout(server), expected, "{server}");
    }
}

/// A command added to the simulated server must be compared, too.
#[test]
fn redis_compares_every_command_of_the_simulated_server() {
    let simulated = lab::serve::host_redis().unwrap();
    let mut connection = Connection::open(simulated.address()).unwrap();
    let known = connection.say(b"COMMAND COUNT\r\n").unwrap().to_string();
    let compared = templates::names().chain(lua::NAMES).chain(blocking::NAMES).chain(monitor::NAMES);
    let all: BTreeSet<_> = compared.chain(templates::NOT_COMPARED).collect();
    assert_eq!(known, format!(":{}", all.len()), "templates.rs names {all:?}");
}

/// Publishes messages of 1 MiB to a subscriber that reads none, and returns how many it got before the server
/// closed it.
fn unread_messages(server: SocketAddr) -> usize {
    let (mut subscriber, mut publisher) =
        (Connection::open(server).unwrap(), Connection::open(server).unwrap());
    let subscribed = subscriber.say(&wire::request(&[b"SUBSCRIBE".to_vec(), b"news".to_vec()])).unwrap();
    assert!(subscribed.to_string().ends_with("subscribe $4 news :1"), "{subscribed}");
    let publish = wire::request(&[b"PUBLISH".to_vec(), b"news".to_vec(), vec![b'x'; 1 << 20]]);
    (0..100).take_while(|_| publisher.say(&publish).unwrap().to_string() == ":1").count()
}

/// The limit of 32 MB, and what the sockets of both ends hold.
#[test]
fn redis_closes_a_subscriber_that_reads_nothing() {
    let stage = Stage::new().unwrap();
    let live = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let simulated = lab::serve::host_redis().unwrap();
    let live = unread_messages(live.address().parse().unwrap());
    let simulated = unread_messages(simulated.address());
    assert!((32..48).contains(&live), "live: {live}");
    assert!((32..48).contains(&simulated), "simulated: {simulated}");
}
