//! Mistakes with the commands by which newer servers renew and release: without their condition, they take or
//! delete the lock of the next owner. The same schedules acquit the library's lock.

use dlock::redis::Redis;
use dlock::{BackendError, Instant, Released, Renewal, Runtime};
use lab::kit::{Attempt, Faultless, LockMistake, lock_with};
use lab::{Arm, Lab, Options, Version};
use sim::world::runtime::SimRuntime;
use sim::{Report, Schedule, VerdictKind};

/// A renewal by SET without IFEQ.
struct BareSet;

impl LockMistake for BareSet {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let (since, left) = (own.runtime().now(), own.claim.ttl);
        let mut command = redis::cmd("SET");
        command.arg(own.claim.key.owner_key()).arg(own.claim.owner.as_str());
        command.arg("PX").arg(left.as_millis() as u64);
        own.by(deadline, own.wire.ask::<String>(&command)).await?;
        Ok(Renewal::Extended { since, left })
    }
}

/// A release by DEL instead of DELIFEQ.
struct BareDel;

impl LockMistake for BareDel {
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let mut command = redis::cmd("DEL");
        own.by(deadline, own.wire.ask::<u64>(command.arg(own.claim.key.owner_key()))).await?;
        Ok(Released::Done)
    }
}

/// A renewal is delivered again when the next client has the lock.
const LATE_RENEWAL: &str = include_str!("../../../../seeds/repeated-compare-and-set.toml");

/// A holder pauses beyond its lease, and releases while another one holds the lock.
const LATE_RELEASE: &str = r#"
about  = "A late release"
system = "redis"
ttl    = "2s"

[[worker]]
name  = "a"
work  = "1.5s"
renew = true

[[worker]]
name   = "b"
starts = "100ms"
work   = "5s"
renew  = true

[[fault]]
when = { process = "a", after = "worked" }
what = { pause = "a", for = "4s" }
"#;

fn run<M: LockMistake>(text: &str, version: Version) -> Report {
    let lab = Lab::new(Arm::Fenced).with_lock(lock_with::<Redis<SimRuntime>, M>);
    let mut schedule: Schedule<Options> = sim::sim::parse(&lab, "x", text).unwrap();
    schedule.options.redis.version = version;
    sim::sim::run(&lab, &schedule).unwrap()
}

fn kinds(report: &Report) -> Vec<VerdictKind> {
    report.verdicts.iter().map(|verdict| verdict.kind).collect()
}

#[test]
fn a_renewal_by_set_without_ifeq_is_convicted() {
    for version in [Version::Redis84, Version::Valkey9] {
        let correct = run::<Faultless>(LATE_RENEWAL, version);
        assert!(kinds(&correct).is_empty(), "{version}: {:?}", correct.verdicts);
        let mistaken = run::<BareSet>(LATE_RENEWAL, version);
        assert!(kinds(&mistaken).contains(&VerdictKind::TwoValid), "{version}: {:?}", mistaken.verdicts);
    }
}

#[test]
fn a_release_by_del_is_convicted() {
    for version in [Version::Redis84, Version::Valkey9] {
        let correct = run::<Faultless>(LATE_RELEASE, version);
        let unjust = "a paused holder overlaps with any lock";
        assert_eq!(kinds(&correct), [VerdictKind::Overlap], "{version}: {unjust}: {:?}", correct.verdicts);
        let mistaken = run::<BareDel>(LATE_RELEASE, version);
        assert!(
            kinds(&mistaken).contains(&VerdictKind::ForeignRelease),
            "{version}: {:?}",
            mistaken.verdicts
        );
    }
}
