//! Makes a picture of a run, in one pass over its history.

use history::text::describe;
use history::{Event, Kind, Nanos};

use super::arrows::arrows;
use super::bars::Bars;
use super::cast::Cast;
use super::clip::clip;
use super::faults::Faults;
use super::label::{label, shape};
use super::lanes::lanes;
use super::leases::Leases;
use super::links::Links;
use super::state::World;
use super::verdicts::violations;
use super::{Edge, Mark, Picture};
use crate::run::Run;

pub(super) fn build(run: &Run<'_>) -> Picture {
    let lanes = lanes(run.events, run.messages, run.roles);
    let cast = Cast::new(&lanes, run.events, run.names);
    let end = end(run);
    let mut bars = Bars::default();
    let (mut leases, mut faults) = (Leases::new(&cast, run.events), Faults::default());
    let (mut world, mut links) = (World::new(run.names), Links::default());
    let mut marks: Vec<Mark> = Vec::with_capacity(run.events.len());
    for (number, event) in run.events.iter().enumerate() {
        let Some(lane) = cast.lane(event.process.as_str()) else { continue };
        // The event of the fault shows the rate of the clock.
        let is_shown = !matches!(event.kind, Kind::ClockRate { .. });
        let edge = Edge { at: event.at, mark: is_shown.then_some(marks.len()) };
        leases.observe(event, lane, edge, &mut bars);
        faults.observe(event, lane, edge, &mut bars);
        world.observe(event);
        if !is_shown {
            continue;
        }
        links.observe(&event.kind, marks.len());
        let mut mark = mark(event, number, lane, &cast);
        mark.changes = world.changes();
        marks.push(mark);
    }
    leases.finish(end, &mut bars);
    let is_live = run.messages.is_empty();
    let picture = Picture {
        title: run.title.to_owned(),
        about: run.about.to_owned(),
        arrows: arrows(run.messages, &cast),
        links: if is_live { links.found } else { Vec::new() },
        violations: violations(run, &marks),
        keys: cast.key_names(),
        events_total: marks.len(),
        spans: bars.finish(end),
        marks,
        lanes,
    };
    clip(picture)
}

fn mark(event: &Event, number: usize, lane: usize, cast: &Cast<'_>) -> Mark {
    let text = describe(&event.kind, cast.names);
    let key = event.kind.key();
    let named = key.filter(|_| cast.has_several_keys()).map(|key| cast.names.key(key));
    let fault = match &event.kind {
        Kind::FaultApplied { fault, .. } | Kind::FaultHealed { fault, .. } => Some(*fault),
        _ => None,
    };
    Mark {
        number,
        lane,
        at: event.at,
        label: label(&event.kind, &text, named),
        text,
        shape: shape(&event.kind),
        key: key.and_then(|key| cast.key(key)),
        fault,
        changes: Vec::new(),
    }
}

/// Returns the end of the picture: the last event or message.
fn end(run: &Run<'_>) -> Nanos {
    use history::Fate::{Arrived, Held, Lost};
    let last = run.events.last().map_or(Nanos(0), |event| event.at);
    let messages = run.messages.iter().map(|message| match message.fate {
        Arrived { at, .. } | Lost { at } => at,
        Held => message.sent,
    });
    messages.fold(last, Nanos::max)
}
