//! A request that is delivered twice: once by its client, and again after the client has connected again.

use std::time::Duration;

use lab::{Arm, Lab, LabScene, Options, System};
use sim::entropy::Entropy;
use sim::faults::{Fault, Faults, Link, Repeat, Trigger};
use sim::servers::host::Host;
use sim::servers::redis::RedisHost;
use sim::world::stream::SimStream;
use sim::{Control, Draw, Report, Schedule, Sim, Span, Strategy, VerdictKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::scripts::run_script;
use crate::support::{case, share};

const MS: Duration = Duration::from_millis(1);

/// Runs `script` in a world of a client `a` and a server `redis`; each segment takes 1 ms.
fn in_world<F: Future<Output = ()>>(redis: &RedisHost, script: impl FnOnce(Control) -> F + Send) -> Report {
    let build = |sim: &mut Sim| {
        sim.host("redis", redis.clone()).empty_process("a");
    };
    run_script(MS, build, script).0
}

async fn connect(control: &Control) -> SimStream {
    control.process("a").connect("redis:6379").await.unwrap()
}

/// Sends a command and returns the reply, or the kind of the error.
async fn ask(stream: &mut SimStream, command: &str) -> String {
    stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    let mut buffer = [0; 256];
    match stream.read(&mut buffer).await {
        Ok(length) => String::from_utf8_lossy(&buffer[..length]).trim().to_owned(),
        Err(error) => error.kind().to_string(),
    }
}

/// Returns the details of the faults' events.
fn details(report: &Report) -> Vec<String> {
    let detail = |event: &sim::Event| match &event.kind {
        sim::Kind::FaultApplied { detail, .. } | sim::Kind::FaultHealed { detail, .. } => {
            Some(detail.to_string())
        }
        _ => None,
    };
    report.events.iter().filter_map(detail).collect()
}

#[test]
fn the_server_executes_the_request_twice_and_the_client_sees_one_answer() {
    let redis = RedisHost::new();
    let report = in_world(&redis, |control| async move {
        control.sleep(MS).await;
        let mut first = connect(&control).await;
        assert_eq!(ask(&mut first, "INCR n").await, ":1");
        control.strike(Repeat::between("a", "redis"));
        assert_eq!(ask(&mut first, "INCR n").await, "connection reset", "the reply is lost");
        control.sleep(10 * MS).await;
        let mut second = connect(&control).await;
        control.sleep(10 * MS).await;
        assert_eq!(ask(&mut second, "GET n").await, "$1\r\n3", "and nothing of a second reply");
    });
    assert_eq!(redis.executed(), 4);
    let expected = [
        "repeats a request: a → redis",
        "resets a ↔ redis after a request of 8 bytes",
        "sent a request again: a → redis",
    ];
    assert_eq!(details(&report), expected);
}

#[test]
fn a_request_is_repeated_as_long_after_the_reconnect_as_the_fault_says() {
    let redis = RedisHost::new();
    in_world(&redis, |control| async move {
        control.sleep(MS).await;
        let by = Some(Span::from_millis(50));
        control.strike(Repeat { by, ..Repeat::between("a", "redis") });
        ask(&mut connect(&control).await, "INCR n").await;
        let mut second = connect(&control).await;
        control.sleep(45 * MS).await;
        assert_eq!(ask(&mut second, "GET n").await, "$1\r\n1");
        control.sleep(10 * MS).await;
        assert_eq!(ask(&mut second, "GET n").await, "$1\r\n2");
    });
}

#[test]
fn a_client_that_stays_away_has_no_request_repeated() {
    let redis = RedisHost::new();
    let report = in_world(&redis, |control| async move {
        control.sleep(MS).await;
        let lasts = Some(Span::from_millis(50));
        control.strike(Repeat { lasts, ..Repeat::between("a", "redis") });
        ask(&mut connect(&control).await, "INCR n").await;
        control.sleep(60 * MS).await;
        let mut second = connect(&control).await;
        control.sleep(10 * MS).await;
        assert_eq!(ask(&mut second, "GET n").await, "$1\r\n1");
    });
    assert_eq!(details(&report).last().unwrap(), "over, no request was repeated: a → redis");
}

#[test]
fn a_request_in_flight_reaches_the_server_before_the_connection_breaks() {
    let redis = RedisHost::new();
    let host = redis.clone();
    let mut sim = Sim::new(1);
    sim.latency(MS, MS).host("redis", host);
    sim.process("a", |process| async move {
        process.sleep(MS).await;
        for _ in 0..2 {
            let mut stream = process.connect("redis:6379").await.unwrap();
            ask(&mut stream, "INCR n").await;
        }
        process.sleep(10 * MS).await;
    });
    let what = Repeat::between("a", "redis");
    let report = sim.fault(Fault::new(Trigger::after("a", "sends to redis"), what)).run().unwrap();
    assert_eq!(report.struck, [true]);
    assert_eq!(redis.executed(), 3, "the first request twice, and the second one");
}

#[test]
fn the_second_delivery_is_drawn_while_the_network_keeps_the_request() {
    let schedule = &case("repeated-del").schedule;
    let drawn = sim::explore::pictured(&Lab::new(Arm::Fenced), schedule, "run").unwrap();
    let bars: Vec<_> = drawn.spans.iter().filter(|span| span.kind == picture::SpanKind::Link).collect();
    assert_eq!(bars.len(), 1);
    assert!(
        (1_000..1_100).contains(&((bars[0].to.at.0 - bars[0].from.at.0) / 1_000_000)),
        "until it is sent"
    );
    let report = case("repeated-del").run(Arm::Fenced);
    assert!(details(report).contains(&"sent a request again: a → redis-1".to_owned()));
}

#[test]
fn a_server_that_needs_more_than_the_request_is_refused() {
    let refused = |system: &str, link: &str| {
        let text = format!(
            "about = \"\"\nsystem = \"{system}\"\nttl = \"5s\"\n[[worker]]\nname = \"a\"\n[[fault]]\n\
             when = {{ at = \"1s\" }}\nwhat = {{ repeat = {link} }}\n"
        );
        lab::parse("x", &text).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    };
    let refuses = |server: &str, greeting: &str| {
        let why = format!("on a new connection it needs {greeting} before a request");
        format!("x:8: the network can't repeat a request to `{server}`: {why}")
    };
    let etcd = refuses("etcd-1", "the preface of HTTP/2");
    assert_eq!(refused("etcd", r#"["a", "etcd-1"]"#), etcd);
    let zookeeper = refuses("zookeeper-1", "a request for a session");
    assert_eq!(refused("zookeeper", r#"["a", "zookeeper-1"]"#), zookeeper);
    assert_eq!(
        refused("redis", r#"["redis-1", "a"]"#),
        "x:8: `redis-1` is no client: write the client first, then the server"
    );
    for system in ["redis", "etcd", "zookeeper"] {
        assert_eq!(refused(system, r#"["a", "resource"]"#), "accepted");
    }
}

#[test]
fn a_search_for_repeats_alone_draws_them() {
    let only = Faults::default().only(&["repeat"]);
    for (system, servers) in [(System::REDIS, &["redis-1", "resource"][..]), (System::ETCD, &["resource"])] {
        let schedule = lab::small(system);
        let mut drawn = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let fault = only.draw(&LabScene(&schedule), &mut Entropy::new(seed).site("test")).unwrap();
            drawn.insert(fault.what.downcast_ref::<Repeat>().unwrap().link.to.clone());
            let mut schedule = schedule.clone();
            schedule.faults.push(fault);
            lab::validate(&schedule).unwrap();
        }
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), servers);
    }
}

#[test]
fn the_row_changes_no_other_draw() {
    let verbs: Vec<_> = Faults::default().verbs().into_iter().filter(|verb| *verb != "repeat").collect();
    let schedule = lab::small(System::REDIS);
    let scene = LabScene(&schedule);
    for seed in 0..500 {
        for strategy in [Strategy::Uniform, Strategy::Swarm] {
            let draw = |faults: &Faults| Draw::new(seed).by(strategy).faults(faults, &scene, &Vec::new);
            for (all, without) in [
                (Faults::default(), Faults::default().only(&verbs)),
                (Faults::default().widely(), Faults::default().widely().only(&verbs)),
            ] {
                assert_eq!(draw(&all), draw(&without), "{strategy}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_repeat_without_its_delay_is_smaller() {
    let by = Some(Span::from_millis(50));
    let repeat = Repeat { link: Link::new("a", "b"), by, lasts: by };
    let smaller = sim::faults::Action::smaller(&repeat);
    assert_eq!(smaller.len(), 1);
    let expected: std::sync::Arc<dyn sim::faults::Action> =
        std::sync::Arc::new(Repeat { by: None, ..repeat });
    assert_eq!(*smaller[0], *expected);
}

/// Draws the schedule of a seed with a repeat as its only fault; `None` if it has none that suits.
fn drawn(system: System, seed: u64) -> Option<Schedule<Options>> {
    let mut schedule = lab::draw_for(system, seed);
    let only = Faults::default().only(&["repeat"]);
    let fault = only.draw(&LabScene(&schedule), &mut Entropy::new(seed).site("test"))?;
    schedule.faults = vec![fault];
    lab::validate(&schedule).ok().map(|()| schedule)
}

#[test]
fn a_repeat_to_a_lock_server_excuses_a_leak() {
    let excuses_leaks = |server: &str| {
        let mut schedule = lab::small(System::REDIS);
        schedule.faults = vec![Fault::new(Trigger::At(Span::ZERO), Repeat::between("a", server))];
        lab::excused(&schedule, Arm::Fenced).contains(&VerdictKind::Leaked)
    };
    assert!(excuses_leaks("redis-1") && !excuses_leaks("resource"));
}

#[test]
fn correct_locks_and_the_fence_withstand_repeated_requests() {
    let (mut repeated, mut problems) = (0, Vec::new());
    for system in System::of_locks() {
        for schedule in (0..share(150)).filter_map(|seed| drawn(system, seed)) {
            let report = lab::run(&schedule, Arm::Fenced, schedule.seed).unwrap();
            repeated += u64::from(details(&report).iter().any(|words| words.starts_with("sent a request")));
            let excused = lab::excused(&schedule, Arm::Fenced);
            let accused = report.verdicts.iter().filter(|verdict| !excused.contains(&verdict.kind));
            let accused = accused.map(|verdict| verdict.to_string()).collect::<Vec<_>>().join("; ");
            if !accused.is_empty() {
                problems.push(format!("{system}, seed {}: {accused}", schedule.seed));
            }
        }
    }
    assert!(problems.is_empty(), "{} runs:\n{}", problems.len(), problems.join("\n"));
    assert!(repeated > share(50), "only {repeated} requests were repeated");
}
