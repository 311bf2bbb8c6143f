//! Only some kinds of faults, with their own weights.

use super::{Material, combined};
use crate::entropy::Site;
use crate::faults::Fault;

/// The largest number of faults.
const FAULTS_MAX: u64 = 6;

/// The factors by which the weight of a kind may change.
const FACTORS: [u64; 3] = [1, 2, 6];

/// The share of the schedules that have a combination of faults, too.
const COMBINED: f64 = 0.25;

/// The number of rows of a table whose kinds share one source of randomness, on which kept results depend.
/// The kind of each later row has a source of its own: a new row changes no other draw.
const SHARED: usize = 15;

/// Draws up to six faults of the kinds that this schedule has; some schedules also have a combination.
pub(super) fn faults(material: &Material<'_>) -> Vec<Fault> {
    let mut site = (material.site)("swarm");
    let chosen = chosen(material, &mut site);
    let count = 1 + site.below(FAULTS_MAX);
    let weigh = |verb: &str| chosen.iter().find(|(known, _)| *known == verb).map_or(0, |(_, factor)| *factor);
    let draw = |number| {
        let mut site = (material.site)(&format!("swarm fault {number}"));
        material.known.draw_weighed(material.scene, &mut site, &weigh)
    };
    let mut faults: Vec<Fault> = (1..=count).filter_map(draw).collect();
    if site.chance(COMBINED)
        && let Some(first) = faults.first()
    {
        let combined = combined::draw(material, &first.when, &mut site);
        faults.extend(combined.into_iter().filter(|fault| weigh(fault.what.verb()) > 0));
    }
    faults
}

/// Draws the kinds that the schedule has, each with its factor: each kind with probability 1/2, at least one.
fn chosen(material: &Material<'_>, site: &mut Site) -> Vec<(&'static str, u64)> {
    let mut verbs = material.known.verbs();
    let later = verbs.split_off(SHARED.min(verbs.len()));
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
    for verb in later.into_iter().filter(|verb| material.known.draws(verb, material.scene)) {
        let mut site = (material.site)(&format!("swarm {verb}"));
        let (is_in, factor) = (site.chance(0.5), factor(&mut site));
        if is_in {
            chosen.push((verb, factor));
        }
    }
    chosen
}
