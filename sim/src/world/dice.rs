//! The randomness of a process for code on another runtime's interface.

use std::sync::{Arc, Mutex};

use super::{World, lock};
use crate::entropy::Site;

/// The random stream of a process in its present life, kept from call to call. Clones are the same stream.
#[derive(Clone, Default)]
pub(super) struct Dice(Arc<Mutex<Option<Kept>>>);

struct Kept {
    life: u32,
    /// The number of replacements of the entropy's key when the site was made.
    epoch: usize,
    site: Site,
}

impl Dice {
    /// Returns the next 64 bits of the process called `name` in this life.
    pub(super) fn draw(&self, world: &World, life: u32, name: &str) -> u64 {
        let epoch = world.entropy().epoch(world.now());
        let mut kept = lock(&self.0);
        let fresh = || {
            let site = world.entropy().site_of(epoch, &format!("guest {name} {life}"));
            Kept { life, epoch, site }
        };
        let current = kept.take().filter(|kept| (kept.life, kept.epoch) == (life, epoch));
        kept.insert(current.unwrap_or_else(fresh)).site.u64()
    }
}
