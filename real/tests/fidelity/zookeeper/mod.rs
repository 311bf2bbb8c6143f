//! The simulated ZooKeeper against a live one.

mod ask;
mod op;
mod script;
mod show;
mod side;
mod wire;

use real::servers::{Stage, ZooKeeper};

use self::script::{KINDS, Servers, scripts};
use crate::harness::{Tally, compare};

#[test]
fn zookeeper_answers_alike() {
    let stage = Stage::new().unwrap();
    let live = ZooKeeper::start(&stage).unwrap();
    let simulated = lab::serve::host_zookeeper(ZooKeeper::TICK, ZooKeeper::SESSION_TIMEOUTS).unwrap();
    let servers = Servers::connect(live.address().parse().unwrap(), simulated.address());
    let tally = Tally::default();
    compare("zookeeper", 350, scripts(), |script| servers.run(script, &tally));
    tally.require(KINDS.map(str::to_owned));
}
