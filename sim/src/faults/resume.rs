//! Resumes a paused process, as SIGCONT does.

use std::sync::Arc;

use history::{Effect, InstantFault};

use super::action::{Action, Fault, FaultCheck};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::pause::{self, Pause};
use super::scene::Scene;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::Span;

/// Resumes a paused process.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The process.
    pub process: String,
}

/// The row of this fault in the table. No search draws or places it, and no class has it: their pauses end by
/// themselves.
pub static KIND: FaultKind = FaultKind {
    verb: "resume",
    fields: &[],
    read,
    variants: &[],
    wide: &[],
    forms: |_| Vec::new(),
    class: None,
};

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    Ok(Arc::new(Resume { process: fields.need("resume", "resume", "the process")? }))
}

impl Action for Resume {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("resume", &self.process);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(&self.process)?;
        let name = &self.process;
        let pauses =
            |fault: &Fault| fault.what.downcast_ref::<Pause>().is_some_and(|pause| pause.process == *name);
        if check.faults.iter().any(pauses) {
            return Ok(());
        }
        Err(check.refuse("resume", format!("`resume` of `{name}`: no fault pauses it")))
    }

    fn strike(&self, strike: &Strike) {
        if !strike.end(pause::KIND.verb, &self.process) {
            let effect = Effect::Instant(InstantFault::Other);
            strike.acts(&self.process, effect, "was to be resumed, and is not paused");
        }
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}
