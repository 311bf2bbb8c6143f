//! A table of the kinds of faults that a schedule file may name, and that may be drawn.

use std::fmt;
use std::sync::Arc;

use super::action::{Action, Fault};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::Fields;
use super::form::Form;
use super::kind::FaultKind;
use super::scene::Scene;
use crate::entropy::Site;
use crate::field_path::{FieldPath, Invalid};
use crate::span::Span;

/// The kinds of faults that a schedule file may name, and that may be drawn.
///
/// # Example
///
/// ```
/// use sim::faults::Faults;
///
/// let clocks = Faults::default().only(&["step", "slew", "rate"]);
/// println!("{clocks:?}");
/// ```
#[derive(Clone)]
pub struct Faults {
    kinds: Vec<&'static FaultKind>,
    /// True if the wide variants of the kinds are drawn, too.
    is_wide: bool,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faults").field(&self.verbs()).finish()
    }
}

impl Faults {
    /// Creates a table of these kinds, in this order.
    pub fn new(table: &[&'static FaultKind]) -> Self {
        Self { kinds: table.to_vec(), is_wide: false }
    }

    /// Adds a kind.
    #[must_use]
    pub fn with(mut self, kind: &'static FaultKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Draws the kinds in further variants, too, each aimed at a moment at which a lock is likely to
    /// break: a reply lost after any request, a clock stepped between a request and its answer, a server
    /// that restarts right after its vote, a lease evicted while it is held.
    #[must_use]
    pub fn widely(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// Keeps only the kinds that `verbs` name, so that a search draws no others.
    #[must_use]
    pub fn only(mut self, verbs: &[&str]) -> Self {
        self.kinds.retain(|kind| verbs.contains(&kind.verb));
        self
    }

    /// Reads the action from its fields; `path` is theirs in the file.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if a field is unknown, has the wrong type or does not belong to the fault, or if not
    /// exactly one field names a fault.
    pub fn read(&self, path: &FieldPath, mut fields: Fields) -> Result<Arc<dyn Action>, Invalid> {
        self.check_known(path, &fields)?;
        let mut named = self.kinds.iter().filter(|kind| fields.keys().any(|key| key == kind.verb));
        let Some(kind) = named.next() else {
            return Err(path.says(format!("`what` needs one of {}", self.verbs().join(", "))));
        };
        let verb = kind.verb;
        if let Some(second) = named.next() {
            let problem = format!("`{verb}` and `{}` in one fault: write a fault for each", second.verb);
            return Err(path.key(second.verb).says(problem));
        }
        let action =
            (kind.read)(&mut fields).map_err(|misread| path.key(misread.field).says(misread.problem))?;
        match fields.keys().next() {
            None => Ok(action),
            Some(left) => Err(path.key(left.to_owned()).says(format!("`{left}` does not apply to `{verb}`"))),
        }
    }

    /// Draws a fault for `scene` from `site` alone. If the scene can't have the drawn variant, draws the
    /// first one. May return `None`.
    pub fn draw(&self, scene: &dyn Scene, site: &mut Site) -> Option<Fault> {
        self.draw_weighed(scene, site, &|_| 1)
    }

    /// Draws as [`Self::draw`], with the weights of each kind multiplied by `factor` of its verb. A kind
    /// whose factor is 0 is never drawn.
    pub(crate) fn draw_weighed(
        &self,
        scene: &dyn Scene,
        site: &mut Site,
        factor: &dyn Fn(&str) -> u64,
    ) -> Option<Fault> {
        let mut weighed: Vec<_> = self.variants().into_iter().filter(|(verb, _)| factor(verb) > 0).collect();
        let first = weighed.first().map(|(_, variant)| *variant);
        let weigh = |(verb, variant): &(&str, &Variant)| (variant.weight)(scene) * factor(verb);
        if weighed.iter().any(|variant| weigh(variant) > 0) {
            weighed.retain(|variant| weigh(variant) > 0);
        }
        // If all weights are 0, the table lacks the variant that otherwise draws these faults: each may come.
        let weighed: Vec<_> = weighed.iter().map(|variant| (variant.1, weigh(variant).max(1))).collect();
        let mut draw = FaultDraw { scene, site };
        let drawn = draw.variant(&weighed).and_then(|variant| (variant.draw)(&mut draw));
        let drawn = drawn.or_else(|| first.and_then(|variant| (variant.draw)(&mut draw)));
        // A variant may draw several kinds, of which the table may have only some.
        let has = |verb: &str| self.kinds.iter().any(|kind| kind.verb == verb) && factor(verb) > 0;
        drawn.filter(|fault| has(fault.what.verb()))
    }

    /// Returns all variants by their ranks, each with the verb of its kind.
    fn variants(&self) -> Vec<(&'static str, &'static Variant)> {
        let of = |kind: &&'static FaultKind| {
            let (verb, wide) = (kind.verb, if self.is_wide { kind.wide } else { &[] });
            kind.variants.iter().chain(wide).map(move |variant| (verb, *variant))
        };
        let mut variants: Vec<_> = self.kinds.iter().flat_map(of).collect();
        variants.sort_by_key(|(_, variant)| variant.order);
        variants
    }

    /// Returns the forms of all kinds for leases of this length, by their ranks.
    pub fn forms(&self, lease: Span) -> Vec<Form> {
        let mut forms: Vec<_> = self.kinds.iter().flat_map(|kind| (kind.forms)(lease)).collect();
        forms.sort_by_key(Form::order);
        forms
    }

    /// Returns the classes of all kinds, by their ranks.
    pub fn classes(&self) -> Vec<&'static Class> {
        let mut classes: Vec<_> = self.kinds.iter().filter_map(|kind| kind.class).collect();
        classes.sort();
        classes
    }

    /// Returns true if a kind is drawn beside others in the scene.
    pub(crate) fn draws(&self, verb: &str, scene: &dyn Scene) -> bool {
        self.variants().iter().any(|(kind, variant)| *kind == verb && (variant.weight)(scene) > 0)
    }

    /// Returns the words that name the kinds.
    pub fn verbs(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.verb).collect()
    }

    fn check_known(&self, path: &FieldPath, fields: &Fields) -> Result<(), Invalid> {
        let mut known = self.verbs();
        for field in self.kinds.iter().flat_map(|kind| kind.fields) {
            if !known.contains(field) {
                known.push(field);
            }
        }
        match fields.keys().find(|key| !known.contains(key)) {
            None => Ok(()),
            Some(unknown) => {
                let problem = format!("unknown field `{unknown}`, expected one of `{}`", known.join("`, `"));
                Err(path.key(unknown.to_owned()).says(problem))
            }
        }
    }
}
