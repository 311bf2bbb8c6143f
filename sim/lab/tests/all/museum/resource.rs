//! Resources with one mistake are convicted.

use lab::museum::Mutant;

use super::convict;

#[test]
fn a_resource_that_forgets_accepts_a_stale_write() {
    convict(Mutant::ForgetsOnRestart);
}

#[test]
fn a_check_apart_from_the_write_accepts_a_stale_write() {
    convict(Mutant::CheckThenWrite);
}

#[test]
fn a_resource_that_accepts_equal_tokens_accepts_a_stale_write() {
    convict(Mutant::AcceptsEqual);
}

#[test]
fn a_resource_that_ignores_versions_loses_an_update() {
    convict(Mutant::IgnoresVersion);
}
