//! The requests of the clients in the run without faults, by phase.

use std::collections::{BTreeMap, BTreeSet};

use super::{later, pick};
use crate::entropy::Site;
use crate::faults::{Role, Scene, Trigger};
use crate::sim::steps::Step;
use crate::span::Span;

/// A request of a client, as indices of steps.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) sent: usize,
    /// The last point of the client's own before it.
    pub(super) phase: usize,
    /// True for the last request of its phase: the client continued when it had the answer.
    pub(super) decides: bool,
}

/// The run without faults.
pub(super) struct Survey<'a> {
    pub(super) scene: &'a dyn Scene,
    pub(super) steps: &'a [Step],
    pub(super) requests: Vec<Request>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(scene: &'a dyn Scene, steps: &'a [Step]) -> Self {
        let clients: BTreeSet<String> = scene.with_role(Role::Client).into_iter().collect();
        let (mut phases, mut last) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
        let mut requests: Vec<Request> = Vec::new();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| clients.contains(step.process.as_str()))
        {
            if step.peer().is_none() {
                phases.insert(step.process.as_str(), at);
                if let Some(last) = last.remove(step.process.as_str()) {
                    requests[last].decides = true;
                }
            } else if let Some(phase) = phases.get(step.process.as_str())
                && step.point.as_str().starts_with("sends to ")
            {
                last.insert(step.process.as_str(), requests.len());
                requests.push(Request { sent: at, phase: *phase, decides: false });
            }
        }
        Self { scene, steps, requests }
    }

    /// Draws a request: its phase first, and then in most cases the last request of the phase.
    pub(super) fn request(&self, site: &mut Site) -> Option<Request> {
        let mut phases: BTreeMap<(&str, Option<Role>), Vec<Request>> = BTreeMap::new();
        for request in &self.requests {
            let key = (self.steps[request.phase].point.as_str(), self.scene.role(self.peer(*request)));
            phases.entry(key).or_default().push(*request);
        }
        let phases: Vec<_> = phases.into_values().collect();
        let phase = pick(&phases, site)?;
        let decisive: Vec<Request> = phase.iter().filter(|request| request.decides).copied().collect();
        let is_decisive = site.chance(0.6) && !decisive.is_empty();
        pick(if is_decisive { &decisive } else { phase }, site).copied()
    }

    /// Draws a request to a lock server.
    pub(super) fn request_to_server(&self, site: &mut Site) -> Option<Request> {
        let mut request = self.request(site)?;
        for _ in 0..8 {
            if self.is_to_server(request) {
                return Some(request);
            }
            request = self.request(site)?;
        }
        None
    }

    pub(super) fn is_to_server(&self, request: Request) -> bool {
        self.scene.role(self.peer(request)) == Some(Role::Server)
    }

    pub(super) fn is_to_resource(&self, request: Request) -> bool {
        self.scene.role(self.peer(request)) == Some(Role::Resource)
    }

    pub(super) fn has_resource(&self) -> bool {
        self.requests.iter().any(|request| self.is_to_resource(*request))
    }

    pub(super) fn client(&self, request: Request) -> &'a str {
        self.steps[request.sent].process.as_str()
    }

    pub(super) fn peer(&self, request: Request) -> &'a str {
        self.steps[request.sent].peer().unwrap_or_default()
    }

    /// Returns the next step after `at` in which `process` passes `point`.
    pub(super) fn next(&self, at: usize, process: &str, point: &str) -> Option<usize> {
        let later = self.steps.iter().enumerate().skip(at + 1);
        later
            .into_iter()
            .find(|(_, step)| step.process.as_str() == process && step.point.as_str() == point)
            .map(|(at, _)| at)
    }

    pub(super) fn trigger(&self, at: usize) -> Trigger {
        let step = &self.steps[at];
        let (process, point) = (step.process.to_string(), step.point.to_string());
        Trigger::After { process, point, nth: step.nth, plus: Span::ZERO }
    }

    /// Returns a trigger at the time of the request that counts from its phase: earlier faults may change the
    /// number of requests, but seldom that of phases.
    pub(super) fn trigger_by_phase(&self, request: Request) -> Trigger {
        let (from, to) = (self.steps[request.phase].at, self.steps[request.sent].at);
        later(self.trigger(request.phase), Span::from_millis(to.saturating_sub(from) / 1_000_000))
    }

    pub(super) fn servers(&self) -> Vec<String> {
        self.scene.with_role(Role::Server)
    }

    /// Returns true if a majority of independent servers decides.
    pub(super) fn has_voters(&self) -> bool {
        !self.scene.has_leader() && self.servers().len() >= 3
    }

    pub(super) fn replica(&self) -> Option<String> {
        self.scene.processes().into_iter().find(|name| self.scene.action(name, "promote").is_ok())
    }

    /// Returns a client that renews in one round and comes again in another.
    pub(super) fn renewing(&self) -> Option<&'a str> {
        let passes = |client: &str, point: &str, times: u32| {
            self.steps.iter().any(|step| {
                step.process.as_str() == client && step.point.as_str() == point && step.nth >= times
            })
        };
        let mut renewals = self.steps.iter().filter(|step| step.point.as_str() == "renewed");
        let renewing = renewals.find(|step| passes(step.process.as_str(), "requested", 2));
        renewing.map(|step| step.process.as_str())
    }

    /// Draws a time: one of these numbers of quarters of the scale.
    pub(super) fn quarters(&self, quarters: &[u64], site: &mut Site) -> Span {
        let times = pick(quarters, site).copied().unwrap_or(1);
        Span::from_nanos(self.scene.scale().as_nanos() / 4 * times)
    }
}
