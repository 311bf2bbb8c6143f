//! The list of all experiments, by number.

use super::ExperimentError;
use super::contention::Contention;
use super::crossing::Crossing;
use super::durability::Durability;
use super::fairness::Fairness;
use super::frame::Registered;
use super::pause_outlives_ttl::PauseOutlivesTtl;
use super::redlock_partition::RedlockPartition;
use super::renewal::RenewalNarrows;
use super::safe_release::SafeRelease;
use super::sim_and_live::SimAndLive;
use super::skew::Skew;
use super::storm::Storm;
use super::ten_million::TenMillion;
use super::ttl_sweep::TtlSweep;

/// The experiments in the order of the lab's list. To add one: CONTRIBUTING.md, "An experiment".
pub const ALL: &[&dyn Registered] = &[
    &PauseOutlivesTtl,
    &RedlockPartition,
    &SafeRelease,
    &Contention,
    &Fairness,
    &TtlSweep,
    &TenMillion,
    &RenewalNarrows,
    &SimAndLive,
    &Durability,
    &Crossing,
    &Skew,
    &Storm,
];

/// Returns the experiment with this number.
///
/// # Errors
///
/// [`ExperimentError::Unknown`], which lists those that exist.
pub fn find(number: u32) -> Result<&'static dyn Registered, ExperimentError> {
    let known = || ALL.iter().map(|experiment| experiment.number()).collect();
    let found = ALL.iter().find(|experiment| experiment.number() == number);
    found.copied().ok_or_else(|| ExperimentError::Unknown { number, known: known() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::configuration::Settings;

    #[test]
    fn the_numbers_rise_and_are_found() {
        let numbers: Vec<_> = ALL.iter().map(|experiment| experiment.number()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        for number in numbers {
            assert_eq!(find(number).unwrap().number(), number);
        }
        let error = find(99).err().unwrap().to_string();
        assert!(error.starts_with("there is no experiment 99: there are 1"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        for experiment in ALL {
            let settings = Settings { file: Some("no/such.toml".into()), changes: Vec::new() };
            let error = experiment.run(&settings, String::new()).unwrap_err().to_string();
            assert!(error.starts_with("no/such.toml: "), "{error}");
        }
    }
}
