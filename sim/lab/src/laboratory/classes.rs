//! Draws random faults of one class, for the comparison of the systems.

use sim::entropy::Site;
use sim::faults::{
    ClockStep, Cut, Fault, FaultDraw, Link, Partition, Rate, Reset, Trigger, Variant, crash, lead, pause,
    promote, rate,
};
use sim::{Schedule, Span};

use super::fault_class::FaultClass;
use super::options::Options;
use super::point::Point;
use super::scene::LabScene;
use super::system::System;

impl FaultClass {
    /// Returns true if the system can have such a fault.
    pub fn applies_to(self, system: System) -> bool {
        system.get().has_class(self)
    }

    /// Draws one fault of this class for `schedule`, as one entry or several; `None` if its system can't have
    /// one.
    pub(super) fn draw(self, schedule: &Schedule<Options>, site: &mut Site) -> Option<Vec<Fault>> {
        if !self.applies_to(schedule.options.system) {
            return None;
        }
        let mut draw = FaultDraw { scene: &LabScene(schedule), site };
        Some(match self {
            Self::Pause => by_weight(&mut draw, &[(&pause::OF_HOLDER, 3), (&pause::OF_ANY, 1)]),
            Self::Crash => by_weight(&mut draw, &[(&crash::OF_SERVER, 2), (&crash::OF_CLIENT, 1)]),
            Self::OneWay => one_way(&mut draw, schedule),
            Self::Partition => parted(&mut draw, schedule),
            Self::ClockStep => step(&mut draw),
            Self::ClockRate => rate(&mut draw),
            Self::LostReply => every_reply(&mut draw, schedule),
            Self::Failover => (promote::ANY.draw)(&mut draw).into_iter().collect(),
            Self::LeaderChange => (lead::ANY.draw)(&mut draw).into_iter().collect(),
        })
    }
}

fn by_weight(draw: &mut FaultDraw<'_>, variants: &[(&Variant, u64)]) -> Vec<Fault> {
    let variant = draw.variant(variants);
    variant.and_then(|variant| (variant.draw)(draw)).into_iter().collect()
}

fn one_way(draw: &mut FaultDraw<'_>, schedule: &Schedule<Options>) -> Vec<Fault> {
    let (worker, when, lasts) = (draw.client(), draw.when(), Some(draw.up_to(3)));
    let to_worker = draw.site.chance(0.5);
    let cut = |server: String| {
        let link = if to_worker { Link::new(&server, &worker) } else { Link::new(&worker, &server) };
        Fault::new(when.clone(), Cut { link, both: false, lasts })
    };
    some_servers(draw, schedule).into_iter().map(cut).collect()
}

fn parted(draw: &mut FaultDraw<'_>, schedule: &Schedule<Options>) -> Vec<Fault> {
    let (when, lasts) = (draw.when(), Some(draw.up_to(3)));
    let among_members = schedule.options.cluster().is_some() && draw.site.chance(0.5);
    let groups = if among_members {
        let member = draw.server();
        let others = schedule.options.servers().into_iter().filter(|other| *other != member).collect();
        vec![vec![member], others]
    } else {
        vec![vec![draw.client()], some_servers(draw, schedule)]
    };
    vec![Fault::new(when, Partition { groups, lasts })]
}

fn step(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (process, when, by) = (draw.process(), draw.when(), draw.shift());
    vec![Fault::new(when, ClockStep { process, by })]
}

fn rate(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (process, when, lasts) = (draw.process(), draw.when(), Some(draw.up_to(4)));
    vec![Fault::new(when, Rate { process, factor: rate::draw_factor(draw), lasts })]
}

/// Draws a lost reply: once a server has carried out a request and before it answers, the connections of one
/// worker break, to each server that may have got the request.
fn every_reply(draw: &mut FaultDraw<'_>, schedule: &Schedule<Options>) -> Vec<Fault> {
    let (worker, nth) = (draw.client(), 1 + draw.site.below(3) as u32);
    let (process, point, servers) = if draw.site.chance(0.7) {
        let points = [Point::Granted, Point::Granted, Point::Deleted];
        let point = points[draw.site.below(points.len() as u64) as usize];
        let server = draw.speaker();
        let is_cluster = schedule.options.cluster().is_some();
        let answering = if is_cluster { schedule.options.servers() } else { vec![server.clone()] };
        (server, point, answering)
    } else {
        let resource = draw.resource();
        (resource.clone(), Point::Accepted, vec![resource])
    };
    let reset = |server: String| {
        let when =
            Trigger::After { process: process.clone(), point: point.to_string(), nth, plus: Span::ZERO };
        Fault::new(when, Reset { link: Link::new(&worker, &server) })
    };
    servers.into_iter().map(reset).collect()
}

/// Draws some of the lock servers: at least one, and maybe all.
fn some_servers(draw: &mut FaultDraw<'_>, schedule: &Schedule<Options>) -> Vec<String> {
    let mut servers = schedule.options.servers();
    let count = 1 + draw.site.below(servers.len() as u64) as usize;
    while servers.len() > count {
        let out = draw.site.below(servers.len() as u64) as usize;
        servers.remove(out);
    }
    servers
}
