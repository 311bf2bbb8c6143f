//! The mistakes of the resource.

use sim::museum::Mutant;

use super::convict;

#[test]
fn a_resource_that_forgets_takes_a_stale_write() {
    convict(Mutant::ForgetsOnRestart);
}

#[test]
fn a_resource_that_checks_and_then_writes_takes_a_stale_write() {
    convict(Mutant::CheckThenWrite);
}

#[test]
fn a_resource_that_takes_an_equal_token_takes_a_write_twice() {
    convict(Mutant::AcceptsEqual);
}

#[test]
fn a_resource_that_ignores_versions_loses_an_update() {
    convict(Mutant::IgnoresVersion);
}
