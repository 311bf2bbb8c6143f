//! Faults as values. Each is one file here and one row in [`FAULTS`].
//!
//! A [`Fault`] has a [`Trigger`] (the time or point at which it strikes) and an [`Action`] (its effect).
//! Schedule files hold an action as a table of [`Fields`]. An action is validated against a [`Scene`], acts
//! and undoes its effect through a [`Strike`]. Searches draw it ([`Variant`]) or place it everywhere
//! ([`Form`]), and the comparison of systems has its [`Class`]. An [`Injector`] strikes the faults of one
//! run.
//! To add a fault of your own, implement [`Action`]; for schedule files, let
//! [`Subject::faults`](crate::Subject::faults) list its [`FaultKind`].

use serde::{Deserialize, Deserializer};

use crate::field_path::{FieldPath, Invalid};

mod action;
mod call;
#[doc(hidden)]
pub mod cancel;
mod class;
#[doc(hidden)]
pub mod crash;
#[doc(hidden)]
pub mod cut;
#[doc(hidden)]
pub mod delay;
#[doc(hidden)]
pub mod dns;
mod draw;
#[doc(hidden)]
pub mod evict;
mod fields;
mod form;
mod injector;
mod kind;
#[doc(hidden)]
pub mod lead;
mod length;
mod link;
#[doc(hidden)]
pub mod partition;
#[doc(hidden)]
pub mod pause;
#[doc(hidden)]
pub mod promote;
#[doc(hidden)]
pub mod rate;
mod reach;
#[doc(hidden)]
pub mod repeat;
#[doc(hidden)]
pub mod reset;
#[doc(hidden)]
pub mod resume;
mod scene;
#[doc(hidden)]
pub mod slew;
#[doc(hidden)]
pub mod step;
#[doc(hidden)]
pub mod stop;
mod strike;
mod table;
#[doc(hidden)]
pub mod terminate;
mod trigger;

pub use action::{Action, Fault, FaultCheck};
pub use call::Call;
pub use cancel::Cancel;
#[doc(hidden)]
pub use class::Class;
pub use crash::Crash;
pub use cut::Cut;
pub use delay::Delay;
pub use dns::Dns;
#[doc(hidden)]
pub use draw::{FaultDraw, Variant};
pub use evict::{Evict, Part};
pub use fields::{Fields, Misread};
pub use form::Form;
#[doc(hidden)]
pub use injector::{Injector, LastBreaks};
pub use kind::FaultKind;
pub use lead::Lead;
#[doc(hidden)]
pub use length::Length;
pub use link::Link;
pub use partition::Partition;
pub use pause::Pause;
pub use promote::Promote;
pub use rate::Rate;
pub use reach::Reach;
pub use repeat::Repeat;
pub use reset::Reset;
pub use resume::Resume;
pub use scene::{Role, Scene};
pub use slew::Slew;
pub use step::ClockStep;
pub use stop::Stop;
pub use strike::{Begun, Strike};
#[doc(hidden)]
pub use strike::{FaultTarget, NETWORK};
pub use table::Faults;
pub use terminate::{Signal, Terminate};
pub use trigger::Trigger;

/// All faults of the simulator.
#[doc(hidden)]
pub static FAULTS: &[&FaultKind] = &[
    &pause::KIND,
    &resume::KIND,
    &crash::KIND,
    &stop::KIND,
    &cut::KIND,
    &delay::KIND,
    &partition::KIND,
    &reset::KIND,
    &step::KIND,
    &slew::KIND,
    &rate::KIND,
    &promote::KIND,
    &lead::KIND,
    &evict::KIND,
    &cancel::KIND,
    &repeat::KIND,
    &dns::KIND,
    &terminate::KIND,
];

impl Default for Faults {
    /// Returns the table of [`FAULTS`].
    fn default() -> Self {
        Self::new(FAULTS)
    }
}

/// A fault as written in a file, before its action is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFault {
    when: Trigger,
    what: Fields,
}

impl RawFault {
    /// Reads the action with the kinds in `faults`; `path` is that of the fault in the file.
    pub(crate) fn read(self, path: &FieldPath, faults: &Faults) -> Result<Fault, Invalid> {
        Ok(Fault { what: faults.read(&path.key("what"), self.what)?, when: self.when })
    }
}

impl<'de> Deserialize<'de> for Fault {
    /// Reads a fault with the kinds in [`FAULTS`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawFault::deserialize(deserializer)?;
        raw.read(&FieldPath::default(), &Faults::default())
            .map_err(|invalid| serde::de::Error::custom(invalid.problem))
    }
}
