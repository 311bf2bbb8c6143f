//! The lanes of a picture: their roles and their order.

use std::collections::BTreeMap;

use history::{Effect, Event, Kind, Message};

use super::Lane;
use crate::run::Role;

/// Returns the lanes of all processes that have an event or a message, in order.
pub(super) fn lanes(events: &[Event], messages: &[Message], roles: &BTreeMap<String, Role>) -> Vec<Lane> {
    let mut known: BTreeMap<&str, Option<Role>> = BTreeMap::new();
    for event in events {
        let role = known.entry(event.process.as_str()).or_default();
        *role = role.or_else(|| role_of(event));
    }
    for name in messages.iter().flat_map(|message| [&message.from, &message.to]) {
        known.entry(name).or_default();
    }
    let role =
        |name: &str, derived: Option<Role>| roles.get(name).copied().or(derived).unwrap_or(Role::Server);
    let mut lanes: Vec<Lane> = known
        .into_iter()
        .map(|(name, derived)| Lane { name: name.to_owned(), role: role(name, derived), hue: None })
        .collect();
    lanes.sort_by_cached_key(|lane| (lane.role, natural(&lane.name)));
    let workers = lanes.iter_mut().filter(|lane| lane.role == Role::Worker);
    workers.enumerate().for_each(|(number, lane)| lane.hue = Some(number));
    lanes
}

/// Returns the role of the event's process, if the event shows it.
fn role_of(event: &Event) -> Option<Role> {
    match &event.kind {
        Kind::FaultApplied { effect: Effect::Link { .. }, .. }
        | Kind::FaultHealed { effect: Effect::Link { .. }, .. } => Some(Role::Links),
        Kind::FaultApplied { .. }
        | Kind::FaultHealed { .. }
        | Kind::ClockRate { .. }
        | Kind::ProcessCrashed { .. } => None,
        Kind::KeyGranted { .. }
        | Kind::KeyExtended { .. }
        | Kind::KeyDeleted { .. }
        | Kind::KeyExpired { .. }
        | Kind::WaiterGone { .. }
        | Kind::ServerStopped { .. }
        | Kind::ServerStarted { .. }
        | Kind::ServerPromoted { .. } => Some(Role::Server),
        Kind::WriteAccepted { .. }
        | Kind::WriteRepeated { .. }
        | Kind::WriteRejected { .. }
        | Kind::FenceSet { .. }
        | Kind::ResourceRead { .. }
        | Kind::ReadRejected { .. }
        | Kind::ConditionalAccepted { .. }
        | Kind::ConditionalRepeated { .. }
        | Kind::ConditionalRejected { .. } => Some(Role::Resource),
        _ => Some(Role::Worker),
    }
}

/// Splits a name so that `redis-10` comes after `redis-9`.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (word, number) = name.split_at(name.len() - digits);
    (word.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}
