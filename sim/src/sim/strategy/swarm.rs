//! Some kinds of faults only, with weights of their own.

use super::Material;
use crate::entropy::Site;
use crate::faults::{Fault, Faults};

/// The largest number of faults.
const FAULTS_MAX: u64 = 6;

/// The factors by which the weight of a kind may change.
const FACTORS: [u64; 3] = [1, 2, 6];

/// Draws up to six faults of the kinds that this schedule has.
pub(super) fn faults(material: &Material<'_>) -> Vec<Fault> {
    let mut site = (material.site)("swarm");
    let chosen = chosen(material.known, &mut site);
    let count = 1 + site.below(FAULTS_MAX);
    let weigh = |verb: &str| chosen.iter().find(|(known, _)| *known == verb).map_or(0, |(_, factor)| *factor);
    let draw = |number| {
        let mut site = (material.site)(&format!("swarm fault {number}"));
        material.known.draw_weighed(material.scene, &mut site, &weigh)
    };
    (1..=count).filter_map(draw).collect()
}

/// Draws the kinds that the schedule has, each with its factor: every second one, and at least one.
fn chosen(known: &Faults, site: &mut Site) -> Vec<(&'static str, u64)> {
    let verbs = known.verbs();
    let factor = |site: &mut Site| FACTORS[site.below(FACTORS.len() as u64) as usize];
    let mut chosen = Vec::new();
    for verb in &verbs {
        let (is_in, factor) = (site.chance(0.5), factor(site));
        if is_in {
            chosen.push((*verb, factor));
        }
    }
    if chosen.is_empty() {
        chosen.extend(verbs.get(site.below(verbs.len() as u64) as usize).map(|verb| (*verb, 1)));
    }
    chosen
}
