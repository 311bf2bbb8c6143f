//! Combinations of faults with effects that no single fault has: cuts that heal in another order than they
//! began, a link that fails again and again, a slow node, a clock that is set and set back.

use super::Material;
use super::moments::later;
use crate::entropy::Site;
use crate::faults::{ClockStep, Cut, Delay, Fault, Link, Role, Scene, Trigger};
use crate::span::{Shift, Span};

/// Draws a combination of faults around the trigger. Returns none if the scene can't have it.
pub(super) fn draw(material: &Material<'_>, when: &Trigger, site: &mut Site) -> Vec<Fault> {
    let scene = material.scene;
    let faults = match site.below(4) {
        0 => swizzled_cuts(scene, when, site),
        1 => flapping_link(scene, when, site),
        2 => slow_node(scene, when, site),
        _ => clock_there_and_back(scene, when, site),
    };
    let known = material.known.verbs();
    faults.into_iter().filter(|fault| known.contains(&fault.what.verb())).collect()
}

/// Cuts processes off from a server, one after the other, and heals the cuts in another order. From
/// FoundationDB's simulation ("swizzle-clogging", W. Wilson, Strange Loop 2014).
fn swizzled_cuts(scene: &dyn Scene, when: &Trigger, site: &mut Site) -> Vec<Fault> {
    let (hub, step) = (server(scene, site), part(scene, site, 4));
    let clients = scene.with_role(Role::Client);
    let last = clients.len() as u64;
    let cut = |(number, client): (usize, &String)| {
        let begins = step.times(number as u64);
        // Each cut heals at its own time, after the last one has begun.
        let heals = step.times(last + site.below(last.max(1) * 2));
        let lasts = Span::from_nanos(heals.as_nanos().saturating_sub(begins.as_nanos()).max(1_000_000));
        Fault::new(later(when.clone(), begins), Cut { lasts: Some(lasts), ..Cut::between(client, &hub) })
    };
    clients.iter().enumerate().map(cut).collect()
}

/// Cuts a link several times; the cuts and the times between them are equally long.
fn flapping_link(scene: &dyn Scene, when: &Trigger, site: &mut Site) -> Vec<Fault> {
    let (client, server) = (client(scene, site), server(scene, site));
    let (length, times) = (part(scene, site, 2), 2 + site.below(4));
    let cut = |number| {
        let cut = Cut { lasts: Some(length), ..Cut::between(&client, &server) };
        Fault::new(later(when.clone(), length.times(2 * number)), cut)
    };
    (0..times).map(cut).collect()
}

/// Delays all messages that a server receives and sends.
fn slow_node(scene: &dyn Scene, when: &Trigger, site: &mut Site) -> Vec<Fault> {
    let server = server(scene, site);
    let (by, lasts) = (part(scene, site, 1), Some(part(scene, site, 1).times(3)));
    let delay = |client: String| {
        Fault::new(when.clone(), Delay { link: Link::new(&client, &server), by, both: true, lasts })
    };
    scene.with_role(Role::Client).into_iter().map(delay).collect()
}

/// Sets the wall clock of a process, and later sets it back.
fn clock_there_and_back(scene: &dyn Scene, when: &Trigger, site: &mut Site) -> Vec<Fault> {
    let processes = scene.processes();
    let process = one_of(&processes, site);
    let nanos = i64::try_from(part(scene, site, 1).times(2).as_nanos()).unwrap_or(i64::MAX);
    let there = if site.chance(0.5) { nanos } else { -nanos };
    let step = |by| ClockStep { process: process.clone(), by: Shift::from_nanos(by) };
    let back = later(when.clone(), part(scene, site, 1));
    vec![Fault::new(when.clone(), step(there)), Fault::new(back, step(-there))]
}

/// Draws a time of up to the scale divided by `divisor`, in whole milliseconds.
fn part(scene: &dyn Scene, site: &mut Site, divisor: u64) -> Span {
    Span::from_millis(1 + site.below((scene.scale().as_nanos() / 1_000_000 / divisor).max(1)))
}

fn client(scene: &dyn Scene, site: &mut Site) -> String {
    one_of(&scene.with_role(Role::Client), site)
}

/// Draws a server or the resource, or a client if there is neither.
fn server(scene: &dyn Scene, site: &mut Site) -> String {
    let mut servers = scene.with_role(Role::Server);
    servers.extend(scene.with_role(Role::Resource));
    if servers.is_empty() { client(scene, site) } else { one_of(&servers, site) }
}

fn one_of(names: &[String], site: &mut Site) -> String {
    names.get(site.below(names.len() as u64) as usize).cloned().unwrap_or_default()
}
