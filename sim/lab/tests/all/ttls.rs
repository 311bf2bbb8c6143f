//! TTLs that change while a lease is held: the library's own locks are acquitted, and one whose server learns
//! of a shorter TTL than its holder trusts is convicted.

use std::time::Duration;

use dlock::redis::Redis;
use dlock::{Acquisition, AnyBackend, BackendError, Handle, Instant, Renewal};
use lab::kit::{Attempt, Hands, LockMistake, WorkerMistake, lock_with, rounds_on, rounds_with};
use lab::{Arm, Lab, Options, System};
use sim::VerdictKind;
use sim::explore::{Broken, Found, Portfolio, explore};
use sim::world::runtime::SimRuntime;

use crate::support::share;

/// The TTLs that a worker asks for, one after the other, whether or not the renewal was answered.
const TTLS: [u64; 5] = [900, 4_000, 700, 2_500, 1_500];

/// A worker that changes its TTL at each step, and writes after it while the lease is valid.
struct ChangesTtl;

impl WorkerMistake for ChangesTtl {
    async fn write(hands: &Hands, handle: &Handle<AnyBackend<SimRuntime>>) {
        for ttl in TTLS {
            // An error leaves the lease as valid as the handle says.
            let _ = handle.renew_for(Duration::from_millis(ttl)).await;
            if !handle.is_valid() {
                return;
            }
            hands.put(handle, handle.fence()).await;
            hands.process.sleep(Duration::from_millis(450)).await;
        }
    }
}

/// A renewal whose server gets half of the TTL that the client then trusts.
struct HalfTtl;

impl LockMistake for HalfTtl {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let trusted = own.claim.ttl;
        own.correct.set_ttl(trusted / 2);
        Ok(match own.correct.renew(deadline).await? {
            Renewal::Extended { since, .. } => Renewal::Extended { since, left: trusted },
            Renewal::NotOwner => Renewal::NotOwner,
        })
    }
}

fn lab(system: System) -> Lab {
    Lab::new(Arm::Fenced).drawing(system)
}

fn search(lab: Lab, schedules: u64) -> Found<Options> {
    explore(&[lab], 0..schedules, &Portfolio::default(), 1, |tally| tally.violations == 0).unwrap()
}

#[test]
fn locks_whose_ttl_changes_are_acquitted() {
    for system in [System::REDIS, System::REDLOCK, System::ETCD, System::ZOOKEEPER] {
        let found = search(lab(system).with_worker(rounds_with::<ChangesTtl>), share(100));
        assert_eq!(found.tally.violations, 0, "{:?}", found.violations);
    }
}

#[test]
fn a_server_that_gets_half_of_the_ttl_is_convicted() {
    let mistaken = lab(System::REDIS)
        .with_worker(|place| rounds_on::<ChangesTtl>(place, lock_with::<Redis<SimRuntime>, HalfTtl>(place)?));
    let found = search(mistaken, 300);
    let shown = found.violations.first().expect("a violation");
    assert!(shown.shows(&Broken::Verdict(VerdictKind::TwoValid)), "{shown:?}");
}
