//! The simulated etcd against a live one.

mod draw;
mod op;
mod script;
mod show;
mod side;

use real::servers::{EtcdCluster, Stage};

use self::script::{KINDS, Servers, scripts};
use crate::harness::{Tally, compare};

#[test]
fn etcd_answers_alike() {
    let stage = Stage::new().unwrap();
    let live = EtcdCluster::start_one(&stage).unwrap();
    let simulated = lab::serve::host_etcd().unwrap();
    let servers = Servers::connect(&live.members[0].address(), &simulated.address().to_string());
    let tally = Tally::default();
    compare("etcd", 100, scripts(), |script| servers.run(script, &tally));
    tally.require(KINDS.map(str::to_owned));
}
