//! Locks, workers and resources with a mistake, made outside of the laboratory with its kit.

use dlock::redis::Redis;
use dlock::{Answer, BackendError, FencingToken, Instant, Released, Renewal, Runtime};
use lab::kit::{Attempt, Faultless, LockMistake, lock_with};
use lab::{Arm, Lab, Options, StoredLock};
use sim::world::runtime::SimRuntime;
use sim::{Report, Schedule, VerdictKind, no};

/// A lock with a key of its own, whose release is a bare DEL. The token is the time of the request.
struct OwnKey;

fn key(lock: &str) -> String {
    format!("mine:{lock}")
}

async fn command(own: &Attempt, deadline: Instant, words: &[&str]) -> Result<Option<String>, BackendError> {
    let mut command = redis::cmd(words[0]);
    command.arg(key(own.claim.key.name())).arg(&words[1..]);
    own.by(deadline, own.wire.ask(&command)).await
}

impl LockMistake for OwnKey {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let (since, left) = (own.runtime().now(), own.claim.ttl);
        let millis = left.as_millis().to_string();
        let set = command(own, deadline, &["SET", own.claim.owner.as_str(), "NX", "PX", &millis]).await?;
        let token = FencingToken::new(since.as_nanos()).filter(|_| set.is_some());
        Ok(token.map_or(Answer::Taken { left: None }, |token| Answer::Granted { token, since, left }))
    }

    async fn renew(_: &mut Attempt, _: Instant) -> Result<Renewal, BackendError> {
        Ok(Renewal::NotOwner)
    }

    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let key = key(own.claim.key.name());
        own.by(deadline, own.wire.ask::<u64>(redis::cmd("DEL").arg(key))).await?;
        Ok(Released::Done)
    }
}

/// A holder that pauses beyond its lease, and releases while another one holds the lock.
const LATE_RELEASE: &str = r#"
about  = "A late release"
system = "SYSTEM"
ttl    = "2s"

[[worker]]
name = "a"

[[worker]]
name   = "b"
starts = "100ms"
work   = "1900ms"

[[fault]]
when = { process = "a", after = "granted" }
what = { pause = "a", for = "2500ms" }
"#;

fn run(lab: &Lab, system: &str) -> Report {
    let text = LATE_RELEASE.replace("SYSTEM", system);
    let schedule: Schedule<Options> = sim::sim::parse(lab, "x", &text).unwrap();
    sim::sim::run(lab, &schedule).unwrap()
}

fn kinds(report: &Report) -> Vec<VerdictKind> {
    report.verdicts.iter().map(|verdict| verdict.kind).collect()
}

fn with_own_key() -> Lab {
    Lab::new(Arm::Fenced).with_lock(lock_with::<Redis<SimRuntime>, OwnKey>)
}

#[test]
fn a_stored_lock_of_ones_own_is_judged_by_the_audit() {
    let unknown = run(&with_own_key(), "redis");
    assert!(!kinds(&unknown).contains(&VerdictKind::ForeignRelease), "{:?}", unknown.verdicts);
    let known = run(&with_own_key().with_stored_locks(|lock| StoredLock::Key(key(lock))), "redis");
    assert!(kinds(&known).contains(&VerdictKind::ForeignRelease), "{:?}", known.verdicts);
}

#[test]
fn a_lock_without_a_mistake_is_acquitted() {
    let lab = Lab::new(Arm::Fenced).with_lock(lock_with::<Redis<SimRuntime>, Faultless>);
    assert_eq!(kinds(&run(&lab, "redis")), [VerdictKind::Overlap], "a paused holder overlaps with any lock");
}

#[test]
fn a_lock_of_another_system_is_not_used() {
    let lab = with_own_key();
    assert_eq!(kinds(&run(&lab, "etcd")), kinds(&run(&Lab::new(Arm::Fenced), "etcd")));
}

#[test]
fn a_queue_on_redis_is_refused() {
    let forms: [fn(&str) -> StoredLock; 2] = [
        |lock| StoredLock::Queue(key(lock)),
        |lock| StoredLock::Apart { key: key(lock), waiters: lock.to_owned() },
    ];
    for form in forms {
        let text = LATE_RELEASE.replace("SYSTEM", "redis");
        let lab = with_own_key().with_stored_locks(form);
        let refused = sim::sim::parse::<Lab>(&lab, "x", &text).unwrap_err().to_string();
        let why = "its lock is stored as a queue, which `redis` does not have: store it as a key";
        assert!(refused.ends_with(why), "{refused}");
    }
}

#[test]
fn a_check_from_outside_is_part_of_each_run() {
    let lab = Lab::new(Arm::Fenced).with_check("alone", || no(VerdictKind::Overlap));
    let found = run(&lab, "redis").findings;
    assert_eq!(found.iter().map(|finding| finding.check.as_str()).collect::<Vec<_>>(), ["alone"]);
}

/// The page shows the program in the documentation of the kit, which is compiled and run.
#[test]
fn the_page_shows_the_program_of_the_documentation() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (page, kit) = (read("../../docs/a-mistake.md"), read("src/kit/mod.rs"));
    let shown = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let lines = kit.split("//! ```\n").nth(1).unwrap().lines();
    let code = lines.map(|line| line.strip_prefix("//! ").unwrap_or_default());
    let compiled: Vec<&str> = code.filter(|line| !line.starts_with("# ")).collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), compiled);
}
