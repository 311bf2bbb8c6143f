//! The mistakes of locks.

use sim::museum::Mutant;

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
fn an_acquire_that_is_not_cleaned_up_blocks_the_others() {
    convict(Mutant::NoCleanup);
}

#[test]
fn validity_from_the_reply_overlaps() {
    convict(Mutant::ValidityFromReply);
}

#[test]
fn a_margin_that_is_added_overlaps() {
    convict(Mutant::MarginAdded);
}

#[test]
fn a_counter_that_is_deleted_regresses() {
    convict(Mutant::CounterDeleted);
}

#[test]
fn redlock_that_takes_the_largest_count_of_the_majority_gives_tokens_that_regress() {
    convict(Mutant::LargestCount);
}

#[test]
fn a_loss_declared_after_two_ttls_is_no_lease() {
    convict(Mutant::LateLoss);
}

#[test]
fn a_failed_renewal_that_is_only_logged_is_no_lease() {
    convict(Mutant::RenewalLogged);
}

#[test]
fn a_grant_whose_validity_nobody_checks_is_no_lease() {
    convict(Mutant::ValidityUnchecked);
}
