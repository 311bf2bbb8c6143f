//! Workers without a lock: each write names the version that was read, and the resource refuses it if another
//! write came first. No schedule loses an update.
//!
//! `cargo run --example without_a_lock`

use std::time::Duration;

use bytes::Bytes;
use resource::ResourceKey;
use resource::client::Client;
use resource::http::Config;
use resource::update::{Update, Updater};
use sim::servers::resource::ResourceHost;
use sim::{Sim, VerdictKind};

fn main() {
    let found =
        sim::check("without_a_lock", counters).keep_in("target/sim-regressions").schedules(300).find();
    match found {
        Ok(Some(failure)) => println!("{failure}"),
        Ok(None) => println!("no schedule lost an update"),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// Builds the world: a resource that stores its data on its disk, and three processes that count in it.
fn counters(sim: &mut Sim) {
    sim.resource("resource", ResourceHost::on_disk(Config::default())).key("counter:1");
    sim.check("no lost update", sim::no(VerdictKind::LostUpdate));
    for name in ["a", "b", "c"] {
        sim.process(name, |process| async move {
            let Ok(key) = ResourceKey::new("counter:1") else { return };
            let client = Client::new(process.runtime(), "resource:80");
            let updater = Updater::new(process.runtime(), client, (), process.name());
            let update = Update::new(key, Duration::from_millis(20));
            for _ in 0..3 {
                // An update that is given up is in the history; the next round goes on.
                let _ = updater.update(&update, |seen| Bytes::from(format!("{}", seen.version + 1))).await;
            }
        });
    }
}
