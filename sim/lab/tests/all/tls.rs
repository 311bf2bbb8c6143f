//! The library's clients over TLS in simulated worlds: the handshake is a real one, under pauses, resets and
//! by the clocks of the processes.

#[path = "../../../../dlock/runtime/tests/support/certificates.rs"]
mod certificates;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use certificates::Authority;
use dlock::tls::{Identity, TlsOptions, TlsServerOptions};
use dlock::{AnyBackend, ConnectOptions, Lock, LockKey, Options};
use sim::faults::{ClockStep, Cut, Fault, Link, Pause, Reset, Trigger};
use sim::servers::etcd::EtcdHost;
use sim::servers::host::Host;
use sim::servers::redis::RedisHost;
use sim::servers::tls::{Secured, TlsMachine};
use sim::servers::zookeeper::{EnsembleOptions, ZooKeeperHost};
use sim::world::machine::WorldMachine;
use sim::{Process, Report, Sim, Span};

const SECOND: Duration = Duration::from_secs(1);

/// A server's certificate, and the root to trust.
struct Pki {
    root: String,
    identity: Identity,
}

impl Pki {
    /// The certificate is valid until `year` begins.
    fn until(year: i32) -> Self {
        let authority = Authority::new("an authority");
        Self { identity: authority.issue_for(&["server"], 1970..year), root: authority.root }
    }

    fn client(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.tls.roots = Some(self.root.clone());
        options
    }

    /// Runs `host` over TLS.
    fn secured<H: Host<TlsMachine<WorldMachine>>>(&self, host: H, protocols: &[&str]) -> Secured<H> {
        let mut server = TlsServerOptions::new(self.identity.clone());
        server.protocols = protocols.iter().map(|&protocol| protocol.to_owned()).collect();
        let mut client = TlsOptions::default();
        client.roots = Some(self.root.clone());
        Secured::new(host, server, client).unwrap()
    }
}

/// A process, and its result.
type Ended = (String, Result<Duration, String>);

/// The results of processes, in the order of their ends.
type Results = Arc<Mutex<Vec<Ended>>>;

/// Adds a process that acquires the lock within ten seconds and releases it. Its result is the time at which
/// it had the lock.
fn client(sim: &mut Sim, name: &str, url: &str, options: &ConnectOptions, results: &Results) {
    let (url, options, results) = (url.to_owned(), options.clone(), Arc::clone(results));
    sim.process(name, move |process: Process| {
        let (url, options, results) = (url.clone(), options.clone(), Arc::clone(&results));
        async move {
            let result = hold(&process, &url, &options).await;
            results.lock().unwrap().push((process.name().to_owned(), result));
        }
    });
}

async fn hold(process: &Process, url: &str, servers: &ConnectOptions) -> Result<Duration, String> {
    let options = Options::new(6 * SECOND);
    let backend = AnyBackend::from_url(process.runtime(), url, &options, servers).unwrap();
    let lock = Lock::new(backend, options).unwrap();
    let key = LockKey::new("orders", process.name()).unwrap();
    let start = process.now();
    let deadline = lock.deadline_in(10 * SECOND);
    let handle = lock.acquire(&key, deadline).await.map_err(|error| error.to_string())?;
    let held = process.now().saturating_since(start);
    handle.release().await.map_err(|error| error.to_string())?;
    Ok(held)
}

/// Runs the clients `a` and `b` of a Redis over TLS, under `fault`.
fn on_redis(pki: &Pki, fault: Option<Fault>) -> (Report, Vec<Ended>) {
    let results = Results::default();
    let mut sim = Sim::new(1);
    sim.latency(Duration::from_millis(1), Duration::from_millis(1)).record_messages();
    sim.host("server", pki.secured(RedisHost::new(), &[]));
    for name in ["a", "b"] {
        client(&mut sim, name, "rediss://server:6379", &pki.client(), &results);
    }
    if let Some(fault) = fault {
        sim.fault(fault);
    }
    let report = sim.run().unwrap();
    let results = std::mem::take(&mut *results.lock().unwrap());
    (report, results)
}

fn of(results: &[Ended], name: &str) -> Result<Duration, String> {
    results.iter().find(|(known, _)| known == name).unwrap().1.clone()
}

#[test]
fn locks_on_redis_are_held_over_tls() {
    let (_, results) = on_redis(&Pki::until(3000), None);
    for name in ["a", "b"] {
        let held = of(&results, name).unwrap();
        // Three round trips: of TCP, of TLS 1.3, and the request.
        assert!((6..8).contains(&held.as_millis()), "{name}: {held:?}");
    }
}

#[test]
fn a_run_over_tls_is_the_same_twice() {
    let pki = Pki::until(3000);
    let [one, other] = [0, 1].map(|_| on_redis(&pki, None).0);
    assert_eq!(one.trace(), other.trace());
    // The bytes, too: keys and nonces are drawn from the entropy of the world.
    let bytes = |report: &Report| format!("{:?}", report.capture.as_ref().unwrap());
    assert_eq!(bytes(&one), bytes(&other));
}

#[test]
fn a_client_that_pauses_in_its_handshake_holds_up_nobody_and_goes_on() {
    let pause = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(3)) };
    let fault = Fault::new(Trigger::after("a", "sends to server"), pause);
    let (report, results) = on_redis(&Pki::until(3000), Some(fault));
    assert_eq!(report.struck, [true]);
    assert!(of(&results, "b").unwrap() < SECOND);
    let held = of(&results, "a").unwrap();
    assert!(held >= 3 * SECOND && held < 5 * SECOND, "{held:?}");
}

#[test]
fn a_handshake_that_breaks_is_begun_again() {
    let reset = Reset { link: Link::new("a", "server") };
    let fault = Fault::new(Trigger::after("a", "sends to server"), reset);
    let (report, results) = on_redis(&Pki::until(3000), Some(fault));
    assert_eq!(report.struck, [true]);
    assert!(of(&results, "a").unwrap() < 2 * SECOND);
    let cut = Cut { link: Link::new("server", "a"), both: false, lasts: Some(Span::from_secs(3)) };
    let fault = Fault::new(Trigger::after("a", "sends to server"), cut);
    let (_, results) = on_redis(&Pki::until(3000), Some(fault));
    let held = of(&results, "a").unwrap();
    assert!(held >= SECOND && held < 6 * SECOND, "{held:?}");
}

#[test]
fn a_certificate_expires_by_the_clock_of_the_client_alone() {
    // A century ahead.
    let step = ClockStep { process: "a".to_owned(), by: "+876000h".parse().unwrap() };
    let fault = Fault::new(Trigger::At(Span::ZERO), step);
    let (_, results) = on_redis(&Pki::until(2100), Some(fault));
    let error = of(&results, "a").unwrap_err();
    assert!(error.contains("its certificate has expired"), "{error}");
    assert!(of(&results, "b").is_ok());
}

#[test]
fn etcd_and_zookeeper_are_reached_over_tls() {
    let pki = Pki::until(3000);
    let results = Results::default();
    let mut sim = Sim::new(1);
    let etcd = EtcdHost::single("server", "http://server:2379".to_owned());
    sim.host("server", pki.secured(etcd, &["h2"]));
    client(&mut sim, "a", "etcds://server:2379", &pki.client(), &results);
    sim.run().unwrap();
    let mut sim = Sim::new(1);
    let zookeeper = ZooKeeperHost::first(EnsembleOptions::new(["server"]));
    sim.host("server", pki.secured(zookeeper, &[]));
    client(&mut sim, "a", "zookeepers://user:secret@server:2181/prod", &pki.client(), &results);
    sim.run().unwrap();
    let results = results.lock().unwrap();
    assert_eq!(results.len(), 2);
    results.iter().for_each(|(_, held)| assert!(held.is_ok(), "{held:?}"));
}

/// The options of the laboratory's schedules over TLS.
mod laboratory {
    use lab::{Arm, Lab, Options, System};
    use sim::{Draw, Schedule, Subject};

    /// Draws the schedules of `lab`; returns how many are over TLS, by their systems.
    fn drawn(lab: &Lab) -> Vec<(System, usize)> {
        let schedules: Vec<Schedule<Options>> =
            (0..300).map(|seed| lab.schedule(&mut Draw::new(seed)).unwrap()).collect();
        let over_tls = |system| {
            schedules
                .iter()
                .filter(|schedule| schedule.options.tls && schedule.options.system == system)
                .count()
        };
        System::of_locks().map(|system| (system, over_tls(system))).collect()
    }

    #[test]
    fn searches_draw_tls_for_each_system_of_the_library() {
        let drawn = drawn(&Lab::new(Arm::Fenced));
        assert!(drawn.iter().all(|(_, count)| *count > 0), "{drawn:?}");
    }

    #[test]
    fn a_lock_that_is_given_gets_no_tls() {
        let lab = Lab::new(Arm::Fenced).with_lock(|_| None);
        let drawn = drawn(&lab);
        assert!(drawn.iter().all(|(_, count)| *count == 0), "{drawn:?}");
        let text = "about = \"x\"\nsystem = \"redis\"\nttl = \"2s\"\ntls = true\n[[worker]]\nname = \"a\"\n";
        let schedule = lab::parse("x", text).unwrap();
        let refused = sim::sim::run(&lab, &schedule).unwrap_err().to_string();
        assert!(refused.contains("speaks without TLS"), "{refused}");
    }

    #[test]
    fn what_speaks_without_tls_is_refused() {
        let refused = |system: &str, more: &str| {
            let head = format!("about = \"x\"\nsystem = \"{system}\"\nttl = \"2s\"\ntls = true\n");
            lab::parse("x", &format!("{head}{more}")).unwrap_err().to_string()
        };
        let worker = "[[worker]]\nname = \"a\"\n";
        assert!(refused("toy", worker).contains("the servers of `toy` don't speak TLS"));
        let service = format!("[etcd]\nrecipe = \"service\"\n{worker}");
        assert!(refused("etcd", &service).contains("recipe = \"service\" speaks no TLS"));
        let get_del = format!("{worker}release = \"get-del\"\n");
        assert!(refused("redis", &get_del).contains("without TLS"));
    }
}
