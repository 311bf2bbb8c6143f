//! Rare branches: places in code under test that are taken more often than in production (`buggify!`).

use std::collections::BTreeMap;
use std::panic::Location;

use super::World;
use super::lock;
use super::process::ProcessId;
use crate::entropy::Site;

/// The probability with which a place is active in a run: that of FoundationDB (`flow/flow.h`,
/// `P_BUGGIFIED_SECTION_ACTIVATED`).
const ACTIVE: f64 = 0.25;

/// The rare branches of a run.
#[derive(Default)]
pub(super) struct RareBranches {
    /// True if none is taken.
    is_off: bool,
    /// The places at which a process has asked, by process, file and line.
    places: BTreeMap<(usize, &'static str, u32), RareBranch>,
}

/// One place in one process.
struct RareBranch {
    is_active: bool,
    /// The key of the entropy from which it draws.
    epoch: usize,
    site: Site,
}

impl World {
    /// Takes no rare branches from now on.
    pub(crate) fn take_no_rare_branches(&self) {
        lock(&self.0.rare_branches).is_off = true;
    }

    /// Returns true if the process takes the rare branch at `place` now; its probability is `chance` where
    /// the place is active.
    pub(crate) fn takes_rare_branch(
        &self,
        id: ProcessId,
        chance: f64,
        place: &'static Location<'static>,
    ) -> bool {
        if self.is_mute(id) {
            return false;
        }
        let epoch = self.entropy().epoch(self.now());
        let mut branches = lock(&self.0.rare_branches);
        if branches.is_off {
            return false;
        }
        let branch = branches
            .places
            .entry((id.0, place.file(), place.line()))
            .and_modify(|branch| {
                if branch.epoch != epoch {
                    *branch = self.rare_branch(id, epoch, place);
                }
            })
            .or_insert_with(|| self.rare_branch(id, epoch, place));
        // Drawn either way, so that a place draws the same numbers whether it is active or not.
        branch.site.chance(chance) && branch.is_active
    }

    fn rare_branch(&self, id: ProcessId, epoch: usize, place: &'static Location<'static>) -> RareBranch {
        // All processes have the same places active, as all have the same program.
        let name = format!("buggify {}:{}", place.file(), place.line());
        let is_active = self.entropy().site_of(epoch, &name).chance(ACTIVE);
        let site = self.entropy().site_of(epoch, &format!("{name} in {}", self.process(id).name()));
        RareBranch { is_active, epoch, site }
    }
}
