//! A few pauses and delays at moments of the run without faults. They change the order of the turns of
//! processes and of the arrivals of messages.

use super::{Material, uniform};
use crate::entropy::Site;
use crate::faults::{Delay, Fault, Link, Pause, Scene, Trigger};
use crate::sim::steps::Step;
use crate::span::Span;

/// The largest number of faults: most known mistakes of concurrency need one or two.
const FAULTS_MAX: u64 = 3;

/// Lengths, in tenths of the lease: far within it, up to its end, and beyond it.
const TENTHS: [u64; 6] = [1, 5, 9, 11, 20, 40];

/// The time from the step on in which sent messages are delayed.
const DELAYED_FOR: Span = Span::from_millis(20);

/// Draws one to three faults, each at a step: all steps are equally likely.
pub(super) fn faults(material: &Material<'_>) -> Vec<Fault> {
    let steps = (material.steps)();
    if steps.is_empty() || !["pause", "delay"].iter().all(|verb| material.known.verbs().contains(verb)) {
        return uniform::faults(material);
    }
    let count = 1 + (material.site)("ordered").below(FAULTS_MAX);
    let draw = |number| {
        let mut site = (material.site)(&format!("ordered fault {number}"));
        let step = steps.get(site.below(steps.len() as u64) as usize)?;
        Some(preemption(step, material.scene, &mut site))
    };
    (1..=count).filter_map(draw).collect()
}

/// Returns a pause of the process that takes the step. If it is a step of the network, returns in half of the
/// cases a delay of the messages to or from its peer instead.
fn preemption(step: &Step, scene: &dyn Scene, site: &mut Site) -> Fault {
    let tenths = TENTHS[site.below(TENTHS.len() as u64) as usize];
    let length = Span::from_nanos(scene.scale().as_nanos() / 10 * tenths);
    let process = step.process.as_str();
    let (is_delay, is_outgoing) = (site.chance(0.5), site.chance(0.5));
    let when = Trigger::After {
        process: process.to_owned(),
        point: step.point.to_string(),
        nth: step.nth,
        plus: Span::ZERO,
    };
    match step.peer() {
        Some(peer) if is_delay => {
            let link = if is_outgoing { Link::new(process, peer) } else { Link::new(peer, process) };
            Fault::new(when, Delay { link, by: length, both: false, lasts: Some(DELAYED_FOR) })
        }
        _ => Fault::new(when, Pause { process: process.to_owned(), lasts: Some(length) }),
    }
}
