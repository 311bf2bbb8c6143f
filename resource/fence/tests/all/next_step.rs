//! The next step after a refusal, a lost lease or no lease.

use std::time::Duration;

use dlock::{AcquireError, BackendError, LostError, TryAcquireError};
use fence::{NextStep, Policy, Proof, Refusal};
#[cfg(feature = "tokio-postgres")]
use fence::{Receipt, Stop};

const ONLY_INSIDE: Policy = Policy { has_outside_effects: false, may_begin_anew: true };
const PAID: Policy = Policy { has_outside_effects: true, may_begin_anew: true };

#[test]
fn a_policy_gives_each_proof_its_step() {
    use NextStep::{Compensate, Repair, RetryWithNewLease, Stop};
    let proofs = [Proof::Stale, Proof::Superseded, Proof::Conflict, Proof::Unguarded, Proof::Impossible];
    let steps = |policy: Policy| proofs.map(|proof| policy.after(proof));
    let once = |policy| Policy { may_begin_anew: false, ..policy };
    assert_eq!(steps(ONLY_INSIDE), [RetryWithNewLease, Stop, RetryWithNewLease, RetryWithNewLease, Repair]);
    assert_eq!(steps(PAID), [RetryWithNewLease, Compensate, RetryWithNewLease, RetryWithNewLease, Repair]);
    assert_eq!(steps(once(ONLY_INSIDE)), [Stop, Stop, Stop, Stop, Repair]);
    assert_eq!(steps(once(PAID)), [Compensate, Compensate, Compensate, Compensate, Repair]);
}

#[test]
fn a_later_version_turns_only_stale_into_superseded() {
    let (seen, got) = ("34".parse().unwrap(), "33".parse().unwrap());
    let foreign = Refusal::ForeignOwner { seen, got: seen };
    let conflict = Refusal::Conflict { expected: 1, current: 2 };
    let jump = Refusal::Jump { seen: None, got, max: 7 };
    for (refusal, alone, with_a_later_version) in [
        (Refusal::Stale { seen, got }, Proof::Stale, Proof::Superseded),
        (foreign, Proof::Stale, Proof::Superseded),
        (conflict, Proof::Conflict, Proof::Conflict),
        (Refusal::Fenced { seen }, Proof::Unguarded, Proof::Unguarded),
        (jump, Proof::Impossible, Proof::Impossible),
    ] {
        assert_eq!(refusal.proof(), alone, "{refusal:?}");
        assert_eq!(refusal.proof_by_version(1, 1), alone, "{refusal:?}");
        assert_eq!(refusal.proof_by_version(1, 2), with_a_later_version, "{refusal:?}");
    }
}

#[test]
fn a_lost_lease_is_acquired_again_unless_it_was_released() {
    for lost in [LostError::NotOwner, LostError::Expired, LostError::Capped] {
        assert_eq!(PAID.after_loss(lost), NextStep::RetryWithNewLease, "{lost:?}");
    }
    assert_eq!(PAID.after_loss(LostError::Released), NextStep::Compensate);
    assert_eq!(ONLY_INSIDE.after_loss(LostError::Released), NextStep::Stop);
}

#[test]
fn without_a_lease_one_waits_unless_no_retry_helps() {
    let retry_after = Some(Duration::from_millis(700));
    let busy = NextStep::Busy { retry_after };
    assert_eq!(NextStep::from(&TryAcquireError::Taken { retry_after }), busy);
    assert_eq!(NextStep::from(&AcquireError::Taken { retry_after }), busy);
    let waiting = NextStep::Busy { retry_after: None };
    assert_eq!(NextStep::from(&AcquireError::Unavailable(BackendError::NoAnswer)), waiting);
    assert_eq!(NextStep::from(&TryAcquireError::Backend(BackendError::NoAnswer)), waiting);
    let wrong = BackendError::Refused { message: "NOPERM".to_owned(), passing: false };
    assert_eq!(NextStep::from(&TryAcquireError::Backend(wrong.clone())), NextStep::Repair);
    assert_eq!(NextStep::from(&AcquireError::Refused(wrong)), NextStep::Repair);
    assert_eq!(NextStep::from(&AcquireError::Closed), NextStep::Stop);
}

#[cfg(feature = "tokio-postgres")]
#[test]
fn in_the_tables_of_the_check_a_lower_token_is_superseded() {
    let (seen, got) = ("34".parse().unwrap(), "33".parse().unwrap());
    let stale = |got| Stop::Refused(Refusal::Stale { seen, got });
    // At the same token it may be the own later write.
    for (stop, proof, next) in [
        (stale(got), Some(Proof::Superseded), NextStep::Compensate),
        (stale(seen), Some(Proof::Stale), NextStep::RetryWithNewLease),
        (
            Stop::Refused(Refusal::ForeignOwner { seen, got: seen }),
            Some(Proof::Superseded),
            NextStep::Compensate,
        ),
        (Stop::Repeated(Receipt { version: 1, max_fence: Some(seen) }), None, NextStep::Done),
        (Stop::Retry("40001"), None, NextStep::RepeatSameWrite),
        (Stop::Failed("reset"), None, NextStep::RepeatSameWrite),
        (Stop::Corrupt("a token is not positive"), None, NextStep::Repair),
    ] {
        assert_eq!((stop.proof(), stop.next_step(PAID)), (proof, next), "{stop:?}");
    }
}
