//! Breaks the lookups of names: they are slow, fail, or give the process that had an alias before. It reaches
//! code on tokio's interface (`cargo sim`), which looks names up, and no simulated client or server.

use std::sync::Arc;

use history::{Effect, LookUpFault, in_whole_units};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::scene::Scene;
use super::strike::{NETWORK, Strike};
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;
use crate::world::look_ups::LOOKS_UP;

/// The name for all processes in a schedule file.
const ALL: &str = "*";

/// Breaks the lookups of names.
///
/// # Example
///
/// ```
/// use sim::Span;
/// use sim::faults::Dns;
///
/// // Each lookup of `a` takes 2 s longer, for 10 s.
/// let slow = Dns { lasts: Some(Span::from_secs(10)), ..Dns::slow("a", Span::from_secs(2)) };
/// // No process finds a host any more.
/// let down = Dns { process: None, ..Dns::failing("a") };
/// assert_ne!(slow.how, down.how);
/// ```
#[derive(Clone, Debug)]
pub struct Dns {
    /// The process that looks names up; all processes if `None`.
    pub process: Option<String>,
    /// The error of the lookups.
    pub how: LookUpFault,
    /// The time that slow lookups take longer.
    pub by: Option<Span>,
    /// The time until lookups work again.
    pub lasts: Option<Span>,
}

impl Dns {
    /// Returns a fault by which each lookup of `process` takes `by` longer. It does not end by itself.
    pub fn slow(process: &str, by: Span) -> Self {
        Self { by: Some(by), ..Self::of(process, LookUpFault::Slow) }
    }

    /// Returns a fault by which each lookup of `process` fails. It does not end by itself.
    pub fn failing(process: &str) -> Self {
        Self::of(process, LookUpFault::Failing)
    }

    /// Returns a fault by which `process` finds the process that had an alias before. It does not end by
    /// itself.
    pub fn stale(process: &str) -> Self {
        Self::of(process, LookUpFault::Stale)
    }

    fn of(process: &str, how: LookUpFault) -> Self {
        Self { process: Some(process.to_owned()), how, by: None, lasts: None }
    }
}

/// The row of this fault in the table. It has no form and no class: these would change the kept results of
/// exhaustive searches and of the comparison, whose clients look no name up.
pub static KIND: FaultKind = FaultKind {
    verb: "dns",
    fields: &["how", "by", "for"],
    read,
    variants: &[&ANY],
    wide: &[],
    forms: |_| Vec::new(),
    class: None,
};

/// Breaks the lookups of a process that has looked a name up in the run without faults, or those of all. In
/// other scenes it is not drawn.
static ANY: Variant =
    Variant { order: 240, weight: |scene| 2 * u64::from(!looking_up(scene).is_empty()), draw };

/// Returns the processes that look names up, each with the points of its lookups.
fn looking_up(scene: &dyn Scene) -> Vec<(String, Vec<String>)> {
    let points = |process: &str| {
        let mut points = scene.points(process);
        points.retain(|point| point.starts_with(LOOKS_UP));
        points
    };
    let processes = scene.processes().into_iter().map(|process| (points(&process), process));
    processes.filter(|(points, _)| !points.is_empty()).map(|(points, process)| (process, points)).collect()
}

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process: String = fields.need("dns", "dns", "the process, or `*` for all")?;
    let how = fields.need("dns", "how", "`slow`, `failing` or `stale`")?;
    let process = (process != ALL).then_some(process);
    Ok(Arc::new(Dns { process, how, by: fields.take("by")?, lasts: fields.take("for")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let processes = looking_up(draw.scene);
    if processes.is_empty() {
        return None;
    }
    let (process, points) = draw.one_of(&processes);
    let point = draw.one_of(&points);
    let aimed = Trigger::After { process: process.clone(), point, nth: 1, plus: Span::ZERO };
    let (aimed, other) = (draw.nth_round(aimed), draw.when());
    let when = if draw.site.chance(0.5) { aimed } else { other };
    let (how, by, lasts) = (draw.site.one_of(LookUpFault::ALL), draw.up_to(2), Some(draw.up_to(3)));
    let process = (!draw.site.chance(0.2)).then_some(process);
    let by = (how == LookUpFault::Slow).then_some(by);
    Some(Fault::new(when, Dns { process, how, by, lasts }))
}

impl Action for Dns {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("dns", self.process.as_deref().unwrap_or(ALL));
        fields.put("how", &self.how);
        fields.put_some("by", self.by.as_ref());
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        self.process.as_deref().into_iter().collect()
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        if let Some(process) = &self.process {
            check.process(process)?;
        }
        match (self.how, self.by) {
            (LookUpFault::Slow, None) => {
                return Err(check.refuse("dns", "slow lookups need `by`: how much longer each takes"));
            }
            (LookUpFault::Failing | LookUpFault::Stale, Some(_)) => {
                let problem = format!("`by` does not apply to {} lookups: leave it out", self.how);
                return Err(check.refuse("by", problem));
            }
            _ => {}
        }
        check.lasting("by", self.by)?;
        check.lasting("for", self.lasts)
    }

    fn strike(&self, strike: &Strike) {
        let process = self.process.as_deref().map(|name| strike.process(name));
        let number = strike.world().break_look_ups(process, self.how, self.by.unwrap_or_default().duration());
        let of = if process.is_none() { " of all processes" } else { "" };
        let detail = match (self.how, self.by) {
            (LookUpFault::Slow, by) => {
                let by = in_whole_units(by.unwrap_or_default().as_nanos());
                format!("lookups{of} take {by} longer")
            }
            (LookUpFault::Failing, _) => format!("lookups{of} fail"),
            (LookUpFault::Stale, _) => format!("lookups{of} give the former process of an alias"),
        };
        let target = self.process.as_deref().unwrap_or(NETWORK);
        let begun = strike.begins(target, Effect::LookUps(self.how), self.lasts, &detail);
        begun.until(&format!("over: {detail}"), move |strike| strike.world().mend_look_ups(number));
    }

    fn in_flight(&self) -> Span {
        self.by.unwrap_or_default()
    }

    /// Returns the time until the last slow lookup has ended: `by` after the fault ends.
    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts.map(|lasts| lasts.plus(self.by.unwrap_or_default()))
    }
}
