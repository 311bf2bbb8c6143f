//! The names of hosts, and lookups that are slow, fail or are stale.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sim::faults::{Action, Crash, Dns, Fault, FaultCheck, Fields, Scene, Strike, Trigger};
use sim::{Invalid, Process, Report, Sim, Span};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, sleep};

/// Returns the addresses of `host`, and the whole milliseconds that the lookup took.
async fn find(host: &str) -> (std::io::Result<String>, u128) {
    let begun = Instant::now();
    let found = lookup_host((host, 1)).await;
    let found = found
        .map(|addresses| addresses.map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" "));
    (found, begun.elapsed().as_millis())
}

/// Runs `main` in the process `a`, beside `b` and `c`, under the faults.
fn run<F: Future<Output = ()> + Send + 'static>(
    faults: Vec<Fault>,
    main: impl Fn() -> F + Send + Sync + 'static,
) -> Report {
    let mut sim = Sim::new(7);
    sim.process("a", move |_| main()).empty_process("b").empty_process("c").alias("db", "b");
    for fault in faults {
        sim.fault(fault);
    }
    sim.run().unwrap()
}

fn at(millis: u64, what: impl Action) -> Fault {
    Fault::new(Trigger::At(Span::from_millis(millis)), what)
}

/// Moves the alias `db` to a process.
#[derive(Clone, Debug)]
struct Move(&'static str);

impl Action for Move {
    fn verb(&self) -> &'static str {
        "move"
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("move", self.0);
    }

    fn processes(&self) -> Vec<&str> {
        vec![self.0]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(self.0)
    }

    fn strike(&self, strike: &Strike) {
        strike.world().alias("db", strike.process(self.0));
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}

#[test]
fn hosts_have_addresses() {
    let report = run(Vec::new(), || async {
        let mut found = Vec::new();
        for host in ["a", "b", "db", "localhost", "10.9.8.7", "nobody"] {
            found.push(find(host).await.0.unwrap_or_else(|error| format!("{:?}", error.kind())));
        }
        sim::point(&found.join(" "));
    });
    assert!(report.trace().contains("10.0.0.1 10.0.0.2 10.128.0.1 127.0.0.1 10.9.8.7 NotFound"));
}

#[test]
fn slow_lookups_take_longer_until_the_fault_ends() {
    let slow = Dns { lasts: Some(Span::from_secs(1)), ..Dns::slow("a", Span::from_secs(2)) };
    let report = run(vec![at(0, slow)], || async {
        sleep(Duration::from_millis(1)).await;
        let (found, took) = find("b").await;
        assert_eq!((found.unwrap().as_str(), took), ("10.0.0.2", 2_000));
        assert_eq!(find("10.0.0.2").await.1, 0);
        assert_eq!(find("b").await.1, 0);
        sim::point("done");
    });
    let trace = report.trace();
    assert!(trace.contains("lookups take 2s longer") && trace.contains("done"), "{trace}");
}

#[test]
fn failing_lookups_fail_for_all_until_the_fault_ends() {
    let failing = Dns { process: None, lasts: Some(Span::from_secs(1)), ..Dns::failing("a") };
    let report = run(vec![at(0, failing)], || async {
        sleep(Duration::from_millis(1)).await;
        let error = TcpStream::connect("b:1").await.unwrap_err().to_string();
        assert!(error.contains("Temporary failure in name resolution (b)"), "{error}");
        assert_eq!(find("127.0.0.1").await.0.unwrap(), "127.0.0.1");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(find("b").await.0.unwrap(), "10.0.0.2");
        sim::point("done");
    });
    let trace = report.trace();
    assert!(trace.contains("lookups of all processes fail") && trace.contains("done"), "{trace}");
}

#[test]
fn lookups_of_other_processes_work() {
    let report = run(vec![at(0, Dns::failing("b"))], || async {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(find("b").await.0.unwrap(), "10.0.0.2");
        sim::point("done");
    });
    assert!(report.trace().contains("done"));
}

#[test]
fn stale_lookups_give_the_former_process_of_an_alias() {
    let stale = Dns { lasts: Some(Span::from_secs(1)), ..Dns::stale("a") };
    let report = run(vec![at(0, stale), at(500, Move("c"))], || async {
        sleep(Duration::from_millis(1)).await;
        // It has not moved yet.
        assert_eq!(find("db").await.0.unwrap(), "10.128.0.1");
        sleep(Duration::from_millis(600)).await;
        assert_eq!(find("db").await.0.unwrap(), "10.0.0.2");
        assert_eq!(find("c").await.0.unwrap(), "10.0.0.3");
        sleep(Duration::from_millis(600)).await;
        assert_eq!(find("db").await.0.unwrap(), "10.128.0.1");
        sim::point("done");
    });
    let trace = report.trace();
    assert!(trace.contains("lookups give the former process of an alias"), "{trace}");
    assert!(trace.contains("done"), "{trace}");
}

#[test]
fn a_fault_is_aimed_at_a_lookup() {
    let when =
        Trigger::After { process: "a".to_owned(), point: "looks up c".to_owned(), nth: 2, plus: Span::ZERO };
    let report = run(vec![Fault::new(when, Dns::failing("a"))], || async {
        let found = [find("c").await.0.is_ok(), find("b").await.0.is_ok(), find("c").await.0.is_ok()];
        sim::point(&format!("{found:?}"));
    });
    assert!(report.trace().contains("[true, true, false]"));
}

#[test]
fn a_search_breaks_the_lookups_of_a_process() {
    let subject = |sim: &mut Sim| {
        sim.empty_process("b").process("a", |process: Process| async move {
            for _ in 0..5 {
                process.always("lookups work", find("b").await.0.is_ok());
                sleep(Duration::from_millis(200)).await;
            }
        });
    };
    let folder = std::env::temp_dir().join(format!("sim-names-{}", std::process::id()));
    let failure = sim::check("lookups", subject).schedules(300).keep_in(&folder).find().unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    let failure = failure.unwrap().to_string();
    assert!(failure.contains("lookups work") && failure.contains("failing"), "{failure}");
}

/// The standard library's lookup is a call of C, through which no stack can be unwound.
#[test]
fn a_crash_ends_a_blocking_lookup() {
    use std::net::ToSocketAddrs as _;

    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    let mut sim = Sim::new(7);
    sim.empty_process("b");
    sim.process("a", move |process: Process| {
        let told = Arc::clone(&told);
        async move {
            if process.life() > 0 {
                return;
            }
            sleep(Duration::from_millis(1)).await;
            let look_up = tokio::task::spawn_blocking(move || {
                let found = ("b", 1).to_socket_addrs();
                told.store(found.is_err(), Ordering::Relaxed);
            });
            look_up.await.unwrap();
        }
    });
    sim.fault(at(0, Dns::slow("a", Span::from_secs(5))));
    let crash = Crash { restart_after: Some(Span::from_secs(1)), ..Crash::of("a") };
    sim.fault(at(500, crash));
    sim.run().unwrap();
    assert!(ended.load(Ordering::Relaxed), "the lookup did not end");
}
