//! [`What`] as schedule files write it: one flat table, in which exactly one key names the fault and the others qualify it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fault::{Link, Part, What};
use super::{Span, SpanError, is_default};

/// Every key of every fault, each optional.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RawWhat {
    #[serde(skip_serializing_if = "is_default")]
    pause: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    resume: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    crash: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    stop: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    cut: Option<Link>,
    #[serde(skip_serializing_if = "is_default")]
    delay: Option<Link>,
    #[serde(skip_serializing_if = "is_default")]
    partition: Option<Vec<Vec<String>>>,
    #[serde(skip_serializing_if = "is_default")]
    reset: Option<Link>,
    #[serde(skip_serializing_if = "is_default")]
    step: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    slew: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    rate: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    promote: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    lead: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    evict: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    cancel: Option<String>,

    #[serde(skip_serializing_if = "is_default")]
    power_loss: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    restart_after: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    both: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    by: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    over: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    factor: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    part: Option<Part>,
    #[serde(rename = "for", skip_serializing_if = "is_default")]
    lasts: Option<Span>,
}

/// The keys that name a fault. The others qualify it.
const VERBS: [&str; 15] = [
    "pause",
    "resume",
    "crash",
    "stop",
    "cut",
    "delay",
    "partition",
    "reset",
    "step",
    "slew",
    "rate",
    "promote",
    "lead",
    "evict",
    "cancel",
];

impl TryFrom<RawWhat> for What {
    type Error = String;

    /// Takes out of `raw` what the fault needs: whatever is left over does not belong to it.
    fn try_from(mut raw: RawWhat) -> Result<Self, String> {
        let what = raw.take()?.ok_or_else(|| format!("`what` needs one of {}", VERBS.join(", ")))?;
        let verb = what.verb();
        match raw.left_over() {
            None => Ok(what),
            Some(second) if VERBS.contains(&second) => {
                Err(format!("`{verb}` and `{second}` in one fault: write a fault for each"))
            }
            Some(qualifier) => Err(format!("`{qualifier}` does not apply to `{verb}`")),
        }
    }
}

impl RawWhat {
    fn take(&mut self) -> Result<Option<What>, String> {
        if let Some(what) = self.take_process_fault() {
            return Ok(Some(what));
        }
        match self.take_link_fault()? {
            Some(what) => Ok(Some(what)),
            None => self.take_clock_fault(),
        }
    }

    fn take_process_fault(&mut self) -> Option<What> {
        if let Some(process) = self.pause.take() {
            Some(What::Pause { process, lasts: self.lasts.take() })
        } else if let Some(process) = self.resume.take() {
            Some(What::Resume { process })
        } else if let Some(process) = self.crash.take() {
            let power_loss = self.power_loss.take().unwrap_or(false);
            Some(What::Crash { process, power_loss, restart_after: self.restart_after.take() })
        } else if let Some(process) = self.stop.take() {
            Some(What::Stop { process, restart_after: self.restart_after.take() })
        } else if let Some(replica) = self.promote.take() {
            Some(What::Promote { replica })
        } else if let Some(member) = self.lead.take() {
            Some(What::Lead { member })
        } else if let Some(key) = self.evict.take() {
            Some(What::Evict { key, part: self.part.take() })
        } else {
            self.cancel.take().map(|worker| What::Cancel { worker })
        }
    }

    fn take_link_fault(&mut self) -> Result<Option<What>, String> {
        let what = if let Some(link) = self.cut.take() {
            What::Cut { link, both: self.take_both(), lasts: self.lasts.take() }
        } else if let Some(link) = self.delay.take() {
            What::Delay { link, by: self.take_by("delay")?, both: self.take_both(), lasts: self.lasts.take() }
        } else if let Some(groups) = self.partition.take() {
            What::Partition { groups, lasts: self.lasts.take() }
        } else if let Some(link) = self.reset.take() {
            What::Reset { link }
        } else {
            return Ok(None);
        };
        Ok(Some(what))
    }

    fn take_clock_fault(&mut self) -> Result<Option<What>, String> {
        let what = if let Some(process) = self.step.take() {
            What::Step { process, by: self.take_by("step")? }
        } else if let Some(process) = self.slew.take() {
            let by = self.take_by("slew")?;
            What::Slew { process, by, over: self.over.take().ok_or("`slew` needs `over`: in how much time")? }
        } else if let Some(process) = self.rate.take() {
            let factor =
                self.factor.take().ok_or("`rate` needs `factor`: clock seconds in a second of true time")?;
            What::Rate { process, factor, lasts: self.lasts.take() }
        } else {
            return Ok(None);
        };
        Ok(Some(what))
    }

    fn take_both(&mut self) -> bool {
        self.both.take().unwrap_or(true)
    }

    /// `by` is a span for a delay, which has no sign, and a shift for a clock, which must have one.
    fn take_by<T: FromStr<Err = SpanError>>(&mut self, verb: &str) -> Result<T, String> {
        let by = self.by.take().ok_or_else(|| format!("`{verb}` needs `by`: by how much"))?;
        by.parse().map_err(|error: SpanError| error.to_string())
    }

    /// A key that is still there, the verbs first.
    fn left_over(&self) -> Option<&'static str> {
        let there = [
            ("pause", self.pause.is_some()),
            ("resume", self.resume.is_some()),
            ("crash", self.crash.is_some()),
            ("stop", self.stop.is_some()),
            ("cut", self.cut.is_some()),
            ("delay", self.delay.is_some()),
            ("partition", self.partition.is_some()),
            ("reset", self.reset.is_some()),
            ("step", self.step.is_some()),
            ("slew", self.slew.is_some()),
            ("rate", self.rate.is_some()),
            ("promote", self.promote.is_some()),
            ("lead", self.lead.is_some()),
            ("evict", self.evict.is_some()),
            ("cancel", self.cancel.is_some()),
            ("power_loss", self.power_loss.is_some()),
            ("restart_after", self.restart_after.is_some()),
            ("both", self.both.is_some()),
            ("by", self.by.is_some()),
            ("over", self.over.is_some()),
            ("factor", self.factor.is_some()),
            ("part", self.part.is_some()),
            ("for", self.lasts.is_some()),
        ];
        there.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }
}

impl From<What> for RawWhat {
    fn from(what: What) -> Self {
        let one_way = |both: bool| (!both).then_some(false);
        let raw = Self::default();
        match what {
            What::Pause { process, lasts } => Self { pause: Some(process), lasts, ..raw },
            What::Resume { process } => Self { resume: Some(process), ..raw },
            What::Crash { process, power_loss, restart_after } => {
                Self { crash: Some(process), power_loss: power_loss.then_some(true), restart_after, ..raw }
            }
            What::Stop { process, restart_after } => Self { stop: Some(process), restart_after, ..raw },
            What::Cut { link, both, lasts } => Self { cut: Some(link), both: one_way(both), lasts, ..raw },
            What::Delay { link, by, both, lasts } => {
                Self { delay: Some(link), by: Some(by.to_string()), both: one_way(both), lasts, ..raw }
            }
            What::Partition { groups, lasts } => Self { partition: Some(groups), lasts, ..raw },
            What::Reset { link } => Self { reset: Some(link), ..raw },
            What::Step { process, by } => Self { step: Some(process), by: Some(by.to_string()), ..raw },
            What::Slew { process, by, over } => {
                Self { slew: Some(process), by: Some(by.to_string()), over: Some(over), ..raw }
            }
            What::Rate { process, factor, lasts } => {
                Self { rate: Some(process), factor: Some(factor), lasts, ..raw }
            }
            What::Promote { replica } => Self { promote: Some(replica), ..raw },
            What::Lead { member } => Self { lead: Some(member), ..raw },
            What::Evict { key, part } => Self { evict: Some(key), part, ..raw },
            What::Cancel { worker } => Self { cancel: Some(worker), ..raw },
        }
    }
}
