//! Locks with one mistake are convicted.

use lab::museum::Mutant;

use super::convict;

#[test]
fn setnx_then_pexpire_leaves_a_key_for_ever() {
    convict(Mutant::SetnxThenPexpire);
}

#[test]
fn a_blind_del_releases_another_owners_lock() {
    convict(Mutant::BlindDel);
}

#[test]
fn an_acquire_without_cleanup_leaks_its_key() {
    convict(Mutant::NoCleanup);
}

#[test]
fn validity_counted_from_the_reply_lets_holders_overlap() {
    convict(Mutant::ValidityFromReply);
}

#[test]
fn an_added_drift_margin_lets_holders_overlap() {
    convict(Mutant::MarginAdded);
}

#[test]
fn a_deleted_counter_makes_tokens_regress() {
    convict(Mutant::CounterDeleted);
}

#[test]
fn redlock_with_the_largest_count_makes_tokens_regress() {
    convict(Mutant::LargestCount);
}

#[test]
fn a_lease_declared_lost_after_two_ttls_is_unheld() {
    convict(Mutant::LateLoss);
}

#[test]
fn a_lease_whose_failed_renewal_is_only_logged_is_unheld() {
    convict(Mutant::RenewalLogged);
}

#[test]
fn a_grant_with_unchecked_validity_is_unheld() {
    convict(Mutant::ValidityUnchecked);
}
