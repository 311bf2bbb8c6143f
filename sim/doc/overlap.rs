// A subject for the examples in this crate's documentation: a pause of `a` in its section lets `b` in.

use std::time::Duration;

use sim::{Process, Sim, VerdictKind};

/// Builds a world of two processes, which take turns by their clocks and not by a lock.
pub fn turns_by_clock(sim: &mut Sim) {
    sim.check("one at a time", sim::no(VerdictKind::Overlap));
    for (name, starts) in [("a", 0), ("b", 200)] {
        sim.process(name, move |process: Process| async move {
            process.sleep(Duration::from_millis(starts)).await;
            let section = process.section("key");
            process.point("inside");
            process.sleep(Duration::from_millis(10)).await;
            drop(section);
        });
    }
}
