//! Removes the entries of a key from the lock servers, as a server with too little memory evicts keys.

use std::sync::Arc;

use history::{Effect, InstantFault, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::scene::Scene;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::Span;

/// Removes the entries of a key from the lock servers.
#[derive(Clone, Debug)]
pub struct Evict {
    /// The key, as the schedule names it.
    pub key: String,
    /// The entry to remove; both if `None`.
    pub part: Option<Part>,
}

history::names! {
    /// An entry that Redis stores about a key.
    pub enum Part as "part of a key" {
        /// The owner token, which exists while the lock is held.
        Owner = "owner",
        /// The fence counter, which exists from the first grant on.
        Fence = "fence",
    }
}

/// The row of this fault in the table. Exhaustive searches place faults of processes and links, and not of
/// keys. It is not compared, since only Redis evicts keys.
pub static KIND: FaultKind = FaultKind {
    verb: "evict",
    fields: &["part"],
    read,
    variants: &[&ANY],
    wide: &[&UNDER_LEASE],
    forms: |_| Vec::new(),
    class: None,
};

/// Evicts any key.
pub static ANY: Variant = Variant { order: 130, weight: |scene| u64::from(!scene.has_leader()), draw };

/// Evicts the owner of a lease that is held.
pub static UNDER_LEASE: Variant =
    Variant { order: 230, weight: |scene| u64::from(scene.evictable().is_ok()), draw: draw_under_lease };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let key = fields.need("evict", "evict", "the key")?;
    Ok(Arc::new(Evict { key, part: fields.take("part")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let keys = draw.scene.evictable().ok()?;
    let when = draw.when();
    let key = draw.one_of(keys);
    let part = draw.one_of(&[Some(Part::Owner), Some(Part::Fence), None]);
    Some(Fault::new(when, Evict { key, part }))
}

fn draw_under_lease(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let keys = draw.scene.evictable().ok()?;
    let when = draw.under_lease()?;
    let key = draw.one_of(keys);
    Some(Fault::new(when, Evict { key, part: Some(Part::Owner) }))
}

impl Evict {
    /// Returns the names of the entries on the servers.
    fn entries(&self) -> Vec<String> {
        let (kind, id) = self.key.split_once(':').unwrap_or(("resource", &self.key));
        // An invalid key was refused when the schedule was validated.
        let Ok(key) = dlock::LockKey::new(kind, id) else { return Vec::new() };
        let entries = [(Part::Owner, key.owner_key()), (Part::Fence, key.fence_key())];
        let is_meant = |part: Part| self.part.is_none_or(|meant| meant == part);
        entries.into_iter().filter(|(part, _)| is_meant(*part)).map(|(_, entry)| entry.to_string()).collect()
    }
}

impl Action for Evict {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("evict", &self.key);
        fields.put_some("part", self.part.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let keys = check
            .scene
            .evictable()
            .map_err(|why| check.refuse("evict", format!("`evict` does not apply to {why}")))?;
        if keys.contains(&self.key) {
            return Ok(());
        }
        let (key, known) = (&self.key, keys.join(", "));
        Err(check.refuse("evict", format!("unknown key `{key}` in `evict`: the schedule has {known}")))
    }

    fn strike(&self, strike: &Strike) {
        let (entries, key) = (self.entries(), self.key.clone());
        let what = self.part.map_or("keys".to_owned(), |part| format!("{part} key"));
        strike.soon(move |strike| {
            for server in strike.stage().servers_of_keys() {
                let (name, effect) = (strike.world().process(server).name(), InstantFault::Erase);
                strike.acts(name, Effect::Instant(effect), &format!("evicts the {what} of {key}"));
                strike.stage().act(server, "evict", &entries);
            }
        });
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }

    /// Excuses a lost counter, whose tokens start at 1 again, and a lost owner, whose lock is granted to
    /// another.
    fn excuses(&self, _: &dyn Scene) -> Vec<VerdictKind> {
        let mut excuses = Vec::new();
        if self.part != Some(Part::Owner) {
            excuses.push(VerdictKind::TokenRegressed);
        }
        if self.part != Some(Part::Fence) {
            excuses.extend([VerdictKind::TwoValid, VerdictKind::Unheld]);
        }
        excuses
    }

    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        let parts = if self.part.is_none() { Part::ALL } else { &[] };
        let only = |part: &Part| -> Arc<dyn Action> { Arc::new(Self { part: Some(*part), ..self.clone() }) };
        parts.iter().map(only).collect()
    }
}
