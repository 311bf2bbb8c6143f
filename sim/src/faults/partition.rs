//! Cuts every link between processes of different groups. A process in no group reaches all others.

use std::sync::Arc;

use history::LinkFault;

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, longer};
use super::kind::FaultKind;
use super::link::Link;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::{NETWORK, Strike};
use crate::field_path::Invalid;
use crate::span::Span;

/// Cuts every link between processes of different groups.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The groups.
    pub groups: Vec<Vec<String>>,
    /// The time until it heals.
    pub lasts: Option<Span>,
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "partition",
    fields: &["for"],
    read,
    variants: &[&CLIENTS],
    wide: &[],
    forms: |lease| vec![isolating(longer(lease))],
    class: Some(&CLASS),
};

/// Cuts a worker off from some of the lock servers, or one member of a cluster from the others.
static CLASS: Class = Class { order: 40, name: "partition", needs: None, draw: draw_of_servers };

/// Returns the form of a client's partition from all servers for this long, if there are several servers.
fn isolating(lasts: Span) -> Form {
    let words = format!("partition of a client from all servers for {lasts}");
    Form::of_processes(60, KIND.verb, words, move |scene, process| {
        let servers = scene.with_role(Role::Server);
        let suits = scene.role(process) == Some(Role::Client) && servers.len() > 1;
        suits.then(|| Partition { groups: vec![vec![process.to_owned()], servers], lasts: Some(lasts) })
    })
}

/// Puts some clients on one side and all other processes on the other.
pub static CLIENTS: Variant = Variant { order: 90, weight: |scene| 2 + u64::from(scene.has_leader()), draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let groups = fields.need("partition", "partition", "the groups")?;
    Ok(Arc::new(Partition { groups, lasts: fields.take("for")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let when = draw.when();
    let mut groups = vec![vec![draw.client()], Vec::new()];
    for process in draw.scene.processes() {
        let is_client = draw.scene.role(&process) == Some(Role::Client);
        let side = usize::from(!(is_client && draw.site.chance(0.3)));
        if process != groups[0][0] {
            groups[side].push(process);
        }
    }
    Some(Fault::new(when, Partition { groups, lasts: Some(draw.up_to(3)) }))
}

fn draw_of_servers(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (when, lasts) = (draw.when(), Some(draw.up_to(3)));
    let groups = if draw.scene.has_leader() && draw.site.chance(0.5) {
        let member = draw.server();
        let mut others = draw.scene.with_role(Role::Server);
        others.retain(|other| *other != member);
        vec![vec![member], others]
    } else {
        vec![vec![draw.client()], draw.some_servers()]
    };
    vec![Fault::new(when, Partition { groups, lasts })]
}

impl Partition {
    /// Returns the links between processes of different groups, in both directions.
    fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            for other in self.groups.iter().skip(number + 1).flatten() {
                for one in group {
                    links.extend([Link::new(one, other), Link::new(other, one)]);
                }
            }
        }
        links
    }
}

impl Action for Partition {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("partition", &self.groups);
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        self.groups.iter().flatten().map(String::as_str).collect()
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let path = check.path.key("partition");
        for (group, members) in self.groups.iter().enumerate() {
            for (member, name) in members.iter().enumerate() {
                check.process_at(path.index(group).index(member), name)?;
            }
        }
        check.lasting("for", self.lasts)?;
        if self.groups.len() < 2 || self.groups.iter().any(Vec::is_empty) {
            return Err(path.says("`partition` needs two groups at least, none of them empty"));
        }
        let mut names = self.processes();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(path.says(format!("`{}` is in `partition` twice: name it once", pair[0]))),
        }
    }

    fn strike(&self, strike: &Strike) {
        let links = self.links();
        let links: Vec<_> = links.iter().flat_map(|link| strike.directions(link, false)).collect();
        links.iter().for_each(|(from, to)| strike.world().cut(*from, *to));
        let sides: Vec<_> = self.groups.iter().map(|group| group.join(",")).collect();
        let detail = format!("partition {}", sides.join(" | "));
        let begun = strike.begins(NETWORK, strike.on_links(LinkFault::Cut, &links), self.lasts, &detail);
        begun.until(&format!("over: {detail}"), move |strike| {
            links.iter().for_each(|(from, to)| strike.world().heal(*from, *to));
        });
    }

    fn reach(&self) -> Reach {
        Reach::Links(self.links())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts
    }

    /// Leaves out one process.
    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        let mut smaller: Vec<Arc<dyn Action>> = Vec::new();
        for (number, group) in self.groups.iter().enumerate().filter(|(_, group)| group.len() > 1) {
            for member in 0..group.len() {
                let mut action = self.clone();
                action.groups[number].remove(member);
                smaller.push(Arc::new(action));
            }
        }
        smaller
    }
}
