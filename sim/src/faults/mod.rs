//! Faults as values. Each is one file here and one row in [`FAULTS`].
//!
//! A [`Fault`] has a [`Trigger`] (the time or point at which it strikes) and an [`Action`] (its effect).
//! Schedule files hold an action as a table of [`Fields`]. An action is validated against a [`Scene`], acts
//! and undoes its effect through a [`Strike`]. Searches draw it ([`Variant`]) or place it everywhere
//! ([`Form`]); the comparison of systems has its [`Class`]. An [`Injector`] strikes the faults of one run.
//! To add a fault of your own, implement [`Action`]; for schedule files, let
//! [`Subject::faults`](crate::Subject::faults) list its [`FaultKind`].

use serde::{Deserialize, Deserializer};

use crate::place::{Invalid, Place};

mod action;
mod call;
pub mod cancel;
mod class;
pub mod crash;
pub mod cut;
pub mod delay;
mod draw;
pub mod evict;
mod fields;
mod form;
mod injector;
mod kind;
pub mod lead;
mod length;
mod link;
pub mod partition;
pub mod pause;
pub mod promote;
pub mod rate;
mod reach;
pub mod reset;
pub mod resume;
mod scene;
pub mod slew;
pub mod step;
pub mod stop;
mod strike;
mod table;
mod trigger;

pub use action::{Action, Check, Fault};
pub use call::Call;
pub use cancel::Cancel;
pub use class::Class;
pub use crash::Crash;
pub use cut::Cut;
pub use delay::Delay;
pub use draw::{Draw, Variant};
pub use evict::{Evict, Part};
pub use fields::{Fields, Misread};
pub use form::Form;
pub use injector::{Injector, LastBreaks};
pub use kind::FaultKind;
pub use lead::Lead;
pub use length::Length;
pub use link::Link;
pub use partition::Partition;
pub use pause::Pause;
pub use promote::Promote;
pub use rate::Rate;
pub use reach::Reach;
pub use reset::Reset;
pub use resume::Resume;
pub use scene::{Role, Scene};
pub use slew::Slew;
pub use step::Step;
pub use stop::Stop;
pub use strike::{Begun, NETWORK, Stage, Strike};
pub use table::Faults;
pub use trigger::Trigger;

/// All faults of the simulator.
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
    /// Reads the action with the kinds in `faults`; `place` is that of the fault in the file.
    pub(crate) fn read(self, place: &Place, faults: &Faults) -> Result<Fault, Invalid> {
        Ok(Fault { what: faults.read(&place.key("what"), self.what)?, when: self.when })
    }
}

impl<'de> Deserialize<'de> for Fault {
    /// Reads a fault with the kinds in [`FAULTS`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawFault::deserialize(deserializer)?;
        raw.read(&Place::default(), &Faults::default())
            .map_err(|invalid| serde::de::Error::custom(invalid.problem))
    }
}
