//! Faults at the points that the run without faults passes.

use std::collections::BTreeMap;

use super::{Material, combined, moments, uniform};
use crate::entropy::Site;
use crate::faults::{Fault, Scene, Trigger};
use crate::sim::steps::Step;
use crate::span::Span;

/// The largest number of faults.
const FAULTS_MAX: u64 = 4;

/// The share of the schedules that have a combination of faults, too.
const COMBINED: f64 = 0.15;

/// The share of the schedules whose faults strike at an exposed moment.
const MOMENTS: f64 = 0.7;

/// The share of these schedules that have another fault, too.
const ANOTHER: f64 = 0.2;

/// A point, and the numbers of the first and the last time that it is passed.
struct Aim<'a> {
    step: &'a Step,
    first: u32,
    last: u32,
}

/// Draws one to four faults as the uniform strategy does, and aims each at a point; for three faults in four,
/// it is a point of a process that the fault affects. Some schedules also have a combination of faults at the
/// first point. Most schedules have faults at an exposed moment instead.
pub(super) fn faults(material: &Material<'_>) -> Vec<Fault> {
    let steps = (material.steps)();
    let aims = aims(&steps);
    if aims.is_empty() {
        return uniform::faults(material);
    }
    let mut site = (material.site)("aimed moment");
    if site.chance(MOMENTS) {
        let mut faults = moments::draw(material, &steps, &mut site);
        if site.chance(ANOTHER)
            && let Some(fault) = one(material, &aims, &mut site)
        {
            faults.push(fault);
        }
        if !faults.is_empty() {
            return faults;
        }
    }
    let count = 1 + (material.site)("aimed").below(FAULTS_MAX);
    let draw = |number| one(material, &aims, &mut (material.site)(&format!("aimed fault {number}")));
    let mut faults: Vec<Fault> = (1..=count).filter_map(draw).collect();
    let mut site = (material.site)("aimed combination");
    if site.chance(COMBINED)
        && let Some(first) = faults.first()
    {
        faults.extend(combined::draw(material, &first.when.clone(), &mut site));
    }
    faults
}

/// Draws a fault, and aims it.
fn one(material: &Material<'_>, aims: &[Aim<'_>], site: &mut Site) -> Option<Fault> {
    let mut fault = material.known.draw(material.scene, site)?;
    fault.when = aim(&fault, aims, material.scene, site)?;
    Some(fault)
}

/// Returns each point once, in the order of the names.
fn aims(steps: &[Step]) -> Vec<Aim<'_>> {
    let mut aims: BTreeMap<(&str, &str), Aim<'_>> = BTreeMap::new();
    for step in steps {
        let aim = aims.entry((step.process.as_str(), step.point.as_str()));
        aim.or_insert(Aim { step, first: step.nth, last: 0 }).last = step.nth;
    }
    aims.into_values().collect()
}

fn aim(fault: &Fault, aims: &[Aim<'_>], scene: &dyn Scene, site: &mut Site) -> Option<Trigger> {
    let processes = fault.what.processes();
    let touches = |step: &Step| {
        processes.contains(&step.process.as_str())
            || step.peer().is_some_and(|peer| processes.contains(&peer))
    };
    let near: Vec<&Aim<'_>> = aims.iter().filter(|aim| touches(aim.step)).collect();
    let (is_near, at) = (site.chance(0.75), site.below(u64::MAX));
    let aim = if is_near && !near.is_empty() {
        near[(at % near.len() as u64) as usize]
    } else {
        aims.get((at % aims.len() as u64) as usize)?
    };
    let nth = aim.first + site.below(u64::from(aim.last + 1 - aim.first)) as u32;
    let plus = match site.below(10) {
        0..=5 => Span::ZERO,
        6..=7 => Span::from_millis(1 + site.below(20)),
        _ => Span::from_millis(1 + site.below(scene.scale().as_nanos() / 1_000_000)),
    };
    let (process, point) = (aim.step.process.to_string(), aim.step.point.to_string());
    Some(Trigger::After { process, point, nth, plus })
}
