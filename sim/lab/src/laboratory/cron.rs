//! The schedule and the policy of the workers that fire by a clock.

use resource::fence::cron::{Every, EveryError, Missed, Policy};
use serde::{Deserialize, Serialize};
use sim::{FieldPath, Invalid, Span};

use super::default::is_default;

/// The cron of the workers with `mode = "cron"`: each tick is to run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cron {
    /// The store of the ticks that are done. Default: the resource.
    #[serde(skip_serializing_if = "is_default")]
    pub record: TickStore,
    /// The time between two ticks. Default 1 s.
    pub every: Span,
    /// The time after its scheduled one for which a tick is on time. Default: `every`.
    #[serde(skip_serializing_if = "is_default")]
    pub late_max: Option<Span>,
    /// The ticks to run of those that are missed. Default: the latest.
    #[serde(skip_serializing_if = "is_default")]
    pub missed: MissedMode,
    /// The most missed ticks to run at once. Needs `missed = "all"`. Default 3.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Option<u32>,
}

history::names! {
    /// The store of the ticks that are done.
    #[derive(Default)]
    pub enum TickStore as "record of ticks" {
        /// The protected resource.
        #[default]
        Resource = "resource",
        /// A table of the server `postgres`: a tick commits with the rows of its effect.
        Postgres = "postgres",
    }
}

history::names! {
    /// The ticks to run of those that are missed.
    #[derive(Default)]
    pub enum MissedMode as "policy for missed ticks" {
        /// None.
        Skip = "skip",
        /// The latest.
        #[default]
        Latest = "latest",
        /// The latest `limit`.
        All = "all",
    }
}

/// The shortest time between two ticks, and the longest: a run has a few of them.
const EVERY: [Span; 2] = [Span::from_millis(10), Span::from_secs(3600)];

/// The most ticks that one firing may run by the options.
const RUNS_MAX: u64 = 20;

impl Default for Cron {
    fn default() -> Self {
        Self {
            record: TickStore::default(),
            every: Span::from_secs(1),
            late_max: None,
            missed: MissedMode::default(),
            limit: None,
        }
    }
}

impl Cron {
    /// Checks the table of a schedule in which some worker fires.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the option.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let path = FieldPath::top("cron");
        let [min, max] = EVERY;
        if self.every < min || self.every > max {
            let problem = format!("`every` = {}: it must be {min} to {max}", self.every);
            return Err(path.key("every").says(problem));
        }
        if let Err(error) = self.schedule() {
            return Err(path.key("every").says(format!("`every` = {}: {error}", self.every)));
        }
        if self.limit.is_some() && self.missed != MissedMode::All {
            return Err(path.key("limit").says("`limit` needs `missed = \"all\"`"));
        }
        let runs = self.runs_max();
        if runs > RUNS_MAX {
            let problem = format!("one firing may run {runs} ticks: make it {RUNS_MAX} at most");
            return Err(path.key("late_max").says(problem));
        }
        Ok(())
    }

    /// Returns the schedule.
    ///
    /// # Errors
    ///
    /// [`EveryError`] if `every` is not in whole milliseconds.
    pub(super) fn schedule(&self) -> Result<Every, EveryError> {
        Every::new(self.every.duration(), std::time::Duration::ZERO)
    }

    /// Returns the policy.
    pub(super) fn policy(&self) -> Policy {
        let missed = match self.missed {
            MissedMode::Skip => Missed::Skip,
            MissedMode::Latest => Missed::Latest,
            MissedMode::All => Missed::All { limit: self.limit() },
        };
        Policy { late_max: self.late_max().duration(), missed }
    }

    /// Returns the most ticks that one firing runs.
    pub(super) fn runs_max(&self) -> u64 {
        let on_time = self.late_max().as_nanos() / self.every.as_nanos().max(1) + 1;
        on_time + if self.missed == MissedMode::All { u64::from(self.limit()) } else { 1 }
    }

    fn late_max(&self) -> Span {
        self.late_max.unwrap_or(self.every)
    }

    fn limit(&self) -> u32 {
        self.limit.unwrap_or(3)
    }
}
