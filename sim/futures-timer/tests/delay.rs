//! A delay ends by the clock of its process.

use std::time::Duration;

use futures_timer::Delay;
use sim::{Process, Sim};

#[test]
fn a_delay_takes_its_time_on_the_clock_of_the_process() {
    let report = Sim::new(7)
        .process("a", |process: Process| async move {
            let begun = process.now();
            let mut delay = Delay::new(Duration::from_secs(60));
            delay.reset(Duration::from_millis(300));
            delay.await;
            let waited = process.now().saturating_since(begun);
            process.point(&format!("waited {} ms", waited.as_millis()));
        })
        .run();
    assert!(report.is_ok_and(|report| report.trace().contains("waited 300 ms")));
}
