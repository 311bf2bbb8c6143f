//! Faults at the moments at which a protocol is most exposed: while a call is in flight, right after an
//! answer, under a lease. The moments are taken from the run without faults.
//!
//! A *phase* of a client is the last point of its own that it passed, such as `requested`. Requests are drawn
//! by phase: the one request of a release is as likely as the many polls of an acquire.

mod survey;

use std::collections::BTreeMap;

use self::survey::{Request, Survey};
use super::Material;
use crate::entropy::Site;
use crate::faults::{
    Call, Cancel, ClockStep, Crash, Cut, Delay, Evict, Fault, Link, Part, Pause, Promote, Reset, Trigger,
};
use crate::sim::steps::Step;
use crate::span::{Shift, Span};

/// Leases from this length on are long: twice the longest backoff of a client that cleans up.
const LONG: Span = Span::from_secs(4);

/// The weight of a kind of moment, and the draw of its faults; `None` if the run has no such moment.
type Way = (fn(&Survey<'_>) -> u64, fn(&Survey<'_>, &mut Site) -> Option<Vec<Fault>>);

const WAYS: &[Way] = &[
    (|_| 2, lost_replies),
    (|_| 2, clock_step_in_flight),
    (|_| 4, slow_servers),
    (|survey| 4 * u64::from(survey.has_resource()), late_write),
    (|survey| 1 + 3 * u64::from(survey.has_voters()), forgotten_vote),
    (|survey| 3 * u64::from(survey.scene.evictable().is_ok()), evicted_lease),
    (|survey| 2 * u64::from(survey.replica().is_some()), promotion),
    // A dropped call can leave a key behind. Under a short lease the key expires before it does harm.
    (|survey| 3 + 9 * u64::from(survey.scene.scale() >= LONG), dropped_call),
    // Few runs have a client that renews and comes again, so these have a high weight.
    (|survey| 1 + 19 * u64::from(survey.renewing().is_some()), two_outages),
];

/// Draws the faults of one moment, limited to the kinds that are known.
pub(super) fn draw(material: &Material<'_>, steps: &[Step], site: &mut Site) -> Vec<Fault> {
    let survey = Survey::of(material.scene, steps);
    let weights: Vec<u64> = WAYS.iter().map(|(weigh, _)| weigh(&survey)).collect();
    let mut at = site.below(weights.iter().sum());
    let way = weights.iter().position(|weight| {
        let is_drawn = at < *weight;
        at = at.saturating_sub(*weight);
        is_drawn
    });
    let faults = way.and_then(|way| WAYS.get(way)).and_then(|(_, strike)| strike(&survey, site));
    let known = material.known.verbs();
    faults.unwrap_or_default().into_iter().filter(|fault| known.contains(&fault.what.verb())).collect()
}

/// Loses the reply to a request that takes effect: that of one server, or of each server that was asked.
fn lost_replies(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let request = survey.request(site)?;
    let (client, peer) = (survey.client(request), survey.peer(request));
    let all = site.chance(0.5) && survey.is_to_server(request);
    let servers = if all { survey.servers() } else { vec![peer.to_owned()] };
    let lost = |server: &String| {
        let reply = survey.next(request.sent, server, &format!("sends to {client}"))?;
        Some(Fault::new(survey.trigger(reply), Reset { link: Link::new(client, server) }))
    };
    Some(servers.iter().filter_map(lost).collect())
}

/// Steps a wall clock between a request and its answer, in some cases there and back.
fn clock_step_in_flight(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let request = survey.request(site)?;
    let process = if site.chance(0.7) { survey.client(request) } else { survey.peer(request) };
    let nanos = i64::try_from(survey.quarters(&[2, 4, 8], site).as_nanos()).unwrap_or(i64::MAX);
    let by = if site.chance(0.5) { nanos } else { -nanos };
    let step = |by| ClockStep { process: process.to_owned(), by: Shift::from_nanos(by) };
    let when = survey.trigger(request.sent);
    let mut faults = vec![Fault::new(when.clone(), step(by))];
    if site.chance(0.3) {
        faults.push(Fault::new(later(when, survey.quarters(&[2, 4, 6], site)), step(-by)));
    }
    Some(faults)
}

/// Delays the requests of a call, or their answers, until the lease would be over: at one server, at a
/// majority or at all.
fn slow_servers(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let request = survey.request_to_server(site)?;
    let mut servers = survey.servers();
    let count = *pick(&[1, servers.len() / 2 + 1, servers.len()], site)?;
    let first = servers.iter().position(|server| server == survey.peer(request)).unwrap_or_default();
    servers.rotate_left(first);
    let (by, is_request) = (survey.quarters(&[2, 3, 4, 6, 12], site), site.chance(0.5));
    let lasts = Some(*pick(&[Span::from_millis(20), survey.scene.scale()], site)?);
    let client = survey.client(request);
    let slow = |server: &String| {
        let link = if is_request { Link::new(client, server) } else { Link::new(server, client) };
        Fault::new(survey.trigger(request.phase), Delay { link, by, both: false, lasts })
    };
    let mut faults: Vec<Fault> = servers.iter().take(count).map(slow).collect();
    // A late grant ends early. A holder that counts from its arrival and can't renew shows that.
    if site.chance(0.4)
        && let Some(granted) = survey.next(request.sent, client, "granted")
    {
        let lasts = Some(survey.quarters(&[8, 12], site));
        let cut = |server: &String| {
            Fault::new(survey.trigger(granted), Cut { lasts, ..Cut::between(client, server) })
        };
        faults.extend(servers.iter().map(cut));
    }
    Some(faults)
}

/// Delays a client's request to the resource by more than a lease: pauses the client before it, or slows the
/// link. In some cases the resource restarts meanwhile, after it has answered another client.
fn late_write(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let writes: Vec<Request> =
        survey.requests.iter().filter(|request| survey.is_to_resource(**request)).copied().collect();
    let request = *pick(&writes, site)?;
    let (client, resource) = (survey.client(request), survey.peer(request));
    let lasts = survey.quarters(&[5, 6, 8, 12], site);
    let late = if site.chance(0.7) {
        let at = if site.chance(0.7) { request.phase } else { request.sent };
        Fault::new(survey.trigger(at), Pause { process: client.to_owned(), lasts: Some(lasts) })
    } else {
        let link = Link::new(client, resource);
        let short = Some(Span::from_millis(20));
        Fault::new(survey.trigger(request.phase), Delay { link, by: lasts, both: false, lasts: short })
    };
    let mut faults = vec![late];
    if site.chance(0.5) && survey.scene.disk(resource).is_ok() {
        faults.extend(restart_after_another(survey, request, site));
    }
    Some(faults)
}

/// Restarts the resource once it has answered another client's request.
fn restart_after_another(survey: &Survey<'_>, request: Request, site: &mut Site) -> Option<Fault> {
    let resource = survey.peer(request);
    let is_other = |other: &&Request| {
        survey.is_to_resource(**other)
            && survey.client(**other) != survey.client(request)
            && other.sent > request.sent
    };
    let others: Vec<Request> = survey.requests.iter().filter(is_other).copied().collect();
    let other = *pick(&others, site)?;
    let answered = survey.next(other.sent, resource, &format!("sends to {}", survey.client(other)))?;
    let power_loss = survey.scene.may_lose_power(resource) && site.chance(0.5);
    let restart_after = Some(Span::from_millis(1 + site.below(50)));
    let when = later(survey.trigger(answered), Span::from_millis(site.below(20)));
    Some(Fault::new(when, Crash { process: resource.to_owned(), power_loss, restart_after }))
}

/// Restarts a server once a client has its answer; without persistence it has forgotten its vote. If a
/// majority decides, cuts off a minority meanwhile, so that this vote counts.
fn forgotten_vote(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let request = survey.request_to_server(site)?;
    let (client, voter) = (survey.client(request), survey.peer(request));
    let mut faults = Vec::new();
    if survey.has_voters() {
        let lasts = Some(survey.quarters(&[2, 4, 8], site));
        let mut others: Vec<String> = survey.servers().into_iter().filter(|name| name != voter).collect();
        let offset = site.below(others.len() as u64) as usize;
        others.rotate_left(offset);
        let minority = (others.len() / 2).min(others.len().saturating_sub(1));
        let cut = |other: &String| {
            Fault::new(survey.trigger(request.phase), Cut { lasts, ..Cut::between(client, other) })
        };
        faults.extend(others.iter().take(minority).map(cut));
    }
    let answered = survey.next(request.sent, client, &format!("receives from {voter}"))?;
    let power_loss = survey.scene.may_lose_power(voter) && site.chance(0.7);
    let restart_after = Some(Span::from_millis(1 + site.below(50)));
    let late = if site.chance(0.5) { Span::ZERO } else { Span::from_millis(1 + site.below(50)) };
    let crash = Crash { process: voter.to_owned(), power_loss, restart_after };
    faults.push(Fault::new(later(survey.trigger(answered), late), crash));
    Some(faults)
}

/// Evicts a key at some time under its lease, in some cases before the holder knows of its lease.
fn evicted_lease(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let key = pick(survey.scene.evictable().ok()?, site)?.clone();
    let mut request = survey.request_to_server(site)?;
    if let Some(client) = survey.renewing()
        && site.chance(0.7)
    {
        let own = survey.requests.iter().filter(|request| survey.client(**request) == client);
        let own: Vec<Request> = own.filter(|request| survey.is_to_server(**request)).copied().collect();
        request = *pick(&own, site)?;
    }
    let reply = format!("sends to {}", survey.client(request));
    let answered = survey.next(request.sent, survey.peer(request), &reply).filter(|_| site.chance(0.5));
    let part = *pick(&[Some(Part::Owner), Some(Part::Owner), None], site)?;
    let plus = if site.chance(0.5) { Span::ZERO } else { Span::from_millis(site.below(60)) };
    let when = later(survey.trigger(answered.unwrap_or(request.phase)), plus);
    Some(vec![Fault::new(when, Evict { key, part })])
}

/// Promotes a replica at some moment of a round: it may lack the last grants and releases.
fn promotion(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let replica = survey.replica()?;
    let request = survey.request_to_server(site)?;
    let at = if site.chance(0.5) { request.sent } else { request.phase };
    Some(vec![Fault::new(survey.trigger(at), Promote { replica })])
}

/// Drops a call of a client whose request is in flight; in some cases the request is slow.
fn dropped_call(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let request = survey.request_to_server(site)?;
    let (client, server) = (survey.client(request), survey.peer(request));
    let call = match survey.steps[request.phase].point.as_str() {
        "requested" => Call::Acquire,
        "release-requested" => Call::Release,
        _ => Call::Renew,
    };
    let cancel = Cancel { worker: client.to_owned(), call };
    if site.chance(0.4) {
        let plus = *pick(&[Span::ZERO, Span::ZERO, Span::from_millis(1 + site.below(20))], site)?;
        return Some(vec![Fault::new(later(survey.trigger(request.sent), plus), cancel)]);
    }
    // Delays messages that are sent until shortly before the call is dropped, and none that are sent
    // afterwards.
    let lasts = Span::from_millis(1 + site.below(20));
    let short = Span::from_millis(60 + site.below(500));
    let by = if site.chance(0.5) { short } else { survey.quarters(&[2, 4, 6], site) };
    let link = Link::new(client, server);
    let begins = survey.trigger_by_phase(request);
    let cancelled = later(begins.clone(), lasts.plus(Span::from_millis(1 + site.below(30))));
    Some(vec![
        Fault::new(begins, Delay { link, by, both: false, lasts: Some(lasts) }),
        Fault::new(cancelled, cancel),
    ])
}

/// Cuts a client off from its server in two calls of different kinds: a mistake in the first may do harm only
/// in the second.
fn two_outages(survey: &Survey<'_>, site: &mut Site) -> Option<Vec<Fault>> {
    let client = survey.renewing().or_else(|| survey.request_to_server(site).map(|at| survey.client(at)))?;
    let is_own = |request: &&Request| survey.client(**request) == client && survey.is_to_server(**request);
    let mut phases: BTreeMap<&str, Vec<Request>> = BTreeMap::new();
    for request in survey.requests.iter().filter(is_own) {
        phases.entry(survey.steps[request.phase].point.as_str()).or_default().push(*request);
    }
    let mut phases: Vec<Vec<Request>> = phases.into_values().collect();
    if phases.len() < 2 {
        return None;
    }
    let first = phases.swap_remove(site.below(phases.len() as u64) as usize);
    let first = *pick(&first, site)?;
    let mut second = pick(&phases, site)?.clone();
    second.retain(|request| request.phase > first.phase);
    let second = *pick(&second, site)?;
    let outage = |request: Request, site: &mut Site| {
        let cut = Cut::between(client, survey.peer(request));
        let lasts = Some(survey.quarters(&[4, 6, 8], site));
        Fault::new(survey.trigger_by_phase(request), Cut { lasts, ..cut })
    };
    Some(vec![outage(first, site), outage(second, site)])
}

/// Returns the trigger with its strike later by this time.
pub(super) fn later(mut when: Trigger, by: Span) -> Trigger {
    match &mut when {
        Trigger::At(at) => *at = at.plus(by),
        Trigger::After { plus, .. } => *plus = plus.plus(by),
    }
    when
}

/// Draws one of `choices`; `None` if there are none.
fn pick<'c, T>(choices: &'c [T], site: &mut Site) -> Option<&'c T> {
    choices.get(site.below(choices.len().max(1) as u64) as usize)
}
